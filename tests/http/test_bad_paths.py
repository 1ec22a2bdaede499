"""Paths, queries, methods and headers that nobody should send: a clear problem, never a 500, nothing changed. (S18)"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gateway.clock import utc_now
from gateway.http.table import ACCESS
from store.files import open_json
from tests.http.calls import CALLS, kept, something_of_everything
from tests.http.look import everything
from tests.http.wire import bearer, connected
from tests.http.world import open_served, problem_of

if TYPE_CHECKING:
    from pathlib import Path

UGLY = [
    "..",
    "%2e%2e",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..%5c..",
    "%2Fetc%2Fpasswd",
    "%00",
    "1%00",
    "%ff%fe",
    "%ed%a0%80",
    "%C3%A4%F0%9F%A6%80",
    "%",
    "%zz",
    "%0d%0aX-Evil:%201",
    "0",
    "-1",
    "1.5",
    "1e3",
    "٣",
    "9" * 25,
    "9" * 5_000,
    "x" * 20_000,
    "default:main:http::..%252f..::0",
    "default:main:http::%252e%252e::0",
    "default:main:http:::::0",
    "default:main:http::main::-1",
    "default:main:http::main::" + "9" * 30,
    "default:main:http::main::%D9%A3",
    "default%00:main:http::main::0",
    "*",
    "'; DROP TABLE tenants; --",
    "{id}",
    "null",
    "preview%2Fx",
]
SOUND = {"default:main:http::..%252f..::0", "default:main:http::%252e%252e::0", "default:main:http:::::0"}
SECRET_NAMES = ("token", "access_token", "api_key", "TOKEN", "secret")


async def test_no_id_is_so_ugly_that_it_breaks_anything() -> None:
    """Every route with an id, with every ugly one: 4xx with a problem, and nothing is changed."""
    async with open_served() as served:
        secret = await served.secret()
        await something_of_everything(served, "default")
        before = await everything(served.store)
        for method, path in ACCESS:
            if "{" not in path:
                continue
            for ugly in UGLY:
                if path.endswith("/stop") and ugly in SOUND:
                    continue  # a conversation that has just begun is in no table yet, and can be stopped
                target = path.replace("{id}", ugly).replace("{key}", ugly).replace("{name}", ugly)
                target = "".join(
                    one if " " < one < "\x7f" else "".join(f"%{b:02X}" for b in one.encode()) for one in target
                )
                async with connected(served) as wire:
                    headers = [bearer(secret), "Content-Length: 2", "Content-Type: application/json"]
                    await wire.send(wire.head(method, target, *headers) + b"{}")
                    answer = await wire.answer(method)
                assert 400 <= answer.status < 500, (method, target[:80], answer.status, answer.body)
                assert answer.problem["detail"]
        assert await everything(served.store) == before


async def test_conversations_with_ugly_names_stay_inside_the_store(tmp_path: Path) -> None:
    """`..`, slashes and NUL in a name make no file outside the store's own directory, and can be read back."""
    (tmp_path / "store").mkdir()
    names = ["..", "../../escaped", "/etc/escaped", "a\\b", "CON", "ä🦀", "." * 200, "🦀" * 200, "%2e%2e", "a:b", " "]
    async with (
        open_json(tmp_path / "store", utc_now) as store,
        open_served(store, tmp_path / "data") as served,
        served.client(await served.secret()) as client,
    ):
        for name in names:
            answer = await client.post("/v1/messages", json={"text": "hello", "chat": name, "thread": name, "wait": 30})
            key = kept(answer)["session"]
            quoted = key.replace("%", "%25").replace(" ", "%20")
            assert kept(await client.get(f"/v1/sessions/{quoted}"))["chat"] == name
            lines = kept(await client.get(f"/v1/sessions/{quoted}/transcript"))["items"]
            assert lines[0]["text"] == "hello"
            stopped = await client.post(f"/v1/sessions/{quoted}/stop", json={})
            assert kept(stopped)["session"] == key
        assert len(kept(await client.get("/v1/sessions"))["items"]) == len(names)
    assert names_below(tmp_path) == {"store", "data"}


def names_below(place: Path) -> set[str]:
    assert not list(place.rglob("*escaped*"))
    return {path.name for path in place.iterdir()}


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"])
async def test_methods_that_are_not_there_are_named(method: str) -> None:
    """405 names exactly what there is; HEAD answers as GET does, without a body; OPTIONS tells the methods. (S8)"""
    async with open_served() as served, served.client(await served.secret()) as client:
        owned = await something_of_everything(served, "default")
        for path in {path for _, path in ACCESS}:
            there = {one for one, other in ACCESS if other == path}
            if method in there or (path.endswith("/stream") and method == "HEAD"):
                continue
            async with connected(served) as wire:
                await wire.send(wire.head(method, owned.path(path), "Connection: close"))
                answer = await wire.answer(method)
            allowed = there | {"OPTIONS"} | ({"HEAD"} if "GET" in there else set())
            if method == "HEAD" and "GET" in there:
                shown = await client.get(owned.path(path))
                seen = await client.head(owned.path(path))
                assert (seen.status_code, seen.headers["content-type"]) == (200, shown.headers["content-type"]), path
                assert seen.content == b""
                continue
            assert answer.status == (204 if method == "OPTIONS" else 405), path
            assert set(answer.headers["allow"].split(", ")) == allowed
            if method not in ("OPTIONS", "HEAD"):
                assert answer.problem["code"] == "method-not-allowed"


async def test_head_of_a_stream_ends_at_once() -> None:
    """Whoever asks for the head of a stream does not get the stream."""
    async with open_served() as served, served.client(await served.secret()) as client:
        answer = await client.head("/v1/notifications/stream")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert (await client.get("/v1/me")).status_code == 200


async def test_a_parameter_that_there_is_not_is_told() -> None:
    """What is misspelt is not passed over in silence; programs of others may add to a trigger what they like."""
    async with open_served() as served, served.client(await served.secret()) as client:
        owned = await something_of_everything(served, "default")
        for (method, path), call in CALLS.items():
            if path == "/v1/schedules/{id}/trigger":
                continue
            answer = await client.request(method, owned.path(path) + "?limits=5", json=call.json)
            if ACCESS[method, path] == "anybody" and answer.status_code == 200:
                continue
            assert answer.status_code == 422, (method, path, answer.text)
            assert "limits" in problem_of(answer)["detail"]
        assert (await client.post(f"/v1/schedules/{owned.schedule}/trigger?source=github")).status_code == 202


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "limit=-1",
        "limit=x",
        "limit=",
        "limit=1.5",
        f"limit={2**63}",
        f"limit={'9' * 5_000}",
        "after=-1",
        f"after={2**63}",
        "after=x",
        "status=gone",
        "status=active&status=gone",
        "status=",
    ],
)
async def test_parameters_have_limits(query: str) -> None:
    """Each is named in the problem."""
    async with open_served() as served, served.client(await served.secret()) as client:
        problem = problem_of(await client.get(f"/v1/schedules?{query}"))
        assert (problem["status"], problem["code"]) == (422, "invalid-request")
        assert problem["errors"][0]["field"].startswith(f"query.{query.partition('=')[0]}")


@pytest.mark.parametrize(
    "since", ["", "x", "nan", "inf", "-inf", "1e400", "9" * 60, "2030-06-01", "2030-06-01T12:00:00", "-1e30"]
)
async def test_a_moment_that_is_none_is_told(since: str) -> None:
    """Not a number, beyond the calendar, without a zone: 422."""
    async with open_served() as served, served.client(await served.secret()) as client:
        problem = problem_of(await client.get("/v1/runs", params={"since": since}))
        assert (problem["status"], problem["code"]) == (422, "invalid-request")


async def test_a_token_has_no_place_in_a_path() -> None:
    """In the query of any route, good or bad, with or without the header: refused with what to do instead."""
    async with open_served() as served:
        secret = await served.secret()
        async with served.client() as nobody, served.client(secret) as client:
            for name in SECRET_NAMES:
                for asking in (nobody, client):
                    for path in ("/v1/me", "/v1/schedules", "/v1/notifications/stream", "/healthz"):
                        answer = await asking.get(path, params={name: secret})
                        problem = problem_of(answer)
                        assert (problem["status"], problem["code"]) == (400, "token-in-url")
                        assert "Authorization: Bearer" in problem["next"]
                        assert secret not in answer.text


HEADERS: list[tuple[list[str], int]] = [
    (["Host: {host}", "Host: {host}"], 400),
    (["Host: {host}", "Host: evil.example"], 400),
    (["Host: {host}", "{bearer}", "{bearer}"], 401),
    (["Host: {host}", "{bearer}", "Authorization: Basic eDp4"], 401),
    (["Host: {host}", "{bearer}", "Content-Length: 5", "Content-Length: 6"], 400),
    (["Host: {host}", "{bearer}", "Content-Length: x"], 400),
    (["Host: {host}", "{bearer}", "Content-Length: -1"], 400),
    (["Host: {host}", "{bearer}", "Content-Length: 5", "Transfer-Encoding: gzip"], 501),
    (["Host: {host}", "{bearer}", "X-Long: " + "x" * 200_000], 431),
    (["Host: {host}", "{bearer}", "no colon"], 400),
    (["Host: {host}", "{bearer}", "X-Nul: a\0b"], 400),
    (["Host: {host}", "{bearer}", "Idempotency-Key: "], 422),
    (["Host: {host}", "{bearer}", "Idempotency-Key: " + "k" * 201], 422),
    (["Host: {host}", "{bearer}", "Idempotency-Key: a b"], 422),
    (["Host: {host}", "{bearer}", "Idempotency-Key: \xe4"], 422),
]


@pytest.mark.parametrize(("headers", "status"), HEADERS, ids=range(len(HEADERS)))
async def test_headers_that_are_wrong_are_refused(headers: list[str], status: int) -> None:
    """Twice what may be there once, lengths that are none, heads that are too long: refused, nothing is made."""
    async with open_served() as served:
        given = {"bearer": bearer(await served.secret())}
        async with connected(served) as wire:
            lines = [line.format(host=wire.host, **given) for line in headers]
            head = ["POST /v1/schedules HTTP/1.1", "Content-Type: application/json", *lines]
            if not any(line.startswith(("Content-Length", "Transfer")) for line in lines):
                head.append("Content-Length: 34")
            await wire.send("\r\n".join([*head, "", '{"message": "look", "every": "1h"}']).encode("latin-1"))
            assert (await wire.answer("POST")).status == status
        assert await served.store.cron.jobs("default") == ()
