"""Bodies that are wrong, too large or too slow: a clear problem, never a 500, and nothing is changed. (S12)"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

from gateway.access.limits import Limits
from gateway.clock import utc_now
from store.memory import MemoryStore
from tests.http.calls import CALLS, kept, something_of_everything
from tests.http.look import everything
from tests.http.wire import bearer, connected
from tests.http.world import open_served, open_served_without_gateway, problem_of

if TYPE_CHECKING:
    from pathlib import Path

DEEP = 100_000
HUGE = 10**400
BIG = 1_000_001
JSON = "Content-Type: application/json"

BROKEN: dict[str, bytes] = {
    "half": b'{"message": "x", ',
    "nothing but a brace": b"{",
    "words": b"hello",
    "no utf-8": b'{"message": "\xff\xfe"}',
    "deep": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "long number": b'{"limit": ' + b"9" * 50_000 + b"}",
    "NaN": b'{"text": "x", "wait": NaN, "limit": Infinity}',
    "a list": b"[]",
    "a text": b'"x"',
    "null": b"null",
    "nothing": b"",
    "NUL": b'{"\x00": 1}',
    "half a character as a name": b'{"\\ud800": 1}',
    "a very long name": b'{"' + b"n" * 100_000 + b'": 1}',
    "a name twice": b'{"nobody": 1, "nobody": 2}',
}
WITH_BODIES = [(method, path) for (method, path), call in CALLS.items() if call.json is not None]


async def test_what_is_no_json_or_the_wrong_json_is_told() -> None:
    """Every route with a body, every kind of broken body: 4xx that says what is wrong, and nothing is changed."""
    async with open_served() as served, served.client(await served.secret()) as client:
        owned = await something_of_everything(served, "default")
        before = await everything(served.store)
        for method, path in WITH_BODIES:
            for kind, body in BROKEN.items():
                headers = {"Content-Type": "application/json"}
                answer = await client.request(method, owned.path(path), content=body, headers=headers)
                assert 400 <= answer.status_code < 500, (method, path, kind, answer.status_code, answer.text)
                problem = problem_of(answer)
                assert len(answer.content) < 8_000, (method, path, kind)
                assert problem["detail"].isprintable(), kind
        assert await everything(served.store) == before


SPEC: dict[str, Any] = {"message": "look", "every": "1h"}
BAD_SCHEDULES: list[dict[str, Any]] = [
    {"message": 1},
    {"message": ""},
    {"message": "   "},
    {"message": None},
    {"message": "x" * 16_001},
    {"message": "ä" * 16_000},
    {"message": "nul \0"},
    {"message": "half \ud83d"},
    {"name": "n" * 201},
    {"name": "\udc00"},
    {"agent": ""},
    {"agent": "nobody"},
    {"agent": 5},
    {"agent": "main\0"},
    {"unknown": 1},
    {"webhook": 1},
    {"webhook": True},
    {"at_once": "yes"},
    {"every": 5},
    {"every": ""},
    {"every": "0s"},
    {"every": "-5m"},
    {"every": "1ms"},
    {"every": f"{HUGE}d"},
    {"every": None},
    {"every": None, "after": f"{10**9}d"},
    {"every": None, "after": "0s"},
    {"every": None, "at": "2001-01-01T00:00:00Z"},
    {"every": None, "at": "2030-06-01T12:00:00"},
    {"every": None, "at": "9999-12-31T23:59:59-23:59"},
    {"every": None, "at": "10000-01-01T00:00:00Z"},
    {"every": None, "at": "99999-13-45"},
    {"every": None, "at": 4_000_000_000},
    {"every": None, "at": "4000000000"},
    {"every": None, "at": HUGE},
    {"every": None, "when": ""},
    {"every": None, "when": "whenever"},
    {"every": None, "when": "on 9999-99-99"},
    {"every": None, "when": "in 99999999999999999999 weeks"},
    {"every": None, "when": "every \0 day"},
    {"every": None, "when": "x" * 1_001},
    {"every": None, "cron": "* * *"},
    {"every": None, "cron": "61 * * * *"},
    {"every": None, "cron": "0 0 30 2 *"},
    {"every": None, "cron": f"*/{HUGE} * * * *"},
    {"when": "every hour"},
    {"zone": "Mars/Base"},
    {"zone": "../../etc/passwd"},
    {"zone": "/etc/passwd"},
    {"zone": "\0"},
    {"session": "other"},
    {"session": "named"},
    {"session": "chat"},
    {"deliver_to": "x"},
    {"deliver_to": "default:main:http::main::99999999999999999999"},
    {"deliver_to": "\ud800"},
    {"work_source": "what:ever"},
    {"rules": []},
    {"rules": {"unknown": 1}},
    {"rules": {"overlap": "both"}},
    {"rules": {"max_retries": 21}},
    {"rules": {"max_retries": True}},
    {"rules": {"max_retries": 1.5}},
    {"rules": {"run_timeout": "2d"}},
    {"rules": {"grace": "-1s"}},
    {"rules": {"min_interval": "2h", "max_interval": "1h"}},
    {"rules": {"delete_after_success": 1}},
]
BAD_FIELDS: list[tuple[str, str, dict[str, Any]]] = [
    *[("POST", "/v1/schedules", SPEC | change) for change in BAD_SCHEDULES],
    *[
        ("PATCH", "/v1/schedules/{id}", body)
        for body in (
            {"status": "completed"},
            {"status": None, "unknown": 1},
            {"paused_until": "2001-01-01T00:00:00Z"},
            {"paused_until": "2030-01-01T00:00:00Z", "status": "active"},
            {"name": "changed", "status": "paused", "paused_until": "2001-01-01T00:00:00Z"},
            {"name": "changed", "agent": "nobody"},
            {"name": "changed", "zone": "Mars/Base"},
            {"name": "changed", "when": "whenever"},
            {"name": "changed", "every": "1h", "cron": "0 9 * * *"},
            {"name": "changed", "rules": {"min_interval": "2h", "max_interval": "1h"}, "status": "paused"},
            {"message": " "},
        )
    ],
    *[
        ("PUT", "/v1/schedules/{id}/hints", body)
        for body in (
            {"interval": 5},
            {"interval": "0s"},
            {"lasts": "0s"},
            {"lasts": "200000d"},
            {"next_at": "2001-01-01T00:00:00Z"},
            {"reason": "x" * 201},
        )
    ],
    *[
        ("POST", "/v1/schedules/preview", body)
        for body in ({}, {"when": "whenever"}, {"every": "1h", "at": "2030-01-01T00:00:00Z"}, {"message": "x"})
    ],
    *[
        ("POST", "/v1/messages", {"text": "hello"} | change)
        for change in (
            {"text": ""},
            {"text": "x" * 100_001},
            {"text": "\0"},
            {"text": "\udfff"},
            {"text": 5},
            {"wait": -1},
            {"wait": 301},
            {"wait": True},
            {"wait": "5"},
            {"wait": HUGE},
            {"chat": ""},
            {"chat": "c" * 201},
            {"thread": "\0"},
            {"agent": "nobody"},
            {"tenant": "default"},
        )
    ],
    *[
        ("PATCH", "/v1/sessions/{key}/policy", body)
        for body in (
            {"mode": "none"},
            {"cap": 0},
            {"cap": 10_001},
            {"cap": True},
            {"cap": "5"},
            {"cap": 2**63},
            {"drop": "all"},
            {"debounce_ms": -1},
            {"max_concurrent": 0},
            {"zone": "Mars/Base"},
            {"zone": ""},
            {"cap": 5, "unknown": 1},
        )
    ],
    ("POST", "/v1/sessions/{key}/stop", {"everything": 1}),
    *[("PUT", "/v1/lanes/{name}", {"limit": limit}) for limit in (0, -1, 10_001, 2**63, HUGE, "5", 1.5, True, None)],
    *[
        ("POST", "/v1/tokens", {"name": "x"} | change)
        for change in (
            {"name": ""},
            {"name": "x" * 101},
            {"name": "\0"},
            {"scopes": ["everything"]},
            {"scopes": ["read"] * 11},
            {"scopes": "read"},
            {"scopes": [1]},
            {"scopes": ["\ud800"]},
            {"expires_at": "2001-01-01T00:00:00Z"},
            {"expires_at": "9999-12-31T23:59:59-01:00"},
            {"expires_at": 5},
            {"tenant": "nobody"},
            {"tenant": "\0"},
            {"secret": "mine"},
        )
    ],
    *[
        ("POST", "/v1/tenants", {"id": "fresh"} | change)
        for change in (
            {"id": ""},
            {"id": "Upper"},
            {"id": "a" * 33},
            {"id": "../x"},
            {"id": "a\n"},
            {"id": "a:b"},
            {"id": "default"},
            {"name": "n" * 201},
            {"zone": "Mars/Base"},
            {"enabled": False},
        )
    ],
    *[
        ("PATCH", "/v1/tenants/{id}", body)
        for body in ({"enabled": 0}, {"enabled": "no"}, {"zone": ""}, {"name": "\0"}, {"id": "x"}, {"zone": "Mars"})
    ],
]


async def test_what_cannot_be_meant_is_refused_whole() -> None:
    """Wrong types, unknown fields, NUL, half characters, numbers and dates beyond reason: 4xx, and nothing changes."""
    async with open_served() as served, served.client(await served.secret()) as client:
        owned = await something_of_everything(served, "default")
        before = await everything(served.store)
        for method, path, body in BAD_FIELDS:
            content, headers = json.dumps(body), {"Content-Type": "application/json"}
            answer = await client.request(method, owned.path(path), content=content, headers=headers)
            assert answer.status_code in (400, 404, 409, 422), (method, path, body, answer.status_code, answer.text)
            assert problem_of(answer)["detail"]
        assert await everything(served.store) == before


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_a_form_is_no_json(media_type: str) -> None:
    """What a page elsewhere may send without asking is not read as JSON: 415, and nothing is made. (S8)"""
    async with open_served() as served, served.client(await served.secret()) as client:
        content, headers = json.dumps(CALLS["POST", "/v1/schedules"].json), {"Content-Type": media_type}
        answer = await client.post("/v1/schedules", content=content, headers=headers)
        assert (answer.status_code, problem_of(answer)["code"]) == (415, "not-json")
        assert await served.store.cron.jobs("default") == ()


async def test_a_body_may_have_a_megabyte_and_not_a_byte_more() -> None:
    """By its length or in pieces without one: 413, and nothing is kept; a megabyte itself is read."""
    async with open_served() as served:
        secret = await served.secret()
        async with connected(served) as wire:
            await wire.send(wire.head("POST", "/v1/messages", bearer(secret), JSON, f"Content-Length: {BIG}"))
            answer = await wire.answer("POST")
            assert (answer.status, answer.problem["code"]) == (413, "too-large")
        async with connected(served) as wire:
            await wire.send(wire.head("POST", "/v1/messages", bearer(secret), JSON, "Transfer-Encoding: chunked"))
            piece = b'{"text": "' + b"x" * 99_990
            try:
                for _ in range(11):
                    await wire.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            except trio.BrokenResourceError:
                pass  # it has heard enough
            answer = await wire.answer("POST")
            assert (answer.status, answer.problem["code"]) == (413, "too-large")
        async with served.client(secret) as client:
            for size, status in ((1_000_000, 400), (BIG, 413)):
                headers = {"Content-Type": "application/json"}
                assert (await client.post("/v1/messages", content=b"x" * size, headers=headers)).status_code == status
        assert await served.store.sessions("default") == ()


async def test_whoever_trickles_is_cut_off_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    """A body that comes byte by byte: 408, the connection ends, and others are served meanwhile."""
    async with open_served_without_gateway(MemoryStore(utc_now), tmp_path, Limits(body_s=1.0)) as served:
        secret = await served.secret()
        async with connected(served) as wire, served.client(secret) as client:
            await wire.send(wire.head("POST", "/v1/schedules", bearer(secret), JSON, "Content-Length: 1000"))
            answered = trio.Event()

            async def trickle() -> None:
                while not answered.is_set():
                    try:
                        await wire.send(b" ")
                    except trio.BrokenResourceError:
                        return
                    assert kept(await client.get("/v1/schedules"))["items"] == []

            async with trio.open_nursery() as nursery:
                nursery.start_soon(trickle)
                answer = await wire.answer("POST")
                answered.set()
            assert (answer.status, answer.problem["code"]) == (408, "too-slow")
            assert await wire.is_closed()
        assert await served.store.cron.jobs("default") == ()


async def test_a_body_that_never_comes_ends_too(tmp_path: Path) -> None:
    """Nothing after the head: 408 as well."""
    async with open_served_without_gateway(MemoryStore(utc_now), tmp_path, Limits(body_s=0.2)) as served:
        secret = await served.secret()
        async with connected(served) as wire:
            await wire.send(wire.head("POST", "/v1/schedules", bearer(secret), JSON, "Transfer-Encoding: chunked"))
            assert (await wire.answer("POST")).status == 408
            assert await wire.is_closed()
