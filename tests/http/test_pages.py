"""Lists: whoever walks with `next` sees everything once and in order, also while more is added."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from gateway.persist import persist
from store.jobs import TriggerKind
from store.records import Role, Said, SessionKey
from tests.http.calls import kept, make_schedule, one_run, until
from tests.http.world import open_served, problem_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import httpx2

    from store.protocols import Store
    from tests.http.world import Served

MANY = 7
KEY = SessionKey("default", "main", "http", "", "main")


async def walk(
    client: httpx2.AsyncClient,
    path: str,
    limit: int,
    add: Callable[[], Awaitable[object]] | None = None,
    by: str = "after",
    **query: Any,
) -> list[Any]:
    """Everything, page by page; with ``add`` something more comes between two pages."""
    found: list[Any] = []
    for _ in range(100):
        page = kept(await client.get(path, params={"limit": limit, **query}))
        assert len(page["items"]) <= limit
        found += page["items"]
        if page["next"] is None:
            return found
        query[by] = page["next"]
        if add is not None and len(found) < 3 * MANY:
            await add()
    raise AssertionError("the list has no end")


async def session(served: Served, number: int) -> None:
    await served.store.remember(
        SessionKey("default", "main", "http", "", f"chat {number:03} 🦀"), [Said(Role.USER, "x")] * 2
    )


@pytest.mark.parametrize("limit", [1, 2, MANY, 100])
async def test_schedules_are_walked(whole: Store, limit: int) -> None:
    """By number, each once; those that are made meanwhile come at the end."""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        for _ in range(MANY):
            await make_schedule(served, "default")
        found = [one["id"] for one in await walk(client, "/v1/schedules", limit)]
        assert found == list(range(1, MANY + 1))
        found = [
            one["id"] for one in await walk(client, "/v1/schedules", limit, partial(make_schedule, served, "default"))
        ]
        assert found == list(range(1, len(found) + 1))
        assert len(found) >= MANY


@pytest.mark.parametrize("limit", [1, 3, 100])
async def test_conversations_and_what_was_said_are_walked(whole: Store, limit: int) -> None:
    """Conversations by key, also with letters of all kinds in it; lines by number."""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        for number in range(MANY):
            await session(served, number)
        await served.store.remember(KEY, [Said(Role.USER, str(number)) for number in range(MANY)])
        keys = [one["key"] for one in await walk(client, "/v1/sessions", limit)]
        assert keys == sorted(keys)
        assert len(set(keys)) == len(keys) == MANY + 1

        async def more() -> None:
            await served.store.remember(KEY, [Said(Role.USER, "more")])

        lines = await walk(client, f"/v1/sessions/{KEY}/transcript", limit, more if limit < MANY else None)
        assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
        assert [line["text"] for line in lines[:MANY]] == [str(number) for number in range(MANY)]


async def test_runs_and_notifications_are_walked(whole: Store) -> None:
    """Runs from a moment on, oldest first, the last one of a page again on the next; notifications by number. (A25)"""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        number = await make_schedule(served, "default")
        made = [(await one_run(served, "default", number)).id for _ in range(MANY)]
        for limit in (2, 3, MANY, 100):
            runs = [one["id"] for one in await walk(client, "/v1/runs", limit, by="since", since="0")]
            assert list(dict.fromkeys(runs)) == made, limit
            news = await walk(client, "/v1/notifications", limit)
            assert [one["seq"] for one in news] == list(range(1, len(news) + 1))
        later = kept(
            await client.get(
                "/v1/runs", params={"since": kept(await client.get("/v1/runs?limit=1"))["items"][0]["started_at"]}
            )
        )
        assert [one["id"] for one in later["items"]] == made[-1:]
        newest = kept(await client.get("/v1/runs?limit=3"))
        assert [one["id"] for one in newest["items"]] == made[::-1][:3]
        assert newest["next"] is None
        epoch = (await persist(partial(served.store.cron.runs, "default")))[0].started_at.timestamp()
        assert [one["id"] for one in kept(await client.get(f"/v1/runs?since={epoch - 0.001}"))["items"]][-1:] == made[
            -1:
        ]


LIMITS = {
    "/v1/schedules": 200,
    "/v1/schedules/1/triggers": 200,
    "/v1/runs": 100,
    "/v1/notifications": 500,
    "/v1/sessions": 500,
    f"/v1/sessions/{KEY}/transcript": 500,
}


@pytest.mark.parametrize("path", LIMITS)
async def test_a_page_has_a_most(path: str) -> None:
    """The most of A29 can be asked for and no more, and nothing less than one."""
    async with open_served() as served, served.client(await served.secret()) as client:
        await make_schedule(served, "default")
        await served.store.remember(KEY, [Said(Role.USER, "x")])
        most = LIMITS[path]
        assert (await client.get(f"{path}?limit={most}")).status_code == 200
        for limit in (most + 1, 0, -1):
            assert problem_of(await client.get(f"{path}?limit={limit}"))["status"] == 422


async def test_a_page_is_full_without_being_asked() -> None:
    """Two hundred schedules on the first page, the rest on the next. (A29)"""
    async with open_served() as served, served.client(await served.secret()) as client:
        for _ in range(203):
            await make_schedule(served, "default")
        first = kept(await client.get("/v1/schedules"))
        assert (len(first["items"]), first["next"]) == (200, "200")
        rest = kept(await client.get("/v1/schedules?after=200"))
        assert ([one["id"] for one in rest["items"]], rest["next"]) == ([201, 202, 203], None)


async def test_the_newest_triggers_come_first() -> None:
    """What became of every slot and every call."""
    async with open_served() as served, served.client(await served.secret()) as client:
        number = await make_schedule(served, "default")
        for kind in (TriggerKind.MANUAL, TriggerKind.WEBHOOK):
            await served.office.jobs.run_now("default", number, kind=kind)

        async def ended() -> bool:
            page = kept(await client.get(f"/v1/schedules/{number}/triggers"))["items"]
            return [one["state"] for one in page].count("completed") == 2

        await until(ended)
        found = kept(await client.get(f"/v1/schedules/{number}/triggers"))["items"]
        assert [one["slot"] for one in found] == sorted((one["slot"] for one in found), reverse=True)
        assert {one["kind"] for one in found} == {"schedule", "manual", "webhook"}
