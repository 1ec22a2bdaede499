"""What operators are told in figures, scraped from a gateway that works."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
from prometheus_client import CollectorRegistry, generate_latest

from gateway.clock import utc_now
from gateway.metrics.families import FAMILIES
from gateway.metrics.pulse import FRESH_S, PATIENCE_S
from gateway.metrics.reading import Reading
from gateway.stores import ALONE_LEASE
from scheduler import Policy, Request
from store.files import open_json
from store.memory import MemoryStore
from store.postgres import open_postgres
from store.records import CHAT_LEASE, Role, Said, SessionKey
from tests.http.exposed import add_missed_job, scrape, until, work_a_moment
from tests.http.hanging import Hanging
from tests.http.world import open_served, open_served_without_gateway, problem_of

if TYPE_CHECKING:
    from pathlib import Path

    from scheduler import Run
    from store.protocols import Store
    from tests.http.exposed import Exposed

CANARY = "canary-3f1c0d9b7a5e"
COUNTING = {"counter", "histogram"}


async def test_figures_tell_what_happened() -> None:
    """Answers, failures, drops, stops, helpers, replies and jobs that ran, failed or were missed are all counted."""
    store = MemoryStore(utc_now)
    await add_missed_job(store)
    async with open_served(
        store, queue_cap=1, cron_catch_up="skip", cron_retry_base=3600, cron_retry_max=7200
    ) as served:
        now = await work_a_moment(served)
    assert now("goclaw_working") == 1
    assert now("goclaw_runs_total", agent="main", of="message", status="done") == 2
    assert now("goclaw_runs_total", agent="main", of="message", status="failed") == 1
    assert now("goclaw_runs_total", agent="main", of="message", status="cancelled") == 1
    assert now("goclaw_runs_total", of="subagent", status="done") == 2
    assert now("goclaw_messages_ended_total", lane="main", end="done") == 2
    assert now("goclaw_messages_ended_total", lane="main", end="failed") == 1
    assert now("goclaw_messages_ended_total", lane="main", end="dropped") == 1
    assert now("goclaw_messages_ended_total", lane="main", end="cancelled") == 2
    assert now("goclaw_answer_duration_seconds_count") == 2
    assert now("goclaw_lane_wait_seconds_count", lane="main") == now("goclaw_lane_started_total", lane="main") == 4
    assert now("goclaw_tool_calls_total", tool="spawn_subagent", status="ok") == 2
    assert now("goclaw_channel_messages_total", channel="http", outcome="accepted") == 7
    assert now("goclaw_channel_replies_total", channel="http", outcome="delivered") >= 5
    assert now("goclaw_cron_runs_total", outcome="succeeded") == 1
    assert now("goclaw_cron_runs_total", outcome="failed") == now("goclaw_cron_retries_total") == 1
    assert now("goclaw_cron_lateness_seconds_count") == 2
    assert now("goclaw_cron_slots_skipped_total", reason="missed") == 49
    assert now("goclaw_http_requests_total", method="POST", route="/v1/messages", status="202") == 3
    assert now("goclaw_http_requests_total", route="/v1/messages", status="200") == 3
    assert now("goclaw_store_calls_total", verb="accept") >= 6
    assert now("goclaw_store_up") == 1
    assert now("goclaw_service_up") == 7
    assert now("goclaw_workers") == 1
    assert now("process_resident_memory_bytes") > 1e7


async def test_every_figure_is_the_table_s() -> None:
    """What is exposed has the kind, the labels and the words of the one table, and all of the table is exposed."""
    async with open_served(queue_cap=1, cron_retry_base=3600, cron_retry_max=7200) as served:
        now = await work_a_moment(served)
    assert now.kinds == {name: family.kind for name, family in FAMILIES.items()}
    assert now.abouts == {name: family.about for name, family in FAMILIES.items()}
    for name, family in FAMILIES.items():
        of = f"{name}_count" if family.kind == "histogram" else name
        assert now.labels_of(of) in (set(), set(family.labels)), name


async def test_what_is_counted_never_becomes_less() -> None:
    """Whatever happens between two looks, counters and histograms only rise."""
    async with open_served(queue_cap=1, cron_retry_base=3600, cron_retry_max=7200) as served:
        before = await work_a_moment(served)
        async with served.client(await served.secret()) as client:
            await client.post("/v1/messages", json={"text": "fail", "wait": 30})
            after = await scrape(client)
    counting = {
        one for one, kind in before.kinds.items() if kind in COUNTING for one in (one, f"{one}_bucket", f"{one}_count")
    }
    compared = {series: value for series, value in before.values.items() if series[0] in counting}
    assert len(compared) > 300
    assert {series for series, value in compared.items() if after.values[series] < value} == set()
    assert after("goclaw_runs_total") == before("goclaw_runs_total") + 1


async def test_nobody_is_named_in_figures() -> None:
    """No text, chat, name, session, token or secret is anywhere in it. (P11, P12, S15)"""
    token = f"{CANARY}-of-the-gateway"
    async with open_served(queue_cap=1, cron_retry_base=3600, cron_retry_max=7200, gateway_token=token) as served:
        tenant = await served.tenant("acme")
        async with served.client(tenant) as other:
            await other.post("/v1/messages", json={"text": CANARY, "chat": CANARY, "wait": 30})
            await other.get(f"/v1/sessions/{CANARY}")
            await other.get(f"/{CANARY}")
            session = SessionKey("acme", "main", CANARY, "", CANARY)
            await served.store.remember(session, [Said(Role.USER, CANARY)])
            stop = await other.post(f"/v1/sessions/{session}/stop", json={})
            assert stop.status_code == 202, stop.text
            await other.request(CANARY.upper(), "/v1/me")
            await other.get("/v1/me", headers={"Authorization": f"Bearer {CANARY}"})
        now = await work_a_moment(served, about=CANARY)
    assert CANARY not in now.text.lower()
    assert "acme" not in now.text
    assert "session=" not in now.text
    assert now("goclaw_http_requests_total", route="none", status="404", method="GET") == 1
    assert now("goclaw_http_requests_total", method="other") == 1


@pytest.mark.parametrize("scope", ["read", "chat", "schedule", "admin"])
async def test_only_operators_see_figures(scope: str) -> None:
    """They are of all tenants together: a token with another scope is refused, and nobody comes without one. (S7)"""
    async with open_served() as served:
        async with served.client(await served.secret(scope)) as client:  # type: ignore[arg-type]  # one of the scopes
            assert problem_of(await client.get("/metrics"))["status"] == 403
        async with served.client() as nobody:
            assert problem_of(await nobody.get("/metrics"))["status"] == 401


async def test_a_gateway_that_stands_by_tells_what_it_can(tmp_path: Path) -> None:
    """Without the chat lease there are no lanes to tell of; the process, store and API are told all the same."""
    store = MemoryStore(utc_now)
    store.grant(CHAT_LEASE, "another", ALONE_LEASE)
    async with open_served_without_gateway(store, tmp_path) as served, served.client(await served.secret()) as client:
        now = await scrape(client)
        assert now("goclaw_working") == 0
        assert now("goclaw_store_up") == 1
        assert "goclaw_lane_slots" not in now.names
        assert now("process_open_fds") > 0


async def test_figures_are_there_while_the_store_is_not(tmp_path: Path) -> None:
    """With the gateway's own token, which needs no store: in time, without what the store would have told."""
    store = Hanging()
    async with open_served_without_gateway(store, tmp_path, gateway_token=CANARY) as served:
        store.hangs.set()
        async with served.client(CANARY) as client:
            began = trio.current_time()
            now = await scrape(client)
            assert trio.current_time() - began < 2 * PATIENCE_S
        store.goes_on.set()
    assert now("goclaw_store_up") == 0
    assert now("goclaw_store_answer_seconds") >= PATIENCE_S
    assert "goclaw_workers" not in now.names
    assert now("goclaw_build_info") == 1


async def test_streams_and_connections_are_counted() -> None:
    """While somebody follows the news there is one more of each, and one less afterwards."""
    async with open_served() as served, served.client(await served.secret()) as client:
        before = await scrape(client)
        async with (
            served.client(await served.secret()) as follower,
            follower.stream("GET", "/v1/notifications/stream") as stream,
        ):
            assert stream.status_code == 200
            during = await until(client, lambda now: now("goclaw_http_streams_open") == 1)
            assert during("goclaw_http_requests_open") == before("goclaw_http_requests_open") + 1
            assert during("goclaw_http_connections") == before("goclaw_http_connections") + 1
        await until(client, lambda now: now("goclaw_http_streams_open") == 0)
        await until(client, lambda now: now("goclaw_http_connections") == before("goclaw_http_connections"))


async def test_the_stores_verbs_are_counted_on_files(tmp_path: Path) -> None:
    """The store in files is measured by the same names."""
    async with open_json(tmp_path / "store", utc_now) as store:
        await measured_verbs(store)


async def test_the_stores_verbs_are_counted_on_postgres(database: str) -> None:
    """The store in a database is measured by the same names."""
    async with open_postgres(database) as store:
        await measured_verbs(store)


def is_counted(verb: str, now: Exposed) -> bool:
    return now("goclaw_store_calls_total", verb=verb) >= 1


async def measured_verbs(store: Store) -> None:
    """Have a message answered, and see that every verb that this took was measured."""
    async with open_served(store) as served, served.client(await served.secret()) as client:
        await client.post("/v1/messages", json={"text": "hello", "wait": 30})
        for verb in ("accept", "begin", "settle", "claim", "beat", "sent"):
            await until(client, partial(is_counted, verb))


async def test_a_scrape_looks_through_nothing() -> None:
    """The store is asked three small questions, whatever it holds: who asks, whether it answers, who works on it."""
    async with open_served() as served, served.client(await served.secret()) as client:

        async def asked_between_two() -> set[str]:
            before = await scrape(client)
            await trio.sleep(FRESH_S)
            after = await scrape(client)
            calls = {dict(labels)["verb"] for name, labels in after.values if name == "goclaw_store_calls_total"}
            return {one for one in calls if rose(before, after, one)}

        while not await asked_between_two() <= {"token_for", "tenant", "workers"}:
            pass  # cron looked after itself meanwhile


def rose(before: Exposed, after: Exposed, verb: str) -> bool:
    return after("goclaw_store_calls_total", verb=verb) > before("goclaw_store_calls_total", verb=verb)


async def test_ten_thousand_conversations_that_wait_are_read_quickly() -> None:
    """Some milliseconds of the loop; far from what anybody would notice, on a slow machine too."""
    async with open_served() as served:
        gateway = served.office.gateway
        assert gateway is not None

        async def wait(run: Run) -> None:
            await trio.sleep_forever()

        for number in range(10_000):
            gateway.scheduler.schedule(Request(session=f"chat {number}", handler=wait, policy=Policy(debounce_s=0)))
        seen, took, text = await served.office.pulse.feel(), [], ""
        for _ in range(20):
            began = time.perf_counter()
            registry = CollectorRegistry()
            registry.register(Reading(served.office, seen))
            text = generate_latest(registry).decode()
            took.append(time.perf_counter() - began)
        assert 'goclaw_lane_waiting{lane="main"} 9998.0' in text
        assert min(took) < 0.05


async def test_lag_is_measured_while_somebody_looks() -> None:
    """The first look sets the measuring off; the next ones see it."""
    async with open_served() as served, served.client(await served.secret()) as client:
        assert (await scrape(client))("goclaw_loop_lag_seconds_count") == 0
        with trio.fail_after(30):
            await until(client, lambda now: now("goclaw_loop_lag_seconds_count") >= 2)
