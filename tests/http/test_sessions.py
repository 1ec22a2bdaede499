"""Conversations over HTTP: how they are treated is set, cleared and kept, one thing at a time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from store.postgres import open_postgres
from store.records import Role, Said, SessionKey
from tests.http.calls import kept, something_of_everything, until
from tests.http.world import open_served, open_served_without_gateway, problem_of

if TYPE_CHECKING:
    from pathlib import Path

    from store.protocols import Store

KEY = SessionKey("default", "main", "http", "", "main")
EVERYTHING = {
    "mode": "collect",
    "cap": 3,
    "drop": "new",
    "debounce_ms": 0,
    "max_concurrent": 2,
    "zone": "Europe/Berlin",
}


async def test_a_policy_is_set_and_taken_back(whole: Store) -> None:
    """What is named is set, null takes it back, the rest stays; it is kept with the conversation. (L8)"""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        await whole.remember(KEY, [Said(Role.USER, "x")])
        path = f"/v1/sessions/{KEY}"
        assert kept(await client.patch(f"{path}/policy", json=EVERYTHING))["policy"] == EVERYTHING
        assert kept(await client.get(path))["policy"] == EVERYTHING
        assert kept(await client.patch(f"{path}/policy", json={}))["policy"] == EVERYTHING
        changed = EVERYTHING | {"cap": 5}
        assert kept(await client.patch(f"{path}/policy", json={"cap": 5}))["policy"] == changed
        for name in EVERYTHING:
            del changed[name]
            assert kept(await client.patch(f"{path}/policy", json={name: None}))["policy"] == changed
        found = await whole.session(KEY)
        assert found is not None
        assert found.lines == 1


async def test_a_policy_counts_from_the_next_message_on() -> None:
    """A cap of one that drops the newest: what comes while one waits is dropped, and is told so."""
    async with open_served(queue_debounce=0) as served, served.client(await served.secret()) as client:
        kept(await client.post("/v1/messages", json={"text": "hello", "wait": 30}))
        kept(await client.patch(f"/v1/sessions/{KEY}/policy", json={"cap": 1, "drop": "new", "max_concurrent": 1}))
        kept(await client.post("/v1/messages", json={"text": "count to 1000"}))

        async def is_busy() -> bool:
            return bool(kept(await client.get(f"/v1/sessions/{KEY}"))["running"])

        await until(is_busy)
        second = kept(await client.post("/v1/messages", json={"text": "second"}))
        third = kept(await client.post("/v1/messages", json={"text": "third", "wait": 30}))
        assert (second["state"], third["state"]) == ("accepted", "dropped")
        kept(await client.post(f"/v1/sessions/{KEY}/stop", json={"everything": True}))

        async def is_quiet() -> bool:
            shown = kept(await client.get(f"/v1/sessions/{KEY}"))
            return (shown["running"], shown["waiting"]) == (0, 0)

        await until(is_quiet)


async def test_nobody_is_written_to_who_has_never_said_anything() -> None:
    """A stop is answered in its conversation: one of another channel that never was is a 404, and nothing is sent."""
    async with open_served() as served, served.client(await served.secret()) as client:
        stranger = SessionKey("default", "main", "elsewhere", "bot", "42")
        answer = await client.post(f"/v1/sessions/{stranger}/stop", json={})
        assert (answer.status_code, problem_of(answer)["code"]) == (404, "not-found")
        await served.store.remember(stranger, [Said(Role.USER, "x")])
        assert (await client.post(f"/v1/sessions/{stranger}/stop", json={})).status_code == 202


async def test_conversations_that_are_not_there_are_not_made() -> None:
    """Looking at, changing and forgetting one that never was is a 404, and leaves nothing behind."""
    async with open_served() as served, served.client(await served.secret()) as client:
        for method, path, body in (
            ("GET", "", None),
            ("GET", "/transcript", None),
            ("PATCH", "/policy", {"cap": 3}),
            ("DELETE", "", None),
        ):
            answer = await client.request(method, f"/v1/sessions/{KEY}{path}", json=body)
            assert problem_of(answer)["status"] == 404
        assert await served.store.sessions("default") == ()


async def test_a_forgotten_conversation_is_gone(whole: Store) -> None:
    """Its lines and its policy; another's stay."""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        owned = await something_of_everything(served, "default")
        await whole.remember(KEY, [Said(Role.USER, "x")])
        kept(await client.patch(f"/v1/sessions/{KEY}/policy", json={"cap": 3}))
        assert kept(await client.delete(f"/v1/sessions/{KEY}")) == {"deleted": True}
        assert [one["key"] for one in kept(await client.get("/v1/sessions"))["items"]] == [
            owned.session.replace("%20", " ")
        ]
        assert (await client.get(f"/v1/sessions/{KEY}/transcript")).status_code == 404


async def test_lanes_are_resized_until_the_gateway_ends() -> None:
    """Read by everybody, set by operators; one that there is not is a 404. (L1)"""
    async with open_served() as served, served.client(await served.secret()) as operator:
        before = {lane["name"]: lane["limit"] for lane in kept(await operator.get("/v1/lanes"))["items"]}
        assert before == {"main": 2, "subagent": 4, "delegate": 100, "cron": 1, "heartbeat": 1}
        assert kept(await operator.put("/v1/lanes/cron", json={"limit": 7}))["limit"] == 7
        after = {lane["name"]: lane["limit"] for lane in kept(await operator.get("/v1/lanes"))["items"]}
        assert after == before | {"cron": 7}
        assert problem_of(await operator.put("/v1/lanes/none", json={"limit": 7}))["status"] == 404


async def test_settings_of_one_conversation_from_many_sides(whole: Store) -> None:
    """Different things that are set at once are all set."""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        await whole.remember(KEY, [Said(Role.USER, "x")])

        async def put(name: str) -> None:
            kept(await client.patch(f"/v1/sessions/{KEY}/policy", json={name: EVERYTHING[name]}))

        async with trio.open_nursery() as nursery:
            for name in EVERYTHING:
                nursery.start_soon(put, name)
        assert kept(await client.get(f"/v1/sessions/{KEY}"))["policy"] == EVERYTHING


async def test_two_gateways_that_set_different_things_both_do(database: str, tmp_path: Path) -> None:
    """One is asked for the cap, the other for the zone, at the same time: nothing that was answered 200 is lost."""
    async with open_postgres(database) as one, open_postgres(database) as two:
        await one.remember(KEY, [Said(Role.USER, "x")])
        async with (
            open_served_without_gateway(one, tmp_path / "one") as here,
            open_served_without_gateway(two, tmp_path / "two") as there,
            here.client(secret := await here.secret()) as a,
            there.client(secret) as b,
        ):
            path = f"/v1/sessions/{KEY}/policy"
            for number in range(1, 21):
                zone = ("Europe/Berlin", "UTC")[number % 2]
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(partial(a.patch, path, json={"cap": number}))
                    nursery.start_soon(partial(b.patch, path, json={"zone": zone}))
                found = await one.session(KEY)
                assert found is not None
                assert (found.standing.policy.cap, found.standing.policy.zone) == (number, zone)
