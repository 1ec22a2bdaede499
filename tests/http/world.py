"""What tests of the API start from: a whole gateway that is served on loopback, and clients with tokens for it.

There are sockets in it, so there is no clock that jumps: a test waits for what is to happen.
"""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import httpx2
import trio

from gateway.access.limits import USUAL_LIMITS, Limits
from gateway.access.scopes import SCOPES
from gateway.access.tokens import new_token
from gateway.clock import utc_now
from gateway.hiring import read_catalog
from gateway.http import service
from gateway.local import new_token as new_local_token
from gateway.stores import ALONE_LEASE, Opened, data_directory, open_store
from gateway.work import Setup, make_office, working
from store.memory import MemoryStore
from tests.flow.world import settings_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from gateway.access.scopes import Scope
    from gateway.office import Office
    from gateway.settings import Settings
    from store.protocols import Store

DEADLINE_S = 60.0
"""Nothing in these tests takes so long, unless it never ends."""


@dataclass
class Served:
    """A gateway that can be asked over HTTP."""

    office: Office
    url: str
    clients: trio.Nursery

    @property
    def store(self) -> Store:
        return self.office.store

    @asynccontextmanager
    async def client(self, secret: str | None = None, **headers: str) -> AsyncIterator[httpx2.AsyncClient]:
        """Somebody with this token, or with none."""
        given = {**({} if secret is None else {"Authorization": f"Bearer {secret}"}), **headers}
        async with httpx2.AsyncClient(
            base_url=self.url, headers=given, timeout=DEADLINE_S, trust_env=False, verify=False
        ) as client:
            yield client

    async def token(
        self, *scopes: Scope, tenant: str = "default", expires_at: datetime | None = None, name: str = "test"
    ) -> tuple[str, str]:
        """The id and the secret of a new token; with every scope, if none is named."""
        new, secret = new_token(tenant, name, scopes or SCOPES, expires_at)
        assert await self.store.add_token(new)
        return new.id, secret

    async def secret(self, *scopes: Scope, tenant: str = "default") -> str:
        return (await self.token(*scopes, tenant=tenant))[1]

    async def tenant(self, name: str) -> str:
        """A tenant of that name, and the secret of a token of its own with every scope but operator."""
        assert await self.store.create_tenant(name, name.title(), "UTC")
        return await self.secret(*(scope for scope in SCOPES if scope != "operator"), tenant=name)


@asynccontextmanager
async def open_served(
    store: Store | None = None,
    place: Path | None = None,
    limits: Limits = USUAL_LIMITS,
    *,
    deadline_s: float = DEADLINE_S,
    **variables: object,
) -> AsyncIterator[Served]:
    """A whole gateway with its demo agents, as `goclaw run` has it, and its API on a free port."""
    with TemporaryDirectory() as own:
        settings = settings_for(place or Path(own), **variables)
        url = ""

        def serving(address: str) -> None:
            nonlocal url
            url = address

        setup = Setup(settings, read_catalog(settings), limits=limits)
        opened = Opened(store or MemoryStore(utc_now), "test", ALONE_LEASE)
        with trio.fail_after(deadline_s):
            async with (
                working(setup, opened, [], lambda holder: None, serving=serving) as at_work,
                trio.open_nursery() as clients,
            ):
                yield Served(at_work.office, url, clients)
                clients.cancel_scope.cancel()


async def serve_for_ever(place: Path, token: str, limits: Limits) -> None:
    """The same for a process of its own, on files; its address is printed."""
    settings = settings_for(place, gateway_token=token)

    def serving(address: str) -> None:
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()

    async with (
        open_store(settings) as opened,
        working(
            Setup(settings, read_catalog(settings), limits=limits), opened, [], lambda holder: None, serving=serving
        ),
    ):
        await trio.sleep_forever()


@asynccontextmanager
async def open_served_without_gateway(
    store: Store, place: Path, limits: Limits = USUAL_LIMITS, **variables: object
) -> AsyncIterator[Served]:
    """Only the API: what another gateway's process, or one that waits for its turn, answers."""
    settings = settings_for(place, **variables)
    token = new_local_token()
    office = make_office(settings, store, read_catalog(settings).agents, token, limits=limits)
    with trio.fail_after(DEADLINE_S):
        async with trio.open_nursery() as nursery:
            run = partial(service.run, office, data_directory(settings), token)
            url: str = await nursery.start(run)
            yield Served(office, url, nursery)
            nursery.cancel_scope.cancel()


def settings_for(place: Path, **variables: object) -> Settings:
    usual = {"data_dir": place, "port": 0, "queue_debounce": 0, "http_rate": 100_000, "shutdown_grace": 1}
    return settings_of(**{**usual, **variables})


def problem_of(answer: httpx2.Response) -> dict[str, Any]:
    """The problem that an answer is, after a look at its form."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body: dict[str, Any] = answer.json()
    assert body["status"] == answer.status_code
    assert body["type"] == f"urn:goclaw:{body['code']}"
    assert body["title"]
    assert body["detail"]
    return body
