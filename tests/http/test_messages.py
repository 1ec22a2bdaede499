"""Messages over HTTP: kept before they are answered, followed to their end, found again by whoever comes back."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import orjson
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from gateway.access.scopes import USUAL
from gateway.followed import LOOK_S
from store.postgres import open_postgres
from store.postgres.bridge import open_bridge
from store.records import CHAT_LEASE
from tests.http.readers import Event, Line, open_line
from tests.http.world import open_served, open_served_without_gateway, problem_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    import httpx2

    from gateway.access.scopes import Scope
    from store.protocols import Store
    from tests.http.world import Served

MINUTE = timedelta(minutes=1)
STREAM: dict[str, Any] = {"path": "/v1/messages", "method": "POST", "Accept": "text/event-stream"}
ODD = "½ ✓ 🦀 e\u0301 \u202e abc \x01\x1b[31m\t\r\n\x7f\u2028 \ufeff \U0010ffff"


def say(served: Served, secret: str, text: str, *, key: str = "", **about: object) -> AbstractAsyncContextManager[Line]:
    """A message that is followed."""
    headers = {**STREAM, **({"Idempotency-Key": key} if key else {})}
    return open_line(served.url, secret, **headers, body=orjson.dumps({"text": text, **about}))


async def ended(line: Line, kept: list[Event] | None = None) -> dict[str, Any]:
    """What the stream's one `end` says, and nothing comes after it."""
    end = (await line.until("end", kept)).data
    assert await line.rest() == []
    assert line.end == "clean"
    return dict(end)


async def ask(client: httpx2.AsyncClient, text: str, *, key: str = "", **about: object) -> dict[str, Any]:
    headers = {"Idempotency-Key": key} if key else {}
    answer = await client.post("/v1/messages", json={"text": text, "wait": 30, **about}, headers=headers)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def test_a_message_is_followed_to_its_end(whole: Store, tmp_path: Path) -> None:
    """`accepted`, what is shown meanwhile, and one `end` with state and answer. (P6)"""
    async with open_served(whole, tmp_path) as served:
        events: list[Event] = []
        async with say(served, await served.secret("chat"), "count to 3") as line:
            accepted = await line.until("accepted")
            end = await ended(line, events)
        assert [event.data["text"] for event in events if event.kind == "delta"] == ["1 ", "2 ", "3 "]
        assert (end["state"], end["answer"], end["answers"]) == ("done", "I counted to 3.", [accepted.data["id"]])
        assert end["id"] == accepted.data["id"]


async def test_a_message_is_kept_when_it_is_accepted(whole: Store, tmp_path: Path) -> None:
    """202 without waiting, and asked again with the same key it tells how it is, and the answer in the end. (P1)"""
    async with open_served(whole, tmp_path) as served, served.client(await served.secret("chat")) as client:
        body, key = {"text": "count to 2"}, {"Idempotency-Key": "one"}
        first = await client.post("/v1/messages", json=body, headers=key)
        assert first.status_code == 202
        assert first.json()["state"] in ("accepted", "running")
        again = await client.post("/v1/messages", json={**body, "wait": 30}, headers=key)
        assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
        assert again.json()["answer"] == "I counted to 2."
        for wait in (0, 30):  # it has ended: nobody waits
            with trio.fail_after(5):
                once_more = await client.post("/v1/messages", json={**body, "wait": wait}, headers=key)
            assert once_more.status_code == 200
            assert once_more.json() == again.json()


async def test_who_goes_away_finds_the_answer(whole: Store, tmp_path: Path) -> None:
    """Cut off in the middle, the run goes on; the same key leads to its answer, also long afterwards. (P6)"""
    async with open_served(whole, tmp_path, queue_cap=1000) as served:
        secret = await served.secret("chat")
        async with say(served, secret, "count to 2", key="gone") as line:
            await line.until("delta")
        async with say(served, secret, "count to 2", key="gone") as line:
            assert (await ended(line))["answer"] == "I counted to 2."
        async with served.client(secret) as client:
            for number in range(40):
                await ask(client, f"hello {number}")
        async with say(served, secret, "count to 2", key="gone") as line:
            end = await ended(line)
            assert (end["state"], end["answer"]) == ("done", "I counted to 2.")


async def test_nobody_is_left_behind_by_clients_that_go_away() -> None:
    """What was opened for a client is gone with it."""
    async with open_served() as served:
        secret = await served.secret("chat")
        for _ in range(10):
            async with say(served, secret, "count to 1000", chat="x") as line:
                await line.until("accepted")
        with trio.fail_after(10):
            while len(served.office.streams) or served.office.followers.count:
                await wait_all_tasks_blocked(0.01)


# ── every end has its state and its words ────────────────────────────────────────────────────────────────────────────


async def test_a_failure_is_told(whole: Store, tmp_path: Path) -> None:
    """With what went wrong, at once and to whoever comes back. (P6)"""
    async with open_served(whole, tmp_path) as served, served.client(await served.secret("chat")) as client:
        first = await ask(client, "fail", key="f")
        assert first["state"] == "failed"
        assert "was asked to fail, and did" in first["answer"]
        assert await ask(client, "fail", key="f") == first


async def test_a_message_that_took_too_long_is_told() -> None:
    """The longest that a run may take is in the words. (P6)"""
    async with open_served(session_run_timeout=1) as served, served.client(await served.secret("chat")) as client:
        end = await ask(client, "count to 1000")
        assert end["state"] == "failed"
        assert "the longest a run may take" in end["answer"]


@pytest.mark.parametrize(("drop", "dropped"), [("old", 1), ("new", 2)])
async def test_a_message_that_gave_way_is_told(drop: str, dropped: int) -> None:
    """One runs and one may wait: of two that wait, the older or the newer one is dropped, and told so. (L7, P6)"""
    async with open_served(queue_cap=1, queue_drop=drop, session_max_dm=1) as served:
        secret = await served.secret("chat")
        async with say(served, secret, "count to 3") as running:
            await running.until("delta")
            async with say(served, secret, "first") as one:
                await one.until("accepted")
                async with say(served, secret, "second") as two:
                    await two.until("accepted")
                    gone, stayed = (one, two) if dropped == 1 else (two, one)
                    end = await ended(gone)
                    assert end["state"] == "dropped"
                    assert "send it again later" in end["answer"].lower()
                    assert (await ended(stayed))["state"] == "done"


async def test_a_message_that_is_stopped_is_told(whole: Store, tmp_path: Path) -> None:
    """`/stop` is answered, and whoever follows what it stopped hears that it was. (P6, P7)"""
    async with open_served(whole, tmp_path) as served:
        secret = await served.secret("chat")
        async with say(served, secret, "count to 1000", key="s") as line, served.client(secret) as client:
            await line.until("delta")
            assert (await ask(client, "/stop"))["answer"] == "Stopped 1 run."
            with trio.fail_after(10 * LOOK_S):
                end = await ended(line)
            assert (end["state"], end["answer"]) == ("stopped", "Stopped.")
            again = await ask(client, "count to 1000", key="s")
            assert (again["state"], again["answer"]) == ("stopped", "Stopped.")


async def test_a_message_that_kills_the_process_is_set_aside_and_told(whole: Store, tmp_path: Path) -> None:
    """After three attempts that never finished, whoever comes back with its key is told. (P6, R16)"""
    async with open_served_without_gateway(whole, tmp_path) as served:
        secret = await served.secret("chat")
        async with served.client(secret) as client:
            body, key = {"text": "hello"}, {"Idempotency-Key": "poison"}
            assert (await client.post("/v1/messages", json=body, headers=key)).status_code == 202
        for number in range(3):
            lease = await whole.acquire(CHAT_LEASE, f"life {number}", MINUTE)
            assert lease is not None
            messages = whole.messages(lease)
            (message,) = await messages.resume()
            assert await messages.begin(f"turn {number}", [message.id])
            await whole.release(lease)
    async with open_served(whole, tmp_path) as served, served.client(secret) as client:
        end = await ask(client, "hello", key="poison")
        assert end["state"] == "quarantined"
        assert end["answer"].startswith('Set aside after 3 attempts that never finished: "hello"')


# ── commands and rights ──────────────────────────────────────────────────────────────────────────────────────────────


ANSWERED = {
    "/stop": "Nothing to stop",
    "/stopall": "Nothing to stop",
    "/new": "A new conversation",
    "/status": "Lanes:",
    "/help": "Commands:",
    "/start": "Commands:",
    "/whoami": "You are test",
    "/queue": "mode",
    "/tz": "UTC",
    "/cron": "nothing",
    "/schedule": "/schedule",
    "/schedule every 1 hour: hello": "Scheduled #1",
    "/schedule nonsense": "phrase",
    "/nothing": "There is no command /nothing",
}
NEEDS: dict[str, Scope] = {
    "/queue mode steer": "admin",
    "/tz Europe/Berlin": "admin",
    "/schedule every 1 hour: hello": "schedule",
    "/cron cancel 1": "schedule",
    "/cron pause 1": "schedule",
    "/cron run 1": "schedule",
    "/cron list": "read",
    "/cron": "read",
    "/CRON WHY 1": "read",
    "/schedule@bot every 1 hour: hello": "schedule",
}


async def test_commands_are_answered() -> None:
    """As in any chat, with the usual scopes, and found again with the same key. (P6)"""
    async with open_served() as served, served.client(await served.secret(*USUAL)) as client:
        for number, (command, expected) in enumerate(ANSWERED.items()):
            end = await ask(client, command, key=f"c{number}")
            assert end["state"] == "done"
            assert expected.lower() in end["answer"].lower(), command
            assert await ask(client, command, key=f"c{number}") == end


async def test_a_command_needs_the_scope_of_the_route_that_does_the_same() -> None:
    """To chat alone is not enough to schedule or to change how a chat is treated; with the scope it is."""
    async with open_served() as served:
        for command, scope in NEEDS.items():
            async with served.client(await served.secret("chat")) as client:
                refused = await client.post("/v1/messages", json={"text": command})
                assert refused.status_code == 403, command
                assert f'"{scope}"' in problem_of(refused)["detail"]
        assert (await served.store.cron.counts("default")).active == 0
        for command, scope in NEEDS.items():
            async with served.client(await served.secret("chat", scope)) as client:
                assert (await ask(client, command))["state"] == "done"


async def test_all_tokens_of_a_tenant_share_a_conversation() -> None:
    """Both hear what is said in it, either may stop what runs there; what answers one's message ends only that."""
    async with open_served() as served:
        ann, bob = await served.secret("chat"), await served.secret("chat")
        async with say(served, ann, "count to 1000", chat="ours") as hers:
            assert (await hers.until("delta")).data["text"].strip().isdigit()
            async with say(served, bob, "say it", chat="ours") as his, served.client(bob) as client:
                assert (await his.until("delta")).data["text"].strip().isdigit()
                assert (await ask(client, "/stop", chat="ours"))["answer"].startswith("Stopped 1 run")
                assert (await ended(hers))["state"] == "stopped"
                assert "You said: say it" in (await ended(his))["answer"]


async def test_another_tenant_never_hears_anything() -> None:
    """The same chat and the same key lead to another conversation and another message. (P11)"""
    async with open_served() as served:
        ours, theirs = await served.secret("chat"), await served.tenant("theirs")
        events: list[Event] = []
        async with (
            say(served, ours, "count to 3", key="k", chat="c") as mine,
            say(served, theirs, "count to 2", key="k", chat="c") as other,
        ):
            assert (await ended(other, events))["answer"] == "I counted to 2."
            assert (await ended(mine))["answer"] == "I counted to 3."
        assert [event.data["text"] for event in events if event.kind == "delta"] == ["1 ", "2 "]


async def test_any_text_comes_back_as_it_was(whole: Store, tmp_path: Path) -> None:
    """Every character, and a hundred thousand of them."""
    async with open_served(whole, tmp_path) as served, served.client(await served.secret("chat", "read")) as client:
        for number, text in enumerate((ODD, "x" * 100_000, "🦀" * 25_000, "\x01")):
            end = await ask(client, text, chat=f"chat {number}")
            assert end["state"] == "done"
            lines = (await client.get(f"/v1/sessions/{end['session']}/transcript")).json()["items"]
            assert lines[0]["text"] == text


async def test_a_text_that_cannot_be_is_refused() -> None:
    """A problem, and nothing is kept."""
    async with open_served() as served, served.client(await served.secret("chat")) as client:
        for text in ("", "x" * 100_001, "half \ud800", "nul \0", 5, None):
            body = b'{"text": "%s"}' % escaped(text) if isinstance(text, str) else orjson.dumps({"text": text})
            answer = await client.post("/v1/messages", content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == 422, answer.text
        assert await served.store.sessions("default") == ()


def escaped(text: str) -> bytes:
    return "".join(one if one.isascii() and one.isalpha() else f"\\u{ord(one):04x}" for one in text).encode()


# ── a gateway that does not work on messages itself ──────────────────────────────────────────────────────────────────


async def test_what_is_handed_in_elsewhere_is_answered_and_followed(whole: Store, tmp_path: Path) -> None:
    """Only the API runs here: the message waits, another gateway answers it, and its end is heard here. (P1, P6)"""
    async with open_served_without_gateway(whole, tmp_path / "a") as here:
        secret = await here.secret(*USUAL)
        async with (
            say(here, secret, "hello", key="h") as line,
            say(here, secret, "/status", chat="other") as command,
            say(here, secret, "fail", chat="third") as failure,
        ):
            for one in (line, command, failure):
                await one.until("accepted")
            async with open_served(whole, tmp_path / "b"):
                assert "I am the demo agent" in (await ended(line))["answer"]
                assert "Lanes:" in (await ended(command))["answer"]
                end = await ended(failure)
                assert (end["state"], "did not work" in end["answer"]) == ("failed", True)


async def test_a_command_that_is_handed_in_elsewhere_is_not_stopped(whole: Store, tmp_path: Path) -> None:
    """It is kept as a command: a stop that is accepted after it lets it be answered. (P6)"""
    async with open_served_without_gateway(whole, tmp_path) as here:
        async with here.client(await here.secret("chat")) as client:
            assert (await client.post("/v1/messages", json={"text": "/status"})).status_code == 202
        lease = await whole.acquire(CHAT_LEASE, "test", MINUTE)
        assert lease is not None
        (message,) = await whole.messages(lease).resume()
        assert message.incoming.control
        assert await whole.messages(lease).stop(message.session, message.id) == ()


@asynccontextmanager
async def locked(database: str, table: str) -> AsyncIterator[None]:
    """Nobody gets at the table."""
    async with open_bridge() as bridge:
        connection = await bridge.run(asyncpg.connect, database)
        await bridge.run(connection.execute, f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        try:
            yield
        finally:
            await bridge.run(connection.close)


async def test_nothing_is_said_to_be_accepted_that_the_store_did_not_keep(database: str, tmp_path: Path) -> None:
    """While the store does not answer it is a problem that says so, for a stream too; later the same key works. (P1)"""
    async with open_postgres(database) as store, open_served(store, tmp_path) as served:
        secret, served.office.patience_s = await served.secret("chat"), 0.3
        for accept in ("application/json", "text/event-stream"):
            headers = {"Accept": accept, "Idempotency-Key": "late"}
            async with served.client(secret, **headers) as client, locked(database, "inbox"):
                answer = await client.post("/v1/messages", json={"text": "hello", "wait": 0})
                assert answer.status_code == 503
                assert "Idempotency-Key" in problem_of(answer)["next"]
        served.office.patience_s = 30
        async with say(served, secret, "hello", key="late") as line:
            assert "I am the demo agent" in (await ended(line))["answer"]


async def test_many_followers_cost_one_look(whole: Store, tmp_path: Path) -> None:
    """However many wait for messages that somebody else works on, the store is asked once for all of them. (P13)"""
    async with open_served_without_gateway(whole, tmp_path) as here:
        secret = await here.secret("chat")
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(hold, here, secret, number)
            with trio.fail_after(20):
                while here.office.followers.count < 50:
                    await wait_all_tasks_blocked(0.01)
            before = here.office.followers.looks
            await trio.sleep(3 * LOOK_S)
            assert here.office.followers.looks - before <= 4
            nursery.cancel_scope.cancel()


async def hold(served: Served, secret: str, number: int) -> None:
    async with say(served, secret, "hello", chat=f"chat {number}") as line:
        await line.rest()
