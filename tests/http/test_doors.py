"""Who is at the door: names, pages from elsewhere, addresses that are claimed, and what loopback means. (S6, S8, S9)"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from gateway.access.limits import Limits
from gateway.clock import utc_now
from gateway.http import service
from gateway.http.app import make_app
from gateway.local import NAME
from gateway.stores import data_directory
from gateway.work import make_office
from store.memory import MemoryStore
from store.protocols import CannotOpen
from tests.flow.process import over_pipes
from tests.http.calls import kept
from tests.http.wire import bearer, connected
from tests.http.world import open_served, open_served_without_gateway, problem_of, settings_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.http.world import Served

EVERYWHERE = "0.0.0.0"  # noqa: S104 - that it is refused is what is tested
TOKEN = "gateway_" + "t" * 40
BODY = '{"message": "look", "every": "1h"}'


@pytest.mark.parametrize("host", [EVERYWHERE, "::", "192.0.2.1", "gateway.example"])
def test_a_door_to_others_needs_a_token(tmp_path: Path, host: str) -> None:
    """`goclaw run` on anything but this machine's own address ends with code 78 and says what to set. (S6)"""
    with over_pipes(tmp_path, "run", host=host, port=0) as process:
        said = process.ends_with(78)
        assert "GOCLAW_GATEWAY_TOKEN" in said
        assert "GOCLAW_HOST=127.0.0.1" in said


@pytest.mark.parametrize("host", [EVERYWHERE, "::"])
def test_a_door_with_a_token_opens(tmp_path: Path, host: str) -> None:
    """With GOCLAW_GATEWAY_TOKEN it serves; that token may do everything, and being on this machine nothing. (S6, S9)"""
    with over_pipes(tmp_path, "run", host=host, port=0, gateway_token=TOKEN) as process:
        url = process.expect(r"http://\S+(?=\s)")
        with httpx2.Client(base_url=url, trust_env=False) as client:
            assert client.get("/v1/me").status_code == 401
            me = client.get("/v1/me", headers={"Authorization": f"Bearer {TOKEN}"}).json()
            assert (me["name"], "operator" in me["scopes"]) == ("gateway", True)
        assert TOKEN not in process.output


async def test_a_chat_opens_no_door_to_others(tmp_path: Path) -> None:
    """Also what serves beside a chat refuses an open address without a token. (S6)"""
    office = make_office(settings_for(tmp_path, host=EVERYWHERE), MemoryStore(utc_now), ["main"], "local")
    with pytest.raises(CannotOpen, match="GOCLAW_GATEWAY_TOKEN"):
        await service.run(office, tmp_path, "local")


OWN = [
    "localhost",
    "LocalHost",
    "localhost.",
    "127.0.0.1",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "gate.example",
    "GATE.EXAMPLE.",
]
FOREIGN = [
    "",
    "evil.example",
    "localhost.evil.example",
    "evil.localhost",
    "localhost..",
    "127.0.0.1.evil.example",
    "127.0.0.2",
    "192.0.2.1",
    EVERYWHERE,
    "[::]",
    "[::ffff:127.0.0.1]",
    "[fe80::1]",
    "2130706433",
    "0x7f.1",
    "127.1",
    "localhost@evil.example",
    "evil.example#localhost",
    "localhost/x",
    "localhost:0",
    "localhost:x",
    "localhost:99999",
    "localhost, evil.example",
    "[::1",
    "::1",
    "l\u043ecalhost",
    " ",
]


@pytest.mark.parametrize("host", OWN)
async def test_the_gateway_answers_to_its_own_names(host: str) -> None:
    """Any case, with a final dot or without, addresses in any form, with any port. (S8)"""
    async with open_served(http_hosts="gate.example, other.example") as served:
        for name in (host, f"{host}:80", f"{host}:18790"):
            async with connected(served) as wire:
                await wire.send(wire.head("GET", "/v1/me", bearer(await served.secret()), host=name))
                assert (await wire.answer()).status == 200, name


async def test_the_gateway_answers_to_no_other_name() -> None:
    """421 on every route, also on loopback and for whoever has a token, and nothing is read or changed. (S8)"""
    async with open_served(http_hosts="gate.example") as served:
        secret = await served.secret()
        for host in FOREIGN:
            for method, path in (
                ("GET", "/healthz"),
                ("GET", "/v1/me"),
                ("POST", "/v1/schedules"),
                ("GET", "/nothing"),
            ):
                async with connected(served) as wire:
                    name = host.encode().decode("latin-1")
                    await wire.send(wire.head(method, path, bearer(secret), "Content-Length: 34", host=name))
                    answer = await wire.answer(method)
                assert answer.status in (421, 400), (host, path, answer.status)
                assert answer.status == 421 or not answer.body, host
                assert "evil" not in answer.body.decode()
        async with connected(served) as wire:
            await wire.send(b"GET /v1/me HTTP/1.0\r\nAuthorization: Bearer %s\r\n\r\n" % secret.encode())
            assert (await wire.answer()).status == 421
        assert await served.store.cron.jobs("default") == ()


async def test_behind_any_address_every_address_is_ones_own(tmp_path: Path) -> None:
    """A gateway on all addresses answers to each of them, as none can be made to lead here; to names it does not."""
    opening = open_served_without_gateway(MemoryStore(utc_now), tmp_path, host=EVERYWHERE, gateway_token=TOKEN)
    async with opening as served:
        for host, status in (("192.0.2.1", 200), ("[2001:db8::1]:80", 200), ("evil.example", 421), ("127.1", 421)):
            async with connected(served) as wire:
                await wire.send(wire.head("GET", "/v1/me", bearer(TOKEN), host=host))
                assert (await wire.answer()).status == status, host


PAGES: list[tuple[dict[str, str], bool]] = [
    ({}, True),
    ({"Origin": "http://{host}"}, True),
    ({"Origin": "https://{host}"}, True),
    ({"Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "none"}, True),
    ({"Origin": "null"}, False),
    ({"Origin": "http://evil.example"}, False),
    ({"Origin": "http://127.0.0.1"}, False),
    ({"Origin": "http://localhost:1"}, False),
    ({"Origin": "http://{host}.evil.example"}, False),
    ({"Origin": "http://evil.example/{host}"}, False),
    ({"Origin": "http://["}, False),
    ({"Origin": "file://"}, False),
    ({"Origin": "chrome-extension://{host}"}, False),
    ({"Origin": ""}, False),
    ({"Sec-Fetch-Site": "cross-site"}, False),
    ({"Sec-Fetch-Site": "same-site"}, False),
    ({"Origin": "http://{host}", "Sec-Fetch-Site": "cross-site"}, False),
]


@pytest.mark.parametrize(("headers", "own"), PAGES, ids=range(len(PAGES)))
async def test_pages_from_elsewhere_change_nothing(headers: dict[str, str], own: bool) -> None:
    """A foreign Origin or Sec-Fetch-Site: 403 on every method that changes something, whatever the token. (S8)"""
    async with open_served() as served:
        secret = await served.secret()
        for method, path in (("POST", "/v1/schedules"), ("PATCH", "/v1/schedules/1"), ("DELETE", "/v1/schedules/1")):
            async with connected(served) as wire:
                given = [f"{name}: {value.format(host=wire.host)}" for name, value in headers.items()]
                given += [bearer(secret), "Content-Type: application/json", f"Content-Length: {len(BODY)}"]
                await wire.send(wire.head(method, path, *given) + BODY.encode())
                answer = await wire.answer(method)
            assert (answer.status == 403) is not own, (method, answer.status, answer.body)
            assert own or answer.problem["code"] == "foreign-origin"
        assert len(await served.store.cron.jobs("default")) == own
        async with connected(served) as wire:
            given = [f"{name}: {value.format(host=wire.host)}" for name, value in headers.items()]
            await wire.send(wire.head("GET", "/v1/me", bearer(secret), *given))
            assert (await wire.answer()).status == 200  # it can be asked for, and no page is let see it


async def test_two_origins_are_one_too_many() -> None:
    """One of them foreign is enough to be refused."""
    async with open_served() as served, connected(served) as wire:
        given = [f"Origin: http://{wire.host}", "Origin: http://evil.example", bearer(await served.secret())]
        await wire.send(wire.head("POST", "/v1/schedules", *given, "Content-Length: 0"))
        assert (await wire.answer("POST")).status == 403


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/notifications/stream", ["Origin: http://evil.example"]),
        ("/v1/notifications/stream", ["Sec-Fetch-Site: cross-site"]),
        ("/v1/notifications/stream", []),
        ("/", []),
    ],
)
async def test_there_is_no_websocket_to_be_had(path: str, headers: list[str]) -> None:
    """An upgrade is refused with 403 before it is accepted, from elsewhere and from here. (S8)"""
    async with open_served() as served, connected(served) as wire:
        upgrade = ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
        upgrade.append("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
        await wire.send(wire.head("GET", path, *upgrade, *headers, bearer(await served.secret())))
        assert (await wire.answer()).status == 403


async def test_no_page_elsewhere_may_read_anything() -> None:
    """No answer, good or bad, has a header that lets other pages see it; frames and guessing are forbidden. (S8)"""
    async with open_served() as served, served.client(await served.secret(), Origin="http://evil.example") as client:
        preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        for answer in (
            await client.get("/v1/me"),
            await client.get("/openapi.json"),
            await client.get("/healthz"),
            await client.get("/nothing"),
            await client.post("/v1/schedules", json={}),
            await client.options("/v1/schedules", headers=preflight),
            await client.head("/v1/me"),
        ):
            assert not [name for name in answer.headers if name.startswith("access-control")]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["cache-control"] == "no-store"
            assert "set-cookie" not in answer.headers
            assert "server" not in answer.headers


CLAIMS = ("X-Forwarded-For", "X-Real-Ip", "Forwarded", "X-Forwarded-Host", "X-Forwarded-Proto", "Client-Ip")


async def test_claimed_addresses_are_not_believed(tmp_path: Path) -> None:
    """Whatever is claimed, wrong tokens count for the address that they come from; nobody is let in for it. (S9)"""
    limits = Limits(wrong_rate=0.001, wrong_burst=5)
    async with open_served_without_gateway(MemoryStore(utc_now), tmp_path, limits) as served, served.client() as client:
        statuses = []
        for number in range(8):
            claimed = dict.fromkeys(CLAIMS, f"10.0.0.{number}") | {"Forwarded": f"for=10.0.0.{number};host=localhost"}
            answer = await client.get("/v1/me", headers={"Authorization": "Bearer gck_wrong", **claimed})
            statuses.append(answer.status_code)
        assert statuses == [401] * 5 + [429] * 3
        for claim in ("127.0.0.1", "::1", "localhost"):
            assert (await client.get("/v1/me", headers=dict.fromkeys(CLAIMS, claim))).status_code == 401


async def test_being_here_is_not_being_somebody() -> None:
    """From loopback without a token nothing is open but health and the document. (S9)"""
    async with open_served() as served, served.client() as client:
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/openapi.json")).status_code == 200
        for path in ("/v1/me", "/v1/status", "/v1/schedules", "/v1/tokens"):
            assert problem_of(await client.get(path))["status"] == 401


async def test_websockets_from_elsewhere_are_refused_before_anything_is_read() -> None:
    """The door itself, asked as a server asks it. (S8)"""
    async with open_served() as served:
        assert await knocked(served, [(b"origin", b"http://evil.example")]) == ["websocket.close"]
        assert await knocked(served, [(b"host", b"evil.example")]) == ["websocket.close"]


async def knocked(served: Served, headers: list[tuple[bytes, bytes]]) -> list[str]:
    said: list[str] = []

    async def receive() -> Any:
        raise AssertionError("nothing is to be read")

    async def send(message: Any) -> None:
        said.append(message["type"])

    scope = {"type": "websocket", "path": "/v1/me", "headers": [(b"host", b"localhost"), *headers], "query_string": b""}
    await make_app(served.office)(scope, receive, send)
    return said


async def test_the_address_of_the_gateway_is_kept_from_others(tmp_path: Path) -> None:
    """The file that tells this user's programs where it is can be read by nobody else. (S20)"""
    async with open_served(None, tmp_path) as served, served.client() as client:
        path = data_directory(served.office.settings) / NAME
        assert path.stat().st_mode & 0o777 == 0o600
        local = json.loads(path.read_text())
        me = kept(await client.get("/v1/me", headers={"Authorization": f"Bearer {local['token']}"}))
        assert me["name"] == "local"
