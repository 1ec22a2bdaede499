"""Tokens: shown once, kept as digests, good until they are not, and nowhere else to be found. (S16, P12)"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
import trio

from gateway.access.limits import Limits
from gateway.access.scopes import SCOPES
from gateway.clock import utc_now
from store.memory import MemoryStore
from tests.http.calls import first_event, kept, until
from tests.http.look import everything
from tests.http.world import open_served, open_served_without_gateway, problem_of

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from store.protocols import Store

CHOSEN = "correct-horse-battery"


async def test_a_token_is_shown_once_and_kept_as_a_digest(whole: Store, tmp_path: Path, caplog: Any) -> None:
    """The secret is in the one answer: not in the store or its files, lists, problems, logs, reprs or the document."""
    caplog.set_level(logging.DEBUG)
    async with open_served(whole, tmp_path / "data") as served, served.client(await served.secret()) as admin:
        asked = {"name": "laptop", "scopes": ["read", "chat"], "expires_at": "2099-01-01T00:00:00Z"}
        made = kept(await admin.post("/v1/tokens", json=asked))
        secret = made.pop("secret")
        assert len(secret) == 47
        assert secret.startswith(made["id"])
        assert (made["state"], made["scopes"], made["last_used_at"]) == ("good", ["read", "chat"], None)
        (stored,) = [token for token in await whole.tokens("default") if token.new.id == made["id"]]
        assert stored.new.digest == sha256(secret.encode()).hexdigest()
        async with served.client(secret) as client:
            assert kept(await client.get("/v1/me"))["scopes"] == ["chat", "read"]
            shown = [await client.get("/v1/me"), await client.post("/v1/tokens", json=asked)]
            shown += [await client.get("/v1/schedules/5"), await client.get("/v1/runs?since=x")]
        shown += [await admin.get("/v1/tokens"), await admin.get("/openapi.json")]
        shown += [await admin.delete(f"/v1/tokens/{made['id']}"), await admin.get("/v1/tokens")]
        rest = secret.removeprefix(made["id"])
        for answer in shown:
            assert rest not in answer.text
            assert rest not in str(answer.headers)
        assert rest not in repr(await everything(whole)) + repr(stored) + repr(served.office)
        assert rest not in caplog.text
    for path in files_below(tmp_path):
        assert rest.encode() not in path.read_bytes(), path


def files_below(place: Path) -> list[Path]:
    return [path for path in place.rglob("*") if path.is_file()]


async def that_expires_soon(admin: httpx2.AsyncClient) -> Any:
    """A new token that is good for as short a while as it takes to make it."""
    seconds = 1
    while True:
        soon = (utc_now() + timedelta(seconds=seconds)).isoformat()
        answer = await admin.post("/v1/tokens", json={"name": "b", "expires_at": soon})
        if answer.status_code != 422:
            return kept(answer)
        seconds *= 4


async def test_a_token_ends_when_it_is_revoked_or_expires(whole: Store) -> None:
    """At once, for every route, and it can be seen why; a second revocation finds nothing."""
    async with open_served(whole) as served, served.client(await served.secret()) as admin:
        revoked = kept(await admin.post("/v1/tokens", json={"name": "a"}))
        expiring = await that_expires_soon(admin)
        async with served.client(revoked["secret"]) as client:
            assert kept(await client.get("/v1/me"))["token"] == revoked["id"]
            assert kept(await admin.delete(f"/v1/tokens/{revoked['id']}")) == {"deleted": True}
            assert (await client.get("/v1/me")).status_code == 401
        async with served.client(expiring["secret"]) as client:

            async def is_over() -> bool:
                return (await client.get("/v1/me")).status_code == 401

            await until(is_over)
            assert utc_now() >= datetime.fromisoformat(expiring["expires_at"])
        states = {one["id"]: one["state"] for one in kept(await admin.get("/v1/tokens"))["items"]}
        assert (states[revoked["id"]], states[expiring["id"]]) == ("revoked", "expired")
        assert problem_of(await admin.delete(f"/v1/tokens/{revoked['id']}"))["code"] == "not-found"


async def test_when_a_token_was_last_used_is_kept() -> None:
    """Whoever looks after tokens sees which are in use."""
    async with open_served() as served, served.client(await served.secret()) as admin:
        made = kept(await admin.post("/v1/tokens", json={"name": "a"}))
        before = utc_now()
        async with served.client(made["secret"]) as client:
            kept(await client.get("/v1/me"))
        (shown,) = [one for one in kept(await admin.get("/v1/tokens"))["items"] if one["id"] == made["id"]]
        assert before <= datetime.fromisoformat(shown["last_used_at"]) <= utc_now()


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_token_cannot_give_away_what_it_has_not(scope: Any) -> None:
    """Whoever may make tokens makes none that may more than itself."""
    async with open_served() as served:
        others = [one for one in SCOPES if one not in (scope, "operator")]
        async with served.client(await served.secret(*{*others, "admin"})) as admin:
            before = await everything(served.store)
            if scope == "admin":
                assert kept(await admin.post("/v1/tokens", json={"name": "x", "scopes": ["admin"]}))
                return
            answer = await admin.post("/v1/tokens", json={"name": "x", "scopes": ["chat", scope, "admin"]})
            if scope == "chat":
                answer = await admin.post("/v1/tokens", json={"name": "x", "scopes": [scope]})
            assert problem_of(answer)["code"] == "missing-scope"
            assert scope in problem_of(answer)["detail"]
            assert await everything(served.store) == before


async def test_an_operator_looks_after_tokens_of_others() -> None:
    """Makes, lists and revokes them; nobody else does."""
    async with open_served() as served, served.client(await served.secret()) as operator:
        await served.tenant("them")
        made = kept(await operator.post("/v1/tokens", json={"name": "x", "tenant": "them"}))
        assert made["tenant"] == "them"
        async with served.client(made["secret"]) as client:
            assert kept(await client.get("/v1/me"))["tenant"] == "them"
        assert made["id"] in [one["id"] for one in kept(await operator.get("/v1/tokens?tenant=them"))["items"]]
        assert made["id"] not in [one["id"] for one in kept(await operator.get("/v1/tokens"))["items"]]
        assert (await operator.delete(f"/v1/tokens/{made['id']}")).status_code == 404
        assert kept(await operator.delete(f"/v1/tokens/{made['id']}?tenant=them"))


async def test_guessing_is_slowed_and_nobody_else_is_locked_out(tmp_path: Path) -> None:
    """A flood of wrong tokens from one address gets 429; good ones from there pass, also one that is used first now.

    A token that people chose passes where it was right before; where it was not, it waits like a guess. (S12)
    """
    limits = Limits(wrong_rate=0.001, wrong_burst=10)
    store = MemoryStore(utc_now)
    async with open_served_without_gateway(store, tmp_path, limits, gateway_token=CHOSEN) as served:
        known, fresh = await served.secret(), await served.secret()

        async def ask(secret: str) -> int:
            async with served.client() as client:
                answer = await client.get("/v1/me", headers={"Authorization": f"Bearer {secret}"})
                if answer.status_code == 429:
                    assert int(answer.headers["retry-after"]) > 0
                    assert problem_of(answer)["retry_after"] == int(answer.headers["retry-after"])
                return answer.status_code

        assert await ask(known) == 200
        guesses = [f"gck_{number:043}" if number % 2 else f"{CHOSEN}{number}" for number in range(40)]
        found = [await ask(guess) for guess in guesses]
        assert found == [401] * 10 + [429] * 30
        assert [await ask(known), await ask(fresh)] == [200, 200]
        assert await ask(CHOSEN) == 429  # new here: it could be a guess
    async with open_served_without_gateway(store, tmp_path, limits, gateway_token=CHOSEN) as served:
        assert await ask(CHOSEN) == 200
        assert [await ask(guess) for guess in guesses] == [401] * 10 + [429] * 30
        assert await ask(CHOSEN) == 200


async def test_a_token_that_asks_too_often_waits_and_no_other_does() -> None:
    """429 with Retry-After for the one, everything as usual for the others; after the wait it goes on."""
    async with open_served(http_rate=1) as served:
        hasty, calm = await served.secret(), await served.secret()
        async with served.client(hasty) as client, served.client(calm) as other:
            answers = [await client.get("/v1/me") for _ in range(20)]
            assert [one.status_code for one in answers[:2]] == [200] * 2
            late = answers[-1]
            assert (late.status_code, problem_of(late)["code"]) == (429, "too-often")
            wait_s = int(late.headers["retry-after"])
            assert 1 <= wait_s <= 2
            assert (await other.get("/v1/me")).status_code == 200
            async with served.client() as nobody:
                assert (await nobody.get("/v1/me")).status_code == 401

            async def goes_on() -> bool:
                return (await client.get("/v1/me")).status_code == 200

            await until(goes_on)


async def test_secrets_are_compared_in_constant_time() -> None:
    """A token of the process is found by its digest, whatever another one has in common with it."""
    async with open_served(gateway_token=CHOSEN) as served:
        for secret, status in ((CHOSEN, 200), (CHOSEN[:-1], 401), (CHOSEN + "x", 401), (CHOSEN.upper(), 401)):
            async with served.client(secret) as client:
                assert (await client.get("/v1/me")).status_code == status
        assert CHOSEN not in repr(served.office)
        caller = await served.office.doorkeeper.caller(CHOSEN)
        assert caller is not None
        assert CHOSEN not in repr(caller)
        assert CHOSEN not in repr(await everything(served.store))


async def test_a_revoked_token_ends_its_stream() -> None:
    """Within a second nothing more is heard. (S13)"""
    async with open_served() as served, served.client(await served.secret()) as admin:
        made = kept(await admin.post("/v1/tokens", json={"name": "x", "scopes": ["read"]}))
        async with served.client(made["secret"]) as client, client.stream("GET", "/v1/notifications/stream") as heard:
            lines = heard.aiter_lines()
            assert await first_event(lines, "open") == {"ok": True}
            await admin.delete(f"/v1/tokens/{made['id']}")
            with trio.fail_after(1):
                async for _ in lines:
                    pass


async def test_many_tokens_are_made_at_once(whole: Store) -> None:
    """Each has an id and a secret of its own."""
    async with open_served(whole) as served, served.client(await served.secret()) as admin:
        made: list[dict[str, Any]] = []

        async def make(number: int) -> None:
            made.append(kept(await admin.post("/v1/tokens", json={"name": str(number)})))

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(partial(make, number))
        assert len({one["id"] for one in made}) == len({one["secret"] for one in made}) == 20
