"""A sound request for every route of the API, and a tenant that has something of everything."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import trio

from cron.jobs import Wish
from gateway.access.pairing import id_of
from gateway.http.app import make_api, routes_of
from gateway.persist import persist
from store.jobs import Delivery
from store.pairing import Knock, Sender
from store.records import Role, Said, SessionKey, SessionPolicy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    import httpx2

    from store.jobs import Run
    from store.protocols import Store
    from tests.http.world import Served


@dataclass(frozen=True)
class Call:
    """What is sent besides the path."""

    json: Any = None


SCHEDULE = {"message": "look", "when": "every day at 09:00"}
CALLS: dict[tuple[str, str], Call] = {
    ("GET", "/healthz"): Call(),
    ("GET", "/readyz"): Call(),
    ("GET", "/openapi.json"): Call(),
    ("GET", "/metrics"): Call(),
    ("GET", "/v1/me"): Call(),
    ("GET", "/v1/status"): Call(),
    ("GET", "/v1/agents"): Call(),
    ("POST", "/v1/schedules/preview"): Call({"when": "every day at 09:00"}),
    ("GET", "/v1/schedules"): Call(),
    ("POST", "/v1/schedules"): Call(SCHEDULE),
    ("GET", "/v1/schedules/{id}"): Call(),
    ("PATCH", "/v1/schedules/{id}"): Call({"name": "another", "status": "paused"}),
    ("DELETE", "/v1/schedules/{id}"): Call(),
    ("POST", "/v1/schedules/{id}/run"): Call(),
    ("POST", "/v1/schedules/{id}/trigger"): Call(),
    ("PUT", "/v1/schedules/{id}/hints"): Call({"interval": "30m"}),
    ("DELETE", "/v1/schedules/{id}/hints"): Call(),
    ("GET", "/v1/schedules/{id}/triggers"): Call(),
    ("GET", "/v1/schedules/{id}/why"): Call(),
    ("GET", "/v1/runs"): Call(),
    ("GET", "/v1/runs/{id}"): Call(),
    ("GET", "/v1/runs/{id}/output"): Call(),
    ("GET", "/v1/notifications"): Call(),
    ("GET", "/v1/notifications/stream"): Call(),
    ("POST", "/v1/messages"): Call({"text": "hello"}),
    ("GET", "/v1/sessions"): Call(),
    ("GET", "/v1/sessions/{key}"): Call(),
    ("DELETE", "/v1/sessions/{key}"): Call(),
    ("GET", "/v1/sessions/{key}/transcript"): Call(),
    ("PATCH", "/v1/sessions/{key}/policy"): Call({"cap": 3}),
    ("POST", "/v1/sessions/{key}/stop"): Call({}),
    ("GET", "/v1/lanes"): Call(),
    ("PUT", "/v1/lanes/{name}"): Call({"limit": 7}),
    ("GET", "/v1/workers"): Call(),
    ("GET", "/v1/tokens"): Call(),
    ("POST", "/v1/tokens"): Call({"name": "new", "scopes": ["read"]}),
    ("DELETE", "/v1/tokens/{id}"): Call(),
    ("GET", "/v1/pairings"): Call(),
    ("POST", "/v1/pairings/approve"): Call({"code": "N0TH1NGX"}),
    ("POST", "/v1/pairings/deny"): Call({"code": "N0TH1NGX"}),
    ("DELETE", "/v1/pairings/{id}"): Call(),
    ("GET", "/v1/tenants"): Call(),
    ("POST", "/v1/tenants"): Call({"id": "new"}),
    ("GET", "/v1/tenants/{id}"): Call(),
    ("PATCH", "/v1/tenants/{id}"): Call({"enabled": False, "name": "another"}),
    ("DELETE", "/v1/tenants/{id}"): Call(),
}
LEAP_DAY = "0 0 29 2 *"
"""Does not fire while a test runs."""
STREAM = "/v1/notifications/stream"


def served_routes(served: Served) -> set[tuple[str, str]]:
    """Every route that there is, by method and path."""
    routes = routes_of(make_api(served.office))
    return {(method, route.path_format) for route in routes for method in route.methods or ()}


@dataclass(frozen=True)
class Owned:
    """What a tenant has, by the ids under which it is asked for."""

    tenant: str
    schedule: int
    run: str
    session: str
    token: str
    pairing: str

    def path(self, path: str) -> str:
        kind = path.split("/")[2] if path.count("/") > 1 else ""
        ids = {"schedules": self.schedule, "runs": self.run, "tokens": self.token, "tenants": self.tenant}
        ids |= {"pairings": self.pairing}
        return path.format(id=ids.get(kind, ""), key=quote(self.session, safe=":"), name="main")


async def something_of_everything(served: Served, tenant: str, number: int = 1) -> Owned:
    """A schedule with a run that has ended and one that is to come, a conversation with a policy, a token, a person.

    ``number`` schedules are made: the last one is what is told.
    """
    store, session = served.store, SessionKey(tenant, "main", "http", "", f"chat of {tenant}")
    await store.remember(session, [Said(Role.USER, f"said in {tenant}"), Said(Role.ASSISTANT, "yes")])
    await store.set_policy(session, SessionPolicy(cap=5))
    for _ in range(number - 1):
        await make_schedule(served, tenant, session)
    schedule = await make_schedule(served, tenant, session)
    run = await one_run(served, tenant, schedule)
    token, _ = await served.token("read", tenant=tenant, name=f"token of {tenant}")
    return Owned(tenant, schedule, run.id, str(session), token, await somebody_let_in(store, tenant))


async def somebody_let_in(store: Store, tenant: str) -> str:
    who = Sender("fake", "bot", f"sender of {tenant}")
    assert await store.knock(Knock(who, f"name of {tenant}", f"code of {tenant}"))
    assert await store.approve(f"code of {tenant}", tenant, "test")
    return id_of(who)


async def make_schedule(served: Served, tenant: str, session: SessionKey | None = None) -> int:
    wish = Wish(tenant, "main", f"message of {tenant}", LEAP_DAY, f"job of {tenant}", deliver_to=session)
    return (await served.office.jobs.create(wish)).id


async def one_run(served: Served, tenant: str, schedule: int) -> Run:
    """A run that has ended, its answer where it belongs, made by the demo agent."""
    cron = served.store.cron
    fired = await served.office.jobs.run_now(tenant, schedule)

    async def its() -> list[Run]:
        found = await persist(partial(cron.runs, tenant, job=schedule))
        ended = [run for run in found if run.trigger == fired.id and run.ended_at is not None]
        return [run for run in ended if run.delivery is not Delivery.WAITING]

    await until(its)
    return (await its())[0]


async def until(holds: Callable[[], Awaitable[object]]) -> None:
    """Look again and again; the world's own deadline ends it."""
    while not await holds():  # noqa: ASYNC110 - other processes tell nothing
        await trio.sleep(0.01)


async def first_event(lines: AsyncIterator[str], kind: str) -> dict[str, Any]:
    """The data of the next event of that kind; what is said of others is passed over."""
    while await anext(lines) != f"event: {kind}":
        pass
    found: dict[str, Any] = json.loads((await anext(lines)).removeprefix("data: "))
    return found


def kept(answer: httpx2.Response) -> Any:
    assert answer.status_code < 300, answer.text
    return answer.json()
