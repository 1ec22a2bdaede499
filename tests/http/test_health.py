"""Whether it lives and whether it is ready, asked by somebody without a token."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import trio

from gateway.clock import utc_now
from gateway.http import health
from gateway.metrics import lag, pulse
from gateway.stores import ALONE_LEASE
from store.memory import MemoryStore
from store.postgres import open_postgres
from store.records import CHAT_LEASE
from tests.http.hanging import Hanging
from tests.http.world import open_served, open_served_without_gateway
from tests.postgres.proxy import proxied

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2
    import pytest

IN_TIME_S = pulse.PATIENCE_S + 2.0


async def until_status(client: httpx2.AsyncClient, status: int) -> httpx2.Response:
    while True:
        answer = await client.get("/readyz")
        if answer.status_code == status:
            return answer
        await trio.sleep(0.05)


async def test_a_gateway_that_works_is_ready() -> None:
    """Both answer without a token, and with nothing but how it is. (S7)"""
    async with open_served() as served, served.client() as nobody:
        assert (await nobody.get("/healthz")).json() == {"status": "ok"}
        ready = await nobody.get("/readyz")
        assert ready.status_code == 200
        assert ready.json() == {"status": "ok", "gateway": "working", "problems": []}


async def test_one_that_stands_by_is_ready_too(tmp_path: Path) -> None:
    """It keeps what is handed in for the gateway that holds the lease, so it may be sent requests."""
    store = MemoryStore(utc_now)
    store.grant(CHAT_LEASE, "another", ALONE_LEASE)
    async with open_served_without_gateway(store, tmp_path) as served, served.client() as nobody:
        ready = await nobody.get("/readyz")
        assert (ready.status_code, ready.json()["gateway"]) == (200, "waiting")


async def test_a_service_that_rests_makes_it_unready() -> None:
    """The service is named, its error is not. It is ready again with the service."""
    async with open_served() as served, served.client() as nobody:
        gateway = served.office.gateway
        assert gateway is not None
        well = trio.Event()

        async def stumble() -> None:
            if not well.is_set():
                raise RuntimeError("the password is secret")

        gateway.supervisor.start("of a kind", stumble)
        answer = await until_status(nobody, 503)
        assert answer.json()["problems"] == [
            "the service of a kind rests after a failure and is started again",
        ]
        assert "secret" not in answer.text
        assert (await nobody.get("/healthz")).status_code == 200
        well.set()
        await until_status(nobody, 200)


async def test_a_service_that_nobody_waits_for_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are answered without traces, tidying up and hints about waiting: those may rest."""
    async with open_served() as served, served.client() as nobody:
        gateway = served.office.gateway
        assert gateway is not None
        assert {one.name for one in gateway.health()} > health.BESIDE - {"telegram_signs"}
        monkeypatch.setattr(health, "BESIDE", health.BESIDE | {"of a kind"})
        failed = trio.Event()

        async def stumble() -> None:
            failed.set()
            raise RuntimeError("away")

        gateway.supervisor.start("of a kind", stumble)
        await failed.wait()
        assert (await nobody.get("/readyz")).status_code == 200
        assert {one.name: one.state for one in gateway.health()}["of a kind"] == "resting"


async def test_a_store_that_hangs_is_told_in_time_and_asked_once(tmp_path: Path) -> None:
    """However many probes come, each is answered within two seconds or so, and one question waits for the store."""
    store = Hanging()
    async with open_served_without_gateway(store, tmp_path) as served, served.client() as nobody:
        assert (await nobody.get("/readyz")).status_code == 200
        await trio.sleep(pulse.FRESH_S)  # what was answered before counts for so long
        store.hangs.set()
        took: list[float] = []

        async def probe() -> None:
            began = trio.current_time()
            answer = await nobody.get("/readyz")
            took.append(trio.current_time() - began)
            assert answer.status_code == 503
            assert answer.json()["problems"] == ["the store does not answer"]

        for _ in range(2):
            async with trio.open_nursery() as nursery:
                for _ in range(20):
                    nursery.start_soon(probe)
        assert len(took) == 40
        assert max(took) < IN_TIME_S
        assert max(took[20:]) < pulse.PATIENCE_S, "nobody waits for a question that is overdue"
        assert store.asked == 1
        assert (await nobody.get("/healthz")).status_code == 200
        store.goes_on.set()
        store.hangs = trio.Event()
        await until_status(nobody, 200)


async def test_a_database_that_is_away_is_told_in_time(database: str) -> None:
    """The wire goes dead: 503 within two seconds or so, and ready again when it is back. (R12)"""
    async with (
        proxied(database) as proxy,
        open_postgres(proxy.dsn, connections=4) as store,
        open_served(store, postgres_lease=300) as served,
        served.client() as nobody,
    ):
        assert (await nobody.get("/readyz")).status_code == 200
        proxy.go_dead()
        answer = await until_status(nobody, 503)
        assert "the store does not answer" in answer.json()["problems"]
        began = trio.current_time()
        assert (await nobody.get("/readyz")).status_code == 503
        assert trio.current_time() - began < IN_TIME_S
        assert (await nobody.get("/healthz")).status_code == 200
        proxy.come_back()
        await until_status(nobody, 200)


async def test_a_loop_that_stood_still_is_unready_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing answers while it stands still; afterwards it is said for a while, counted, and then forgotten. (R21)"""
    monkeypatch.setattr(lag, "STALL_S", 0.8)
    monkeypatch.setattr(health, "STALLED_S", 2.0)
    async with open_served() as served, served.client() as nobody:
        assert (await nobody.get("/readyz")).status_code == 200  # from now on it is measured
        await until_measured(served.office.lag)
        hold_the_loop(1.5)
        answer = await until_status(nobody, 503)
        assert answer.json()["problems"][0].startswith("nothing went on here for ")
        assert served.office.lag.stalls >= 1
        assert served.office.lag.worst_s() >= 0.8
        assert (await nobody.get("/healthz")).status_code == 200
        await until_status(nobody, 200)


async def until_measured(measuring: lag.Lag) -> None:
    while True:
        if measuring.late_s.total:
            return
        await trio.sleep(0.05)


def hold_the_loop(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
