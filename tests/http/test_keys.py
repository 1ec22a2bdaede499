"""Idempotency-Key: the same request twice is one thing, at once or after a restart; another request is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import trio

from gateway.clock import utc_now
from store.files import open_json
from tests.http.calls import kept, something_of_everything, until
from tests.http.look import everything
from tests.http.world import open_served, problem_of

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from store.protocols import Store
    from tests.http.calls import Owned
    from tests.http.world import Served

SCHEDULE = {"message": "look", "when": "in 1 hour"}
POSTS: dict[str, tuple[str, dict[str, Any], dict[str, Any] | None]] = {
    "schedule": ("/v1/schedules", SCHEDULE, SCHEDULE | {"message": "look again"}),
    "run": ("/v1/schedules/{id}/run", {}, None),
    "trigger": ("/v1/schedules/{id}/trigger", {}, None),
    "message": ("/v1/messages", {"text": "hello", "wait": 30}, {"text": "goodbye", "wait": 30}),
    "stop": ("/v1/sessions/{key}/stop", {"everything": True}, {"everything": False}),
    "tenant": ("/v1/tenants", {"id": "fresh", "name": "Fresh"}, {"id": "fresher"}),
}
NAMES = {"schedule": "id", "run": "id", "trigger": "id", "message": "id", "stop": "session", "tenant": "id"}


async def send(
    client: httpx2.AsyncClient, owned: Owned, kind: str, key: str, *, other: bool = False
) -> httpx2.Response:
    path, body, another = POSTS[kind]
    return await client.post(owned.path(path), json=another if other else body, headers={"Idempotency-Key": key})


async def count(served: Served, kind: str) -> int:
    """How many of these there are."""
    store, found = served.store, (await everything(served.store))["default"]
    if kind == "tenant":
        return len(await store.tenants())
    if kind in ("run", "trigger"):
        return sum(one.kind in ("manual", "webhook") for one in sum(found["triggers"], ()))
    if kind == "schedule":
        return len(found["jobs"])
    lines = sum(found["transcripts"], ())
    return sum(line.said.text == "hello" for line in lines if line.said.role == "user")


@pytest.mark.parametrize("kind", POSTS)
async def test_the_same_request_twice_is_one_thing(whole: Store, kind: str) -> None:
    """Many times, also at once: one is made, and every answer names it; without a key each is another."""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        owned = await something_of_everything(served, "default")
        before = await count(served, kind)
        found: list[Any] = []

        async def once() -> None:
            found.append(kept(await send(client, owned, kind, "k"))[NAMES[kind]])

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(once)
        await once()
        assert len(found) == 9
        assert len(set(found)) == 1
        assert await count(served, kind) == before + (kind != "stop")


@pytest.mark.parametrize("kind", [kind for kind, (_, _, another) in POSTS.items() if another is not None])
async def test_the_same_key_for_another_request_is_refused(whole: Store, kind: str) -> None:
    """422 with what to do, and nothing is made or changed; the first request is still answered."""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        owned = await something_of_everything(served, "default")
        first = kept(await send(client, owned, kind, "k"))
        assert served.office.gateway is not None
        await served.office.gateway.drained()  # what a stop is answered with is kept too
        before = await everything(whole)
        answer = await send(client, owned, kind, "k", other=True)
        assert (answer.status_code, problem_of(answer)["code"]) == (422, "key-reused")
        assert "another key" in problem_of(answer)["next"]
        assert await everything(whole) == before
        assert kept(await send(client, owned, kind, "k"))[NAMES[kind]] == first[NAMES[kind]]
        if kind != "stop":
            assert kept(await send(client, owned, kind, "k2", other=True))[NAMES[kind]] != first[NAMES[kind]]


async def test_a_key_belongs_to_its_token_its_route_and_its_schedule(whole: Store) -> None:
    """The same key of another token, on another route or for another schedule is another thing."""
    async with open_served(whole) as served:
        owned = await something_of_everything(served, "default", 2)
        async with served.client(await served.secret()) as one, served.client(await served.secret()) as another:
            for kind in ("schedule", "run", "trigger", "message"):
                answers = [kept(await send(client, owned, kind, "k"))["id"] for client in (one, another)]
                assert answers[0] != answers[1], kind
            twin = replace(owned, schedule=owned.schedule - 1)
            fired = [
                kept(await send(one, which, kind, "j"))["id"] for which in (owned, twin) for kind in ("run", "trigger")
            ]
            assert len(set(fired)) == 4


async def test_a_key_holds_over_a_restart(tmp_path: Path) -> None:
    """What was made before is found again, and another request with its key is still refused."""
    (tmp_path / "store").mkdir()
    found: dict[str, list[Any]] = {kind: [] for kind in POSTS}
    secret = ""
    owned = None
    for _ in range(2):
        async with open_json(tmp_path / "store", utc_now) as store, open_served(store, tmp_path / "data") as served:
            secret = secret or await served.secret()
            owned = owned or await something_of_everything(served, "default")
            async with served.client(secret) as client:
                for kind, (_, _, another) in POSTS.items():
                    found[kind].append(kept(await send(client, owned, kind, "k"))[NAMES[kind]])
                    if another is not None:
                        assert (await send(client, owned, kind, "k", other=True)).status_code == 422
    assert all(first == second for first, second in found.values())


async def test_a_key_holds_when_what_was_asked_for_is_past(whole: Store) -> None:
    """A moment that was still to come is answered again when it is over; without the key it is refused by then."""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        seconds, answer, body = 1, None, {"message": "x"}
        while answer is None or answer.status_code == 400:  # it takes longer than that to ask
            seconds *= 2
            body["at"] = (utc_now() + timedelta(seconds=seconds)).isoformat()
            answer = await client.post("/v1/schedules", json=body, headers={"Idempotency-Key": "k"})
        first = kept(answer)

        async def is_past() -> bool:
            return (await client.post("/v1/schedules", json=body)).status_code == 400

        await until(is_past)
        again = kept(await client.post("/v1/schedules", json=body, headers={"Idempotency-Key": "k"}))
        assert again["id"] == first["id"]
        other = await client.post("/v1/schedules", json=body | {"message": "y"}, headers={"Idempotency-Key": "k"})
        assert problem_of(other)["code"] == "key-reused"


async def test_a_key_makes_one_token_whose_secret_is_not_shown_twice(whole: Store) -> None:
    """The second time is refused and names the token, so that it can be revoked; also at once one is made."""
    async with open_served(whole) as served, served.client(await served.secret()) as admin:
        before = len(await whole.tokens("default"))
        answers: list[httpx2.Response] = []

        async def make() -> None:
            answers.append(await admin.post("/v1/tokens", json={"name": "x"}, headers={"Idempotency-Key": "k"}))

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(make)
        (made,) = [answer.json() for answer in answers if answer.status_code == 201]
        refused = [problem_of(answer) for answer in answers if answer.status_code != 201]
        assert {one["code"] for one in refused} == {"secret-shown"}
        assert all(made["id"] in one["detail"] and made["secret"] not in str(one) for one in refused)
        assert len(await whole.tokens("default")) == before + 1
        another = await admin.post("/v1/tokens", json={"name": "y"}, headers={"Idempotency-Key": "k"})
        assert problem_of(another)["code"] == "key-reused"
        assert len(await whole.tokens("default")) == before + 1


async def test_a_key_does_not_make_somebody_elses_tenant_ones_own() -> None:
    """A tenant that was there before is refused with the key too, as often as it is asked."""
    async with open_served() as served, served.client(await served.secret()) as operator:
        await served.tenant("them")
        for _ in range(2):
            answer = await operator.post("/v1/tenants", json={"id": "them"}, headers={"Idempotency-Key": "k"})
            assert (answer.status_code, problem_of(answer)["code"]) == (409, "taken")


async def test_what_was_refused_binds_no_key() -> None:
    """A request that was wrong can be mended and sent again with the same key."""
    async with open_served() as served, served.client(await served.secret()) as client:
        for body, status in (
            ({"message": "x", "when": "whenever"}, 400),
            ({"message": "x", "every": "1h", "agent": "nobody"}, 422),
            ({"message": "x", "every": "1h", "deliver_to": "them:main:http::x::0"}, 404),
            ({"message": "x", "every": "0.5s"}, 400),
            ({"message": "x", "every": "1h"}, 201),
        ):
            answer = await client.post("/v1/schedules", json=body, headers={"Idempotency-Key": "k"})
            assert answer.status_code == status, answer.text


async def test_a_schedule_that_was_edited_is_still_the_keys() -> None:
    """The key tells what was asked for, not what became of it."""
    async with open_served() as served, served.client(await served.secret()) as client:
        made = kept(await client.post("/v1/schedules", json=SCHEDULE, headers={"Idempotency-Key": "k"}))
        kept(await client.patch(f"/v1/schedules/{made['id']}", json={"message": "other", "every": "2h"}))
        again = kept(await client.post("/v1/schedules", json=SCHEDULE, headers={"Idempotency-Key": "k"}))
        assert (again["id"], again["message"]) == (made["id"], "other")
