"""Schedules over HTTP: made from anything that says when, changed whole or not at all, fired by time and by calls."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from gateway.clock import utc_now
from gateway.persist import persist
from gateway.stores import data_directory
from tests.http.calls import kept, something_of_everything, until
from tests.http.look import everything
from tests.http.world import open_served, problem_of

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from store.protocols import Store
    from tests.http.world import Served


async def make(client: httpx2.AsyncClient, **asked: Any) -> dict[str, Any]:
    found: dict[str, Any] = kept(await client.post("/v1/schedules", json={"message": "look", **asked}))
    return found


WAYS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (
        {"when": "every day at 9am", "zone": "Europe/Berlin"},
        "at 09:00 every day",
        {"kind": "cron", "zone": "Europe/Berlin"},
    ),
    ({"when": "in 2 hours"}, "once", {"kind": "at", "every": None, "cron": None}),
    ({"when": "0 9 * * 1-5"}, "", {"kind": "cron", "cron": "0 9 * * 1-5"}),
    ({"when": "every 90s"}, "every", {"kind": "every", "every": "1 minute 30 seconds"}),
    ({"when": "@daily"}, "", {"kind": "cron"}),
    ({"every": "1.5h"}, "every", {"kind": "every", "every": "1 hour 30 minutes"}),
    ({"after": "1d"}, "once", {"kind": "at"}),
    ({"at": "2099-06-01T12:00:00+02:00"}, "once", {"kind": "at", "at": "2099-06-01T10:00:00Z"}),
    ({"cron": "*/5 * * * *", "zone": "Asia/Tokyo"}, "", {"kind": "cron", "zone": "Asia/Tokyo"}),
    ({"webhook": True}, "", {"kind": "webhook", "next_fires": [], "next_at": None}),
]


@pytest.mark.parametrize(("asked", "words", "expected"), WAYS, ids=[str(asked) for asked, _, _ in WAYS])
async def test_a_schedule_says_what_it_means(asked: dict[str, Any], words: str, expected: dict[str, Any]) -> None:
    """Phrases, spans, expressions, instants and calls: answered with words, zone and next fires. (A5-A13, A29)"""
    async with open_served() as served, served.client(await served.secret("schedule", "read")) as client:
        answer = await client.post("/v1/schedules", json={"message": "look", **asked})
        assert answer.status_code == 201
        made = answer.json()
        assert words in made["words"].lower()
        assert expected.items() <= made.items()
        assert (made["agent"], made["message"], made["status"], made["runs"]) == ("main", "look", "active", 0)
        recurring = made["kind"] in ("every", "cron")
        assert len(made["next_fires"]) == (5 if recurring else len(made["next_fires"]) and 1)
        assert made["next_fires"] == sorted(made["next_fires"])
        assert made["next_fires"][:1] == ([made["next_at"]] if made["next_at"] else [])
        assert kept(await client.get(f"/v1/schedules/{made['id']}")) == made
        if made["every"]:
            assert (await make(client, every=made["every"]))["every"] == made["every"]
        if not asked.get("webhook"):
            preview = kept(await client.post("/v1/schedules/preview?count=3", json=asked))
            assert (preview["kind"], preview["zone"], preview["recurring"]) == (made["kind"], made["zone"], recurring)
            if made["kind"] == "cron":
                assert preview["next_fires"] == made["next_fires"][:3]


async def test_what_is_not_understood_lists_what_is() -> None:
    """400 with `error` and the `accepted` forms, and nothing is made. (A16)"""
    async with open_served() as served, served.client(await served.secret()) as client:
        answer = await client.post("/v1/schedules", json={"message": "x", "when": "whenever it suits"})
        problem = problem_of(answer)
        assert answer.status_code == 400
        assert "whenever it suits" in problem["error"]
        assert len(problem["accepted"]) >= 10
        assert all("for example" in form for form in problem["accepted"])
        assert (await everything(served.store))["default"]["jobs"] == ()


async def test_schedules_are_for_agents_that_there_are() -> None:
    """Another agent than the own one is named by HTTP only, and must be there; a list tells who is. (A19, A23)"""
    async with open_served() as served, served.client(await served.secret()) as client:
        names = [one["name"] for one in kept(await client.get("/v1/agents"))["items"]]
        assert names == ["main", "research"]
        assert (await make(client, every="1h", agent="research"))["agent"] == "research"
        answer = await client.post("/v1/schedules", json={"message": "x", "every": "1h", "agent": "nobody"})
        problem = problem_of(answer)
        assert (problem["status"], problem["code"]) == (422, "agent-missing")
        assert all(name in problem["next"] for name in names)


async def test_a_schedule_fires_and_tells_what_came_of_it(whole: Store) -> None:
    """A recurring one stays active and counts, a one-shot is completed; runs are told. (A3, A4, A21, G20)"""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        often, once = await make(client, every="1s"), await make(client, after="1s", rules={"max_retries": 0})

        async def both() -> bool:
            shown = [kept(await client.get(f"/v1/schedules/{one['id']}")) for one in (often, once)]
            return bool(shown[0]["runs"] and shown[1]["status"] == "completed")

        await until(both)
        after = kept(await client.get(f"/v1/schedules/{often['id']}"))
        assert (after["status"], after["last_state"]) == ("active", "succeeded")
        assert after["last_run_at"] is not None
        run = kept(await client.get(f"/v1/runs/{after['last_run']}"))
        assert (run["schedule"], run["state"], run["attempt"], run["agent"]) == (often["id"], "succeeded", 1, "main")
        assert run["summary"] in (await client.get(f"/v1/runs/{run['id']}/output")).text
        assert run["id"] in [one["id"] for one in kept(await client.get(f"/v1/runs?schedule={often['id']}"))["items"]]
        assert "look" not in kept(await client.get(f"/v1/schedules/{often['id']}/why"))["text"].lower()
        kinds = [one["kind"] for one in kept(await client.get("/v1/notifications"))["items"]]
        assert {"run.started", "run.completed"} <= set(kinds)
        assert once["id"] not in [one["id"] for one in kept(await client.get("/v1/schedules"))["items"]]
        ended = kept(await client.get("/v1/schedules?status=completed"))["items"]
        assert [one["id"] for one in ended] == [once["id"]]


async def test_run_now_and_trigger_fire_once_beside_the_schedule(whole: Store) -> None:
    """202 with the trigger; the schedule's own place in time does not move. A webhook is fired by calls only."""
    async with open_served(whole) as served:
        caller = await served.secret("trigger")
        async with served.client(await served.secret()) as client, served.client(caller) as hook:
            daily, called = await make(client, when="every day at 9am"), await make(client, webhook=True)
            fired = kept(await client.post(f"/v1/schedules/{daily['id']}/run"))
            assert (fired["kind"], fired["schedule"]) == ("manual", daily["id"])
            hooked = kept(await hook.post(f"/v1/schedules/{called['id']}/trigger", content=b"\x00 anything"))
            assert (hooked["kind"], hooked["state"]) == ("webhook", "pending")
            assert (await hook.get(f"/v1/schedules/{called['id']}")).status_code == 403

            async def both() -> bool:
                return len(await persist(partial(whole.cron.runs, "default"))) == 2

            await until(both)
            after = kept(await client.get(f"/v1/schedules/{daily['id']}"))
            assert (after["next_at"], after["next_fires"]) == (daily["next_at"], daily["next_fires"])


async def test_a_change_is_whole(whole: Store) -> None:
    """Several things at once are changed at once; what is not named stays."""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        made = await make(client, every="1h", name="before", rules={"max_retries": 2})
        path = f"/v1/schedules/{made['id']}"
        change = {
            "name": "after",
            "message": "other",
            "agent": "research",
            "when": "every day at 10am",
            "rules": {"grace": "1h"},
            "status": "paused",
            "reason": "holidays",
        }
        after = kept(await client.patch(path, json=change))
        assert (after["name"], after["message"], after["agent"]) == ("after", "other", "research")
        assert (after["status"], after["reason"], after["kind"], after["next_at"]) == (
            "paused",
            "holidays",
            "cron",
            None,
        )
        assert (after["rules"]["max_retries"], after["rules"]["grace"]) == (2, "1 hour")
        again = kept(await client.patch(path, json={"status": "active", "every": "2h"}))
        assert (again["status"], again["reason"], again["every"], again["name"]) == ("active", "", "2 hours", "after")
        assert again["next_at"] is not None
        assert kept(await client.patch(path, json={})) == again


REFUSED: list[dict[str, Any]] = [
    {"name": "after", "paused_until": "2001-01-01T00:00:00Z"},
    {"name": "after", "when": "every day at 10am", "paused_until": "2001-01-01T00:00:00Z"},
    {"status": "active", "name": "after", "agent": "nobody"},
    {"status": "paused", "name": "after", "zone": "Mars/Base"},
    {"status": "paused", "every": "2h", "rules": {"run_timeout": "3d"}},
    {"status": "paused", "at": "2001-01-01T00:00:00Z"},
]


@pytest.mark.parametrize("change", REFUSED, ids=range(len(REFUSED)))
async def test_a_change_that_is_refused_changes_nothing(whole: Store, change: dict[str, Any]) -> None:
    """Also not the half of it that could have been done."""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        made = await make(client, every="1h", name="before")
        before = await everything(whole)
        answer = await client.patch(f"/v1/schedules/{made['id']}", json=change)
        assert answer.status_code in (400, 422), answer.text
        assert await everything(whole) == before


async def test_pausing_and_resuming(whole: Store) -> None:
    """Paused until told, or until then; active again it is planned anew. (A29)"""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        made = await make(client, every="1h")
        path = f"/v1/schedules/{made['id']}"
        paused = kept(await client.patch(path, json={"status": "paused", "reason": "quiet"}))
        assert (paused["status"], paused["reason"], paused["next_at"], paused["next_fires"]) == (
            "paused",
            "quiet",
            None,
            [],
        )
        assert kept(await client.patch(path, json={"status": "paused"}))["reason"] == "quiet"
        until_then = "2099-01-01T00:00:00Z"
        rests = kept(await client.patch(path, json={"paused_until": until_then, "status": "paused"}))
        assert (rests["status"], rests["next_at"], rests["next_source"]) == ("active", until_then, "paused")
        resumed = kept(await client.patch(path, json={"status": "active"}))
        assert (resumed["paused_until"], resumed["reason"]) == (None, "")
        assert utc_now() < datetime.fromisoformat(resumed["next_at"]) <= utc_now() + timedelta(hours=1)


async def test_a_one_shot_whose_time_passed_while_it_was_paused_runs_when_it_is_resumed() -> None:
    """At once, and not before. (A29)"""
    async with open_served() as served, served.client(await served.secret()) as client:
        once = await make(client, after="5s")
        kept(await client.patch(f"/v1/schedules/{once['id']}", json={"status": "paused"}))

        async def past() -> bool:
            return utc_now() > datetime.fromisoformat(once["at"]) + timedelta(milliseconds=100)

        await until(past)
        assert kept(await client.get(f"/v1/schedules/{once['id']}"))["status"] == "paused"
        kept(await client.patch(f"/v1/schedules/{once['id']}", json={"status": "active"}))

        async def ran() -> bool:
            shown: dict[str, Any] = kept(await client.get(f"/v1/schedules/{once['id']}"))
            return bool(shown["status"] == "completed")

        await until(ran)


async def test_what_has_ended_is_neither_paused_nor_hinted() -> None:
    """409 with the reason; with a new time it lives again; what was deleted does not. (A3)"""
    async with open_served() as served, served.client(await served.secret()) as client:
        once = await make(client, after="1h", at_once=True)
        path = f"/v1/schedules/{once['id']}"

        async def ended() -> bool:
            shown: dict[str, Any] = kept(await client.get(path))
            return bool(shown["status"] == "completed")

        await until(ended)
        before = await everything(served.store)
        for answer in (
            await client.patch(path, json={"status": "paused"}),
            await client.patch(path, json={"status": "active", "name": "x"}),
            await client.put(f"{path}/hints", json={"interval": "30m"}),
            await client.post(f"{path}/run"),
        ):
            assert answer.status_code == 409, answer.text
            assert "has ended (completed)" in problem_of(answer)["detail"]
        assert await everything(served.store) == before
        assert kept(await client.patch(path, json={"after": "1h", "status": "active"}))["status"] == "active"
        assert kept(await client.delete(path)) == {"deleted": True}
        assert (await client.patch(path, json={"name": "x"})).status_code == 409


async def test_deleting_keeps_the_history_and_purging_does_not(whole: Store) -> None:
    """`{"deleted": true}`, it fires no more and is not listed; its runs are there until they are purged. (A3, A29)"""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        owned = await something_of_everything(served, "default")
        path = f"/v1/schedules/{owned.schedule}"
        assert kept(await client.delete(path)) == {"deleted": True}
        assert kept(await client.delete(path)) == {"deleted": True}
        assert kept(await client.get("/v1/schedules"))["items"] == []
        assert kept(await client.get(path))["status"] == "cancelled"
        assert kept(await client.get("/v1/schedules?status=cancelled"))["items"][0]["next_at"] is None
        assert (await client.get(f"/v1/runs/{owned.run}")).status_code == 200
        assert kept(await client.delete(path, params={"purge": True})) == {"deleted": True}
        for gone in (path, f"/v1/runs/{owned.run}", f"/v1/runs?schedule={owned.schedule}"):
            assert (await client.get(gone)).status_code == 404, gone
        assert (await client.delete(path)).status_code == 404


async def test_hints_move_the_next_fire_for_a_while(whole: Store) -> None:
    """Another pace counts at once and says so; taken back, the schedule's own time counts again. (C11, C21)"""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        made = await make(client, every="2h", rules={"min_interval": "20m"})
        path = f"/v1/schedules/{made['id']}"
        hinted = kept(await client.put(f"{path}/hints", json={"interval": "30m", "lasts": "1h", "reason": "busy"}))
        assert (hinted["next_source"], hinted["hints"]["interval"], hinted["hints"]["reason"]) == (
            "ai-interval",
            "30 minutes",
            "busy",
        )
        assert away(hinted["next_at"]) <= timedelta(minutes=30)
        clamped = kept(await client.put(f"{path}/hints", json={"interval": "15m"}))
        assert clamped["next_source"] == "clamped-min"
        assert timedelta(minutes=19) < away(clamped["next_at"]) <= timedelta(minutes=20)
        plain = kept(await client.delete(f"{path}/hints"))
        assert (plain["hints"]["interval"], plain["next_source"]) == (None, "baseline-interval")
        assert away(plain["next_at"]) > timedelta(minutes=110)


def away(moment: str) -> timedelta:
    return datetime.fromisoformat(moment) - utc_now()


async def test_how_cron_is_can_be_seen(tmp_path: Path) -> None:
    """Its state and figures in the status, and a line of JSON for everything in its log. (H2, G18)"""
    async with open_served(None, tmp_path) as served, served.client(await served.secret()) as client:
        owned = await something_of_everything(served, "default")
        cron = kept(await client.get("/v1/status"))["cron"]
        assert cron["status"] == "running"
        assert cron["checks"] > 0
        assert cron["triggers"] >= 1
        assert cron["started_at"] <= cron["last_check_at"]
        logged = [json.loads(line) for line in lines_of(served)]
        assert all({"timestamp", "level", "event"} <= set(one) for one in logged)
        assert owned.run in [one.get("run_id", one.get("run")) for one in logged]


def lines_of(served: Served) -> list[str]:
    return (data_directory(served.office.settings) / "logs" / "scheduler.log").read_text().splitlines()
