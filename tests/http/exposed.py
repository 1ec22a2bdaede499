"""What a gateway exposes at /metrics, parsed as Prometheus does, and work that leaves something of each kind in it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import trio
from prometheus_client.parser import text_string_to_metric_families

from gateway.clock import utc_now
from store.jobs import Bounds, Change, NewJob, Next, Timing

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx2

    from store.jobs import Job
    from store.protocols import Store
    from tests.http.world import Served

LONG_AGO = timedelta(days=2)
HOURLY = timedelta(hours=1)

Series = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Exposed:
    text: str
    kinds: dict[str, str]
    """The families by name, a counter's with its `_total`."""
    abouts: dict[str, str]
    values: dict[Series, float]

    def __call__(self, name: str, **labels: str) -> float:
        """The sum of the series of this name that have these labels; 0 without any."""
        wanted = set(labels.items())
        return sum(value for (one, has), value in self.values.items() if one == name and wanted <= set(has))

    def labels_of(self, name: str) -> set[str]:
        """The labels that series of this name have."""
        return {label for one, has in self.values for label, _ in has if one == name}

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.values}


async def scrape(client: httpx2.AsyncClient) -> Exposed:
    answer = await client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    kinds, abouts, values = {}, {}, {}
    for family in text_string_to_metric_families(answer.text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        kinds[name], abouts[name] = family.type, family.documentation
        for sample in family.samples:
            series = sample.name, tuple(sorted(sample.labels.items()))
            assert series not in values, f"{series} is there twice"
            values[series] = sample.value
    return Exposed(answer.text, kinds, abouts, values)


async def until(client: httpx2.AsyncClient, seen: Callable[[Exposed], bool]) -> Exposed:
    """Scrape until it is seen."""
    while True:
        exposed = await scrape(client)
        if seen(exposed):
            return exposed
        await trio.sleep(0.02)


async def add_missed_job(store: Store) -> Job:
    """A job whose hours have passed for two days while nobody was there."""
    then = utc_now() - LONG_AGO
    new = NewJob("missed", "default", "main", "too late", Timing("every", every=HOURLY))

    def first(job: Job) -> Change:
        return Change(job, next=Next("missed-trigger", then, then, "baseline-interval"))

    job = await store.cron.add_job(new, first, Bounds())
    assert job is not None
    return job


async def work_a_moment(served: Served, *, about: str = "the weather") -> Exposed:
    """An answer, a failure, a dropped message, a stop and jobs that ran, failed and were missed; then the figures.

    For a gateway with a cap of one waiting message and without a debounce window. ``about`` is said in it.
    """
    async with served.client(await served.secret()) as client:
        for text in (f"hello, {about}", "fail", "ask helpers about tea"):
            assert (await client.post("/v1/messages", json={"text": text, "wait": 30})).status_code == 200
        session = ""
        for text in ("count to 900", "waits, and is dropped", "waits in its place"):
            answer = await client.post("/v1/messages", json={"text": text, "chat": about.replace(" ", "-")})
            assert answer.status_code == 202, answer.text
            session = answer.json()["session"]
        await until(client, lambda now: now("goclaw_messages_ended_total", end="dropped") == 1)
        busy = await scrape(client)
        assert busy("goclaw_lane_active", lane="main") == 1
        assert busy("goclaw_lane_waiting", lane="main") == 1
        assert busy("goclaw_lane_oldest_wait_seconds", lane="main") > 0
        assert busy("goclaw_run_longest_seconds") > 0
        assert busy("goclaw_messages_in_hand") >= 2
        stop = await client.post(f"/v1/sessions/{session}/stop", json={"everything": True})
        assert stop.status_code == 202, stop.text
        for message in ("hello", "fail"):
            asked = {"when": "every 1 hour", "message": message, "name": about, "at_once": True}
            assert (await client.post("/v1/schedules", json=asked)).status_code == 201
        return await until(client, done)


def done(now: Exposed) -> bool:
    return (
        now("goclaw_cron_runs_total", outcome="succeeded") >= 1
        and now("goclaw_cron_retries_total") >= 1
        and now("goclaw_messages_ended_total", end="cancelled") == 2
        and now("goclaw_lane_active", lane="main") == 0
    )
