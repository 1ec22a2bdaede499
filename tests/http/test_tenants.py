"""Tenants: what is another's is as if it were not there, for every route that takes an id and every list. (S17, P11)"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from cron.jobs import Wish
from gateway.http.table import ACCESS
from gateway.persist import persist
from tests.http.calls import CALLS, first_event, kept, one_run, something_of_everything, until
from tests.http.look import everything, rows
from tests.http.world import open_served, problem_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from store.jobs import Job
    from store.protocols import Store
    from tests.http.calls import Owned
    from tests.http.world import Served

NEVER = {"schedule": 4_711, "run": "never", "session": "never:main:http::never::0", "token": "never", "tenant": "never"}
NEVER |= {"pairing": "never"}
WITH_IDS = [
    (method, path)
    for (method, path), need in ACCESS.items()
    if ("{id}" in path or "{key}" in path) and need != "operator"
]
LISTS = (
    "schedules",
    "runs",
    "runs?since=0",
    "notifications",
    "sessions",
    "tokens",
    "pairings",
    "status",
    "agents",
    "lanes",
)


@asynccontextmanager
async def two(store: Store) -> AsyncIterator[tuple[Served, Owned, httpx2.AsyncClient]]:
    """A gateway whose tenant `default` has something of everything, and a client of another tenant."""
    async with open_served(store) as served:
        secret = await served.tenant("them")
        ours = await something_of_everything(served, "default", 3)
        async with served.client(secret) as client:
            yield served, ours, client


def asked(owned: Owned, **never: Any) -> Owned:

    return replace(owned, **never)


async def test_the_id_of_another_is_no_id(whole: Store) -> None:
    """404 with the very words that an id gets which never was, and nothing is changed. (A27)"""
    async with two(whole) as (served, ours, client):
        before = await everything(served.store, ["default"])
        for method, path in WITH_IDS:
            answers = []
            for owned in (ours, asked(ours, **NEVER)):
                url = owned.path(path)
                answer = await client.request(method, url, json=CALLS[method, path].json)
                assert answer.status_code == 404, (method, url, answer.text)
                problem_of(answer)
                text = answer.text
                for name in ("session", "run", "token"):
                    text = text.replace(str(getattr(owned, name)), "ID")
                answers.append((text.replace(f"schedule {owned.schedule}", "schedule ID"), sorted(answer.headers)))
            assert answers[0] == answers[1], (method, path)
        assert await everything(served.store, ["default"]) == before


async def test_lists_hold_ones_own_and_nothing_else(whole: Store) -> None:
    """No list, count or figure of one tenant has anything of another."""
    async with two(whole) as (served, ours, client):
        for path in LISTS:
            answer = await client.get(f"/v1/{path}")
            text = answer.text
            assert answer.status_code == 200, text
            for theirs in ("default", ours.run, ours.session, ours.token):
                assert theirs not in text, path
        status = kept(await client.get("/v1/status"))
        assert status["schedules"] == {"active": 0, "paused": 0, "pending": 0, "executing": 0}
        assert (status["running"], status["next"]) == ([], [])
        assert "triggers" not in status["cron"]
        assert all(lane["started"] == 0 for lane in status["lanes"])
        for query in (f"runs?schedule={ours.schedule}", "tokens?tenant=default", "tokens?tenant=nobody"):
            assert (await client.get(f"/v1/{query}")).status_code == 404, query
        assert (await client.delete(f"/v1/tokens/{ours.token}?tenant=default")).status_code == 404
        assert ours.token in [one.new.id for one in await served.store.tokens("default")]


async def test_nothing_is_made_in_the_name_of_another() -> None:
    """Neither a token, nor a schedule that answers in another's conversation."""
    async with open_served() as served:
        secret = await served.tenant("them")
        ours = await something_of_everything(served, "default")
        before = await everything(served.store)
        async with served.client(secret) as client:
            for path, body in (
                ("tokens", {"name": "x", "scopes": ["read"], "tenant": "default"}),
                ("tokens", {"name": "x", "scopes": ["read"], "tenant": "nobody"}),
                ("schedules", {"message": "x", "every": "1h", "deliver_to": ours.session}),
                ("schedules", {"message": "x", "every": "1h", "deliver_to": NEVER["session"]}),
                ("schedules", {"message": "x", "every": "1h", "deliver_to": "no session"}),
            ):
                answer = await client.post(f"/v1/{path}", json=body)
                assert answer.status_code == 404, (body, answer.text)
        assert await everything(served.store) == before


async def test_events_of_others_are_not_heard(whole: Store) -> None:
    """The first thing that a stream hears after another's run is the tenant's own."""
    async with two(whole) as (served, ours, client), client.stream("GET", "/v1/notifications/stream") as heard:
        lines = heard.aiter_lines()
        assert await first_event(lines, "open") == {"ok": True}
        await one_run(served, "default", ours.schedule)
        mine = kept(await client.post("/v1/schedules", json={"message": "mine", "every": "1h"}))["id"]
        await one_run(served, "them", mine)
        heard_first = await first_event(lines, "notification")
        assert (heard_first["seq"], heard_first["task_id"]) == (1, mine)


async def test_a_tenant_takes_all_that_it_owns_along_and_nothing_else(whole: Store) -> None:
    """Schedules, runs, outputs, conversations, tokens, notifications: gone, and nobody else's. (A26)"""
    async with open_served(whole) as served, served.client(await served.secret()) as operator:
        secrets = {tenant: await served.tenant(tenant) for tenant in ("going", "staying")}
        for tenant in secrets:
            await something_of_everything(served, tenant)
        before = await everything(whole, ["default", "staying"])
        assert rows((await everything(whole, ["going"]))["going"]) > 8
        assert kept(await operator.delete("/v1/tenants/going")) == {"deleted": True}
        assert (await operator.get("/v1/tenants/going")).status_code == 404
        assert (await operator.delete("/v1/tenants/going")).status_code == 404
        assert await everything(whole, ["default", "staying"]) == before
        async with served.client(secrets["going"]) as gone:
            assert (await gone.get("/v1/me")).status_code == 401
        assert (await operator.post("/v1/tenants", json={"id": "going"})).status_code == 201
        assert rows((await everything(whole, ["going"]))["going"]) == 0
        async with served.client(secrets["staying"]) as stays:
            assert len(kept(await stays.get("/v1/schedules"))["items"]) == 1


async def test_the_tenant_of_the_gateway_stays() -> None:
    """Removing `default` is refused with a reason, and nothing is changed."""
    async with open_served() as served, served.client(await served.secret()) as operator:
        before = await everything(served.store)
        assert problem_of(await operator.delete("/v1/tenants/default"))["code"] == "rule-broken"
        assert await everything(served.store) == before


async def test_a_tenant_that_is_switched_off_does_nothing(whole: Store) -> None:
    """No fire, no token; switched on again its schedules are planned anew. (A28)"""
    async with open_served(whole) as served, served.client(await served.secret()) as operator:
        secret = await served.tenant("them")
        async with served.client(secret) as client:
            often = kept(await client.post("/v1/schedules", json={"message": "often", "every": "1s"}))["id"]
            assert kept(await operator.patch("/v1/tenants/them", json={"enabled": False}))["enabled"] is False
            assert (await client.get("/v1/me")).status_code == 401
            once = (await served.office.jobs.create(Wish("them", "main", "once", "in 1 second"))).id
            await until(partial(is_put_off, served, often))
            before = await whole.cron.runs("them", limit=1_000)  # of the time until it was switched off
            await until(partial(is_paused, served, once))
            assert [one.id for one in await whole.cron.runs("them", limit=1_000)] == [one.id for one in before]
            assert kept(await operator.patch("/v1/tenants/them", json={"enabled": True}))["enabled"] is True
            assert kept(await client.get("/v1/me"))["tenant"] == "them"
            assert kept(await client.get(f"/v1/schedules/{often}"))["status"] == "active"
            await until(partial(has_run, served, once))
            await until(partial(has_run, served, often))


async def job(served: Served, number: int) -> Job:
    return await served.office.jobs.get("them", number)


async def is_put_off(served: Served, number: int) -> bool:
    at = (await job(served, number)).next_at
    return at is not None and (at - served.office.now()).total_seconds() > 1_800


async def is_paused(served: Served, number: int) -> bool:
    return (await job(served, number)).status == "paused"


async def has_run(served: Served, number: int) -> bool:
    runs = await persist(partial(served.store.cron.runs, "them", job=number, since=None))
    return any(run.state == "succeeded" for run in runs)


@pytest.mark.parametrize("change", [{"name": "Tea"}, {"zone": "Europe/Berlin"}, {"name": "", "zone": "Asia/Tokyo"}])
async def test_a_tenant_is_renamed_and_moved(change: dict[str, str]) -> None:
    """What is named changes, the rest stays; what is made from now on is meant in the new zone."""
    async with open_served() as served, served.client(await served.secret()) as operator:
        async with served.client(await served.tenant("them")) as client:
            before = kept(await operator.get("/v1/tenants/them"))
            after = kept(await operator.patch("/v1/tenants/them", json=change))
            assert after == {**before, **change}
            assert kept(await operator.get("/v1/tenants/them")) == after
            made = kept(await client.post("/v1/schedules", json={"message": "x", "when": "every day at 9am"}))
            assert made["zone"] == after["zone"]
        bad = await operator.patch("/v1/tenants/them", json={"name": "no", "zone": "Mars/Base"})
        assert problem_of(bad)["code"] == "bad-zone"
        assert kept(await operator.get("/v1/tenants/them")) == after
        assert (await operator.patch("/v1/tenants/nobody", json=change)).status_code == 404
