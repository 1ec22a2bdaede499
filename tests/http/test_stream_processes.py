"""The real command, several of them on one database: what is told by one is heard by the readers of both. (A24, P1)"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import httpx2
import orjson
import pytest
import trio

from gateway.access.scopes import SCOPES
from gateway.access.tokens import new_token
from gateway.local import Local, find
from store.postgres import open_postgres
from tests.flow.process import over_pipes
from tests.http.firing import fire, make_jobs, ran
from tests.http.readers import Reader, kept, open_line
from tests.http.world import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.flow.process import Process

SETTINGS: dict[str, Any] = {
    "port": 0,
    "queue_debounce": 0,
    "lane_cron": 10,
    "cron_max_jitter": 0,
    "http_rate": 10_000,
    "shutdown_grace": 0,
}
STREAM: dict[str, Any] = {"path": "/v1/messages", "method": "POST", "Accept": "text/event-stream"}


@contextmanager
def gateway(place: Path, **settings: object) -> Iterator[tuple[Process, Local]]:
    place.mkdir(exist_ok=True)
    with over_pipes(place, "run", **(SETTINGS | settings)) as process:
        process.expect("goclaw listens on")
        local = find(place / "data")
        assert local is not None
        yield process, local


def client(local: Local) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {local.token}"}
    return httpx2.AsyncClient(base_url=local.url, headers=headers, timeout=DEADLINE_S, trust_env=False)


async def test_readers_of_two_gateways_hear_what_both_run(tmp_path: Path, database: str) -> None:
    """Jobs of one tenant fired through both and run by both; readers of either, cut off now and then, see all. (A24)"""
    with (
        gateway(tmp_path / "a", postgres_dsn=database) as (_, one),
        gateway(tmp_path / "b", postgres_dsn=database) as (_, two),
        trio.fail_after(DEADLINE_S),
    ):
        async with open_postgres(database) as store, client(one) as first, client(two) as second:
            new, secret = new_token("default", "reader", SCOPES, None)
            assert await store.add_token(new)
            urls = [one.url, two.url]
            readers = [Reader([urls[number % 2]], secret) for number in range(4)]
            readers += [Reader(urls, secret, Random(number)) for number in range(6)]
            async with trio.open_nursery() as nursery:
                for reader in readers:
                    nursery.start_soon(reader.follow)
                for reader in readers:
                    await reader.opened.wait()
                await fire([first, second], await make_jobs(first, 10), 60)
                newest = await ran(store, 60)
                for reader in readers:
                    await reader.until(newest)
                nursery.cancel_scope.cancel()
            workers = {run.worker for run in await store.cron.runs("default", limit=100)}
            assert len(workers) == 2, "only one of them ran jobs: this shows little"
            expected = await kept(store)
            assert expected == list(range(1, newest + 1))
            for reader in readers:
                assert reader.seen == expected


async def test_a_message_is_answered_by_the_gateway_that_has_the_chat(tmp_path: Path, database: str) -> None:
    """Handed in at the other one, it is followed there to its answer, and its commands too. (P6)"""
    with (
        gateway(tmp_path / "a", postgres_dsn=database),
        gateway(tmp_path / "b", postgres_dsn=database) as (waits, two),
        trio.fail_after(DEADLINE_S),
    ):
        await trio.to_thread.run_sync(waits.expect, "works on the messages")
        body = orjson.dumps({"text": "count to 2"})
        async with open_line(two.url, two.token, **STREAM, body=body) as line:
            assert (await line.until("end")).data["answer"] == "I counted to 2."
        async with client(two) as asks:
            for text, expected in (("/help", "Commands:"), ("fail", "did not work"), ("/stop", "Nothing to stop")):
                answer = (await asks.post("/v1/messages", json={"text": text, "wait": 30})).json()
                assert expected in answer["answer"], answer


@pytest.fixture(params=["files", "postgres"])
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "files":
        return {}
    return {"postgres_lease": 5, "postgres_dsn": request.getfixturevalue("database")}


async def test_what_was_accepted_is_answered_after_a_kill(tmp_path: Path, settings: dict[str, Any]) -> None:
    """SIGKILL right after `accepted`: started again, the same key leads to the answer of the same message. (P1)"""
    headers: dict[str, Any] = {**STREAM, "Idempotency-Key": "once"}
    body, ids, token = orjson.dumps({"text": "count to 1"}), [], "x" * 40
    for last in (False, False, True):
        with gateway(tmp_path / "a", gateway_token=token, **settings) as (process, local), trio.fail_after(DEADLINE_S):
            async with open_line(local.url, token, **headers, body=body) as line:
                ids.append((await line.until("accepted")).data["id"])
                if last:
                    end = (await line.until("end")).data
                    assert (end["state"], end["answer"]) == ("done", "I counted to 1.")
                else:
                    await trio.to_thread.run_sync(partial(process.kill))
    assert len(set(ids)) == 1
