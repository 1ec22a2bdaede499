"""The dashboard, the alerts and the page about figures speak of what a gateway exposes, and of nothing else."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.metrics.families import FAMILIES, tables
from tests.http.exposed import add_missed_job, work_a_moment
from tests.http.world import open_served

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parents[2] / "docs"
DASHBOARD: dict[str, Any] = json.loads((DOCS / "grafana" / "goclaw.json").read_text())
ALERTS = (DOCS / "grafana" / "alerts.yml").read_text()
PAGE = (DOCS / "metrics.md").read_text()

NAME = re.compile(r"\b(?:goclaw|process)_\w+")
SELECTED = re.compile(r"\b((?:goclaw|process)_\w+)(\{[^}]*\})?")
MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
SHOWN = re.compile(r"\{\{\s*(\w+)\s*\}\}")
GIVEN = {"instance", "job"}
"""Labels that Prometheus adds to everything that it scrapes."""
ROWS = [
    "Health",
    "Lanes",
    "Queues and waits",
    "Runs",
    "Cron",
    "Channels",
    "Store",
    "HTTP",
    "Process",
]


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> Iterator[tuple[str, str, str]]:
    """Where each expression stands, the expression, and what is shown beside it."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]
    for note in DASHBOARD["annotations"]["list"]:
        if "expr" in note:
            yield note["name"], note["expr"], note["titleFormat"]


def rules() -> list[dict[str, Any]]:
    yaml: Any = importlib.import_module("yaml")
    (group,) = yaml.safe_load(ALERTS)["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def labels_of(name: str) -> set[str]:
    """The labels that series of this name may have."""
    for ending in ("_bucket", "_count", "_sum"):
        family = FAMILIES.get(name.removesuffix(ending))
        if family is not None and family.kind == "histogram" and name.endswith(ending):
            return {*family.labels, *(["le"] if ending == "_bucket" else [])}
    assert name in FAMILIES, f"there is no {name}"
    assert FAMILIES[name].kind != "histogram", f"{name} has buckets, a sum and a count, and no value of its own"
    return set(FAMILIES[name].labels)


def check(where: str, expression: str, shown: str) -> set[str]:
    """Every name and label in it is there; the names."""
    names, known = set(), set(GIVEN)
    for name, selector in SELECTED.findall(expression):
        own = labels_of(name)
        asked = set(MATCHER.findall(selector))
        assert asked <= own | GIVEN, f"{where}: {name} has no {asked - own - GIVEN}"
        names.add(name)
        known |= own
    grouped = {label.strip() for group in GROUPED.findall(expression) for label in group.split(",")}
    assert grouped <= known, f"{where}: {grouped - known}"
    for label in SHOWN.findall(shown):
        assert label in (grouped or known), f"{where}: {label} is not left to be shown"
    assert expression.count("(") == expression.count(")"), where
    assert expression.count("{") == expression.count("}"), where
    return names


def test_a_panel_asks_for_what_is_there() -> None:
    """Its names and labels are in the table of figures, and it looks at the chosen gateways only."""
    for where, expression, shown in queries():
        assert check(where, expression, shown)
        for name, selector in SELECTED.findall(expression):
            assert 'instance=~"$instance"' in selector, f"{where}: {name} of every gateway"


def test_counters_are_looked_at_as_rates() -> None:
    """A counter that is shown as it stands only rises: `rate`, `increase` or `changes` stands around each."""
    expressions = [expression for _, expression, _ in queries()] + [rule["expr"] for rule in rules()]
    for expression in expressions:
        for name in set(NAME.findall(expression)):
            if name.endswith(("_total", "_bucket")):
                bare = re.sub(rf"(?:rate|increase)\({name}(?:\{{[^}}]*\}})?\[[^]]*\]\)", "", expression)
                assert name not in bare, expression


def test_every_panel_can_be_understood() -> None:
    """A title of its own, what it says, a unit; the right kind of data source; no panel over another one."""
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        for cell in ((x, y) for x in range(place["w"]) for y in range(place["h"])):
            spot = place["x"] + cell[0], place["y"] + cell[1]
            assert spot not in taken, panel["title"]
            assert spot[0] < 24
            taken.add(spot)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert len({panel["title"] for panel in panels()}) == len(panels())
    for panel in panels():
        assert len(panel["description"]) > 10, panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        defaults = panel["fieldConfig"]["defaults"]
        assert panel["type"] == "heatmap" or (defaults["unit"] and defaults["thresholds"]["steps"]), panel["title"]


def test_the_dashboard_is_whole() -> None:
    """All rows in their order, a choice of data source and of gateways, and nothing of the one who made it."""
    assert [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"] == ROWS
    assert {one["name"]: one["type"] for one in DASHBOARD["templating"]["list"]} == {
        "datasource": "datasource",
        "instance": "query",
    }
    assert DASHBOARD["id"] is None
    assert DASHBOARD["schemaVersion"] >= 39


def test_every_figure_is_shown() -> None:
    """Whatever is exposed is on the dashboard."""
    shown = {name for where, expression, legend in queries() for name in check(where, expression, legend)}
    families = {re.sub(r"_(bucket|count|sum)$", "", name) if name not in FAMILIES else name for name in shown}
    assert set(FAMILIES) - families == set()


def test_the_page_has_the_table() -> None:
    """docs/metrics.md has each figure as the code has it; renew it with `python -m gateway.metrics.families`."""
    assert PAGE.endswith("\n".join(tables()) + "\n")
    rest = PAGE.removesuffix("\n".join(tables()) + "\n")
    assert set(NAME.findall(rest)) <= set(FAMILIES)


def test_alerts_speak_of_what_is_there() -> None:
    """Five rules, each with names and labels that exist, a waiting time, and words for whoever is woken."""
    assert len(rules()) == 5
    for rule in rules():
        assert check(rule["alert"], rule["expr"], ""), rule["alert"]
        assert rule["for"]
        assert rule["labels"]["severity"] in ("page", "warn")
        assert len(rule["annotations"]["description"]) > 40
        words = " ".join(rule["annotations"].values())
        assert set(NAME.findall(words)) <= set(FAMILIES), words


async def test_a_gateway_that_worked_has_what_the_dashboard_asks_for() -> None:
    """Nearly all series of the dashboard are there after a moment's work; the others need a model, or trouble."""
    async with open_served(queue_cap=1, cron_catch_up="skip", cron_retry_base=3600, cron_retry_max=7200) as served:
        await add_missed_job(served.store)
        now = await work_a_moment(served)
    asked = {name for where, expression, legend in queries() for name in check(where, expression, legend)}
    asked |= {name for rule in rules() for name in check(rule["alert"], rule["expr"], "")}
    assert asked - now.names == {
        "goclaw_tokens_total",
        "goclaw_model_requests_total",
        "goclaw_model_request_duration_seconds_bucket",
        "goclaw_channel_retries_total",
        "goclaw_store_errors_total",
        "goclaw_cron_trouble_total",
    }
    for name in asked & now.names:
        assert now.labels_of(name) == labels_of(name), name
