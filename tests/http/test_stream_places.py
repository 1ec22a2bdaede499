"""Where a reader of notifications begins: from the first one, from the last one it saw, or from now on. (A24, A25)"""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import trio

from gateway.clock import utc_now
from store.jobs import KEEP_NEWS
from store.memory import MemoryStore
from tests.http.firing import fire, make_jobs, ran
from tests.http.readers import Event, Line, after, open_line
from tests.http.world import open_served, problem_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    import httpx2

    from tests.http.world import Served

SETTINGS: dict[str, Any] = {"lane_cron": 20, "cron_max_jitter": 0}
RUNS = 5
NEWS = 2 * RUNS
"""Each run is told twice: that it began, and how it ended."""


class Calendar:
    """The time of the day, and days that have passed since."""

    def __init__(self) -> None:
        self.passed = timedelta()

    def __call__(self) -> datetime:
        return utc_now() + self.passed


@asynccontextmanager
async def open_told(store: MemoryStore | None = None) -> AsyncIterator[tuple[Served, str]]:
    """A gateway in which something has happened already, and the secret of a reader."""
    async with open_served(store, **SETTINGS) as served:
        served.office.beat_s = 3600
        await more(served, RUNS)
        yield served, await served.secret("read")


async def more(served: Served, runs: int) -> None:
    async with served.client(await served.secret()) as client:
        before = await served.store.cron.told("default")
        await fire([client], await make_jobs(client, 1), runs)
        assert await ran(served.store, runs, after=before) == before + 2 * runs


async def first(line: Line, many: int) -> list[Event]:
    """So many events."""
    events: list[Event] = []
    while len(events) < many:
        assert not line.end
        events += await line.read()
    assert len(events) == many
    return events


async def test_a_stream_opens_and_tells_where_it_begins() -> None:
    """`open` first, with the newest number as its id: who is cut off before anything happens misses nothing."""
    async with open_told() as (served, secret):
        async with open_line(served.url, secret) as line:
            assert await first(line, 1) == [Event("open", {"ok": True}, NEWS)]
            assert line.status == 200
            assert line.headers["content-type"].startswith("text/event-stream")
            assert line.headers["cache-control"] == "no-store"
        await more(served, 1)
        async with open_line(served.url, secret, **after(str(NEWS))) as line:
            events = await first(line, 3)
            assert [event.id for event in events] == [NEWS, NEWS + 1, NEWS + 2]


@pytest.mark.parametrize("last", [0, 1, NEWS // 2, NEWS - 1])
async def test_whatever_follows_the_last_one_seen_is_replayed(last: int) -> None:
    """From the very beginning too, once and in order, and then it goes on."""
    async with (
        open_told() as (served, secret),
        open_line(served.url, secret, **after(str(last))) as line,
    ):
        events = await first(line, 1 + NEWS - last)
        assert [event.kind for event in events] == ["open"] + ["notification"] * (NEWS - last)
        assert [event.id for event in events] == list(range(last, NEWS + 1))
        await more(served, 1)
        assert [event.id for event in await first(line, 2)] == [NEWS + 1, NEWS + 2]


async def test_a_number_that_never_was_is_told_and_what_comes_is_not_lost() -> None:
    """A store that was put back to an older state: `reset` says where it goes on, and it does."""
    async with (
        open_told() as (served, secret),
        open_line(served.url, secret, **after(str(NEWS + 1000))) as line,
    ):
        assert await first(line, 2) == [
            Event("open", {"ok": True}, NEWS),
            Event("reset", {"after": NEWS + 1000, "next": NEWS + 1}, NEWS),
        ]
        await more(served, 1)
        assert [event.id for event in await first(line, 2)] == [NEWS + 1, NEWS + 2]


async def test_others_read_on_beside_one_with_a_number_that_never_was() -> None:
    """What one reader says that it has seen changes nothing for the others of its tenant."""
    async with (
        open_told() as (served, secret),
        open_line(served.url, secret, **after(str(2**62))) as odd,
        open_line(served.url, secret) as other,
    ):
        await first(odd, 2)
        await first(other, 1)
        await more(served, 1)
        for line in (odd, other):
            assert [event.id for event in await first(line, 2)] == [NEWS + 1, NEWS + 2]


async def test_what_is_not_kept_any_more_is_told() -> None:
    """`reset` tells from which number on there is something; with the rest a reader looks at `GET /v1/runs?since=`."""
    now = Calendar()
    async with open_told(MemoryStore(now)) as (served, secret):
        now.passed = KEEP_NEWS + timedelta(hours=1)
        assert any(await served.store.tidy())
        async with open_line(served.url, secret, **after("3")) as line:
            told = Event("reset", {"after": 3, "next": NEWS + 1}, NEWS)
            assert await first(line, 2) == [Event("open", {"ok": True}, 3), told]
            await more(served, 1)
            assert [event.id for event in await first(line, 2)] == [NEWS + 1, NEWS + 2]
        async with open_line(served.url, secret, **after("3")) as line:
            events = await first(line, 4)
            assert [(event.kind, event.id) for event in events] == [
                ("open", 3),
                ("reset", NEWS),
                ("notification", NEWS + 1),
                ("notification", NEWS + 2),
            ]
        async with open_line(served.url, secret, **after(str(NEWS))) as line:
            assert [event.kind for event in await first(line, 3)] == ["open", "notification", "notification"]


@pytest.mark.parametrize("last", ["", "-1", "1.5", "x", "٣", "1e3", str(2**63), "9" * 33, "0x10", "1 2"])
async def test_a_number_that_cannot_be_is_refused(last: str) -> None:
    """422 with what was expected, and no stream."""
    async with open_served() as served, served.client(await served.secret("read")) as client:
        answer = await client.get("/v1/notifications/stream", headers={b"Last-Event-ID": last.encode()})
        assert answer.status_code == 422
        assert "Last-Event-ID" in str(problem_of(answer))


async def test_a_stream_shows_that_it_is_there() -> None:
    """A comment whenever it was silent for so long; by itself that is half a minute."""
    async with open_served() as served:
        assert served.office.beat_s == 30
        served.office.beat_s = 0.05
        async with open_line(served.url, await served.secret("read")) as line:
            events = await first(line, 4)
            assert events[1:] == [Event("comment", "heartbeat")] * 3


async def test_a_notification_says_all_about_a_run() -> None:
    """Kind, task, run, agent, status, when it began and ended, and what came of it. (A24)"""
    async with (
        open_served(**SETTINGS, cron_max_retries=0) as served,
        served.client(await served.secret()) as client,
        open_line(served.url, await served.secret("read")) as line,
    ):
        await first(line, 1)
        good, bad = await make_jobs(client, 1), await make_jobs(client, 1, "fail")
        for job, kind in ((good[0], "run.completed"), (bad[0], "run.failed")):
            await fire([client], [job], 1)
            began, over = (event.data for event in await events_of(line, 2))
            run = (await client.get(f"/v1/runs/{over['run_id']}")).json()
            assert (began["kind"], over["kind"]) == ("run.started", kind)
            assert began["task_id"] == over["task_id"] == job
            assert began["run_id"] == over["run_id"] == run["id"]
            assert began["agent_id"] == over["agent_id"] == "main"
            assert (began["status"], over["status"]) == ("running", run["state"])
            assert began["started_at"] == run["started_at"]
            assert over["completed_at"] == run["ended_at"]
            assert over["started_at"] == run["started_at"]
            assert (over["result_summary"] or "") == run["summary"]
            assert (over["error_message"] or "") == run["error"]
            assert run["summary"] or run["error"]


async def events_of(line: Line, many: int) -> list[Event]:
    """So many notifications, over however many reads."""
    events: list[Event] = []
    while len(events) < many:
        assert not line.end
        events += await line.read()
    return events


async def test_runs_are_found_again_after_a_gap() -> None:
    """`since` in seconds or as a time: those that began then or later, page by page to the end. (A25)"""
    async with open_served(**SETTINGS) as served, served.client(await served.secret()) as client:
        jobs = await make_jobs(client, 3)
        await fire([client], jobs, 9)
        await ran(served.store, 9)
        whole = (await client.get("/v1/runs", params={"since": 0})).json()
        started = [run["started_at"] for run in whole["items"]]
        assert len(started) == 9
        assert started == sorted(started)
        for limit in (1, 2, 4):
            assert await paged(client, limit) == {run["id"] for run in whole["items"]}
        assert (await client.get("/v1/runs", params={"since": utc_now().timestamp() + 60})).json()["items"] == []
        late = (await client.get("/v1/runs", params={"since": started[4]})).json()["items"]
        assert {run["started_at"] for run in late} == set(started[4:])


async def paged(client: httpx2.AsyncClient, limit: int) -> set[str]:
    """All runs, as a client reads them that follows `next`; one that never ends is found out."""
    seen: set[str] = set()
    since = "0"
    for _ in range(100):
        page = (await client.get("/v1/runs", params={"since": since, "limit": limit})).json()
        seen |= {run["id"] for run in page["items"]}
        if page["next"] is None:
            return seen
        since = page["next"]
        await trio.lowlevel.checkpoint()
    raise AssertionError("the pages never end")
