"""Pairing over HTTP: who knocks is seen by operators, who has the code lets in, and only into their own tenant. (S1)"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

from store.pairing import MOST_PENDING
from tests.http.calls import kept
from tests.http.look import everything
from tests.http.world import open_served, problem_of

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

    from store.protocols import Store
    from tests.http.world import Served

WRONG = "WR0NGC0D"


async def knock(served: Served, sender: str = "7", account: str = "bot") -> str:
    """What the channel shows to a stranger."""
    code = await served.office.pairings.knock("telegram", account, sender, f"Ann {sender}")
    assert code is not None
    return code


async def listed(client: httpx2.AsyncClient, query: str = "") -> list[dict[str, Any]]:
    return list(kept(await client.get(f"/v1/pairings{query}"))["items"])


async def approve(client: httpx2.AsyncClient, code: str, **more: Any) -> httpx2.Response:
    return await client.post("/v1/pairings/approve", json={"code": code, **more})


async def test_a_stranger_is_let_in_by_the_code_they_were_shown(whole: Store, tmp_path: Path, caplog: Any) -> None:
    """Into the tenant of the token; what was shown in the chat is in no list, problem, log or file. (S1, P12)"""
    caplog.set_level(logging.DEBUG)
    async with open_served(whole, tmp_path / "data") as served, served.client(await served.secret()) as operator:
        codes = [await knock(served, sender) for sender in "12"]
        shown = [await operator.get("/v1/pairings"), await approve(operator, WRONG)]
        (first, _) = await listed(operator)
        assert (first["state"], first["sender"], first["name"], first["tenant"]) == ("pending", "1", "Ann 1", None)
        assert first["until"] > first["asked_at"]
        typed = f"{codes[0][:4]}-{codes[0][4:]}".lower()
        shown.append(await approve(operator, typed))
        answer = kept(shown[-1])
        assert answer == {**first, "state": "approved", "tenant": "default", "until": None} | {
            name: answer[name] for name in ("by", "decided_at")
        }
        assert answer["by"].startswith("gck_")
        assert await served.office.pairings.allowed("telegram", "bot", "1") == "default"
        assert kept(await approve(operator, codes[0])) == answer
        assert [(one["sender"], one["state"]) for one in await listed(operator)] == [
            ("2", "pending"),
            ("1", "approved"),
        ]
        shown += [await operator.get("/v1/pairings"), await operator.delete(f"/v1/pairings/{first['id']}")]
        shown.append(await approve(operator, codes[0]))
        assert shown[-1].status_code == 404
        for code in codes:
            for one in shown:
                assert code not in one.text
            assert code not in caplog.text + repr(await everything(whole)) + repr(await whole.knocks())
    for content in contents_below(tmp_path):
        assert not any(code.encode() in content for code in codes)


def contents_below(place: Path) -> list[bytes]:
    return [path.read_bytes() for path in place.rglob("*") if path.is_file()]


async def test_who_knocks_belongs_to_nobody_yet() -> None:
    """A tenant sees neither who knocks nor whom others let in; with the code it lets somebody in all the same. (P11)"""
    async with open_served() as served, served.client(await served.secret()) as operator:
        secrets = {name: await served.tenant(name) for name in ("them", "others")}
        codes = [await knock(served, sender) for sender in "12"]
        ids = [one["id"] for one in await listed(operator)]
        async with served.client(secrets["them"]) as them, served.client(secrets["others"]) as others:
            assert await listed(them) == []
            for id in ids:
                assert (await them.delete(f"/v1/pairings/{id}")).status_code == 404
                named = await them.post("/v1/pairings/deny", json={"code": id})
                assert problem_of(named)["code"] == "bad-code"
            assert (await approve(them, codes[0], tenant="default")).status_code == 404
            assert kept(await approve(them, codes[0]))["tenant"] == "them"
            assert (await approve(others, codes[0])).status_code == 404
            assert (await approve(operator, codes[0])).status_code == 404
            assert [one["sender"] for one in await listed(them)] == ["1"]
            assert await listed(others) == []
            assert (await others.delete(f"/v1/pairings/{ids[0]}")).status_code == 404
            assert [one["sender"] for one in await listed(operator, "?tenant=them")] == ["2", "1"]
            assert kept(await approve(operator, codes[1], tenant="others"))["tenant"] == "others"
            assert (await approve(operator, codes[1], tenant="nobody")).status_code == 404
            assert [one["sender"] for one in await listed(others)] == ["2"]
            assert kept(await others.delete(f"/v1/pairings/{ids[1]}")) == {"deleted": True}
        assert [await served.office.pairings.allowed("telegram", "bot", sender) for sender in "12"] == ["them", None]


async def test_an_admin_who_is_no_operator_sees_nobody_knock() -> None:
    """Not in `default` either: what goes beyond a tenant is for operators."""
    async with open_served() as served, served.client(await served.secret("admin")) as admin:
        code = await knock(served)
        assert await listed(admin) == []
        assert kept(await approve(admin, code))["tenant"] == "default"
        assert [one["sender"] for one in await listed(admin)] == ["7"]


async def test_somebody_is_turned_away() -> None:
    """By the code or by the id in the list: the code opens nothing, and it is silence until that is taken back."""
    async with open_served() as served, served.client(await served.secret()) as operator:
        codes = [await knock(served, sender) for sender in "12"]
        id = (await listed(operator))[1]["id"]
        for named, sender in ((codes[0], "1"), (id, "2")):
            for _ in range(2):
                answer = kept(await operator.post("/v1/pairings/deny", json={"code": named}))
                assert (answer["state"], answer["sender"]) == ("denied", sender)
        for code in codes:
            assert (await approve(operator, code)).status_code == 404
        assert await served.office.pairings.knock("telegram", "bot", "1", "") is None
        assert kept(await operator.delete(f"/v1/pairings/{id}")) == {"deleted": True}
        assert (await operator.post("/v1/pairings/deny", json={"code": id})).status_code == 404
        assert await served.office.pairings.knock("telegram", "bot", "2", "") is not None


async def test_guessing_codes_ends_after_five() -> None:
    """429 with how long to wait, for everybody of that tenant and for the right code too; others go on. (S1)"""
    async with open_served() as served, served.client(await served.secret()) as operator:
        secret, code = await served.tenant("them"), await knock(served)
        async with served.client(secret) as them:
            statuses = [(await approve(them, WRONG)).status_code for _ in range(4)]
            assert (await them.post("/v1/pairings/deny", json={"code": WRONG})).status_code == 404
            assert statuses == [404] * 4
            assert (await approve(them, "SHORT")).status_code == 400
        async with served.client(await served.secret("admin", tenant="them")) as another:
            for path in ("approve", "deny"):
                refused = await another.post(f"/v1/pairings/{path}", json={"code": code})
                assert (refused.status_code, problem_of(refused)["code"]) == (429, "too-many-codes")
                assert 3_000 < int(refused.headers["retry-after"]) <= 3_601
        assert kept(await approve(operator, code))["sender"] == "7"


async def test_codes_guessed_at_once_are_counted_one_by_one() -> None:
    """However many come in the same moment, five are looked at."""
    async with open_served() as served, served.client(await served.secret()) as client:
        statuses: list[int] = []

        async def guess(number: int) -> None:
            statuses.append((await approve(client, f"{number:08}")).status_code)

        async with trio.open_nursery() as nursery:
            for number in range(30):
                nursery.start_soon(partial(guess, number))
        assert sorted(statuses) == [404] * 5 + [429] * 25


@pytest.mark.parametrize("path", ["approve", "deny"])
async def test_a_key_is_good_for_one_code(whole: Store, path: str) -> None:
    """Asked again, also at once, the answer is the same and one person is meant; another code is refused."""
    async with open_served(whole) as served, served.client(await served.secret()) as client:
        codes = [await knock(served, sender) for sender in "12"]
        answers: list[Any] = []

        async def ask(code: str) -> httpx2.Response:
            headers = {"Idempotency-Key": "k"}
            return await client.post(f"/v1/pairings/{path}", json={"code": code}, headers=headers)

        async def again() -> None:
            answers.append(kept(await ask(codes[0])))

        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(again)
        assert all(one == answers[0] for one in answers)
        refused = await ask(codes[1])
        assert (refused.status_code, problem_of(refused)["code"]) == (422, "key-reused")
        assert [one["sender"] for one in await listed(client) if one["state"] == "pending"] == ["2"]


async def test_a_crowd_fills_no_list() -> None:
    """Fifty strangers write: three codes are shown, and three are listed. (S1)"""
    async with open_served() as served, served.client(await served.secret()) as operator:
        knocks = served.office.pairings.knock
        shown = [await knocks("telegram", "bot", str(number), "") for number in range(50)]
        assert sum(code is not None for code in shown) == MOST_PENDING
        assert len(await listed(operator)) == MOST_PENDING
