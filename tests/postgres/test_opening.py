"""Opening the store: it works, or a person is told what to do, and never what the password is."""

from __future__ import annotations

import logging
import traceback
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg
import pytest
import trio

from store.postgres import migrations, open_postgres
from store.postgres.bridge import open_bridge
from store.postgres.dsn import read_dsn
from store.protocols import CannotOpen
from tests.postgres.databases import ask, named
from tests.postgres.proxy import proxied

if TYPE_CHECKING:
    from tests.postgres.server import Server

CANARY = "ca:na/ry@S3#cr?t%"
CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'goclaw' AND pid <> pg_backend_pid()
"""


async def refused(dsn: str, patience: timedelta = timedelta(seconds=10)) -> CannotOpen:
    with pytest.raises(CannotOpen) as caught:
        async with open_postgres(dsn, statement_timeout=patience):
            pass
    assert not caught.value.retriable
    return caught.value


def everything_said(error: BaseException | None) -> str:
    """What any log or screen could show of it: the whole chain, also what is hidden in it."""
    if error is None:
        return ""
    told = [repr(error), repr(error.__dict__), *traceback.format_exception(error)]
    return "\n".join([*told, everything_said(error.__cause__), everything_said(error.__context__)])


async def test_goodbye_is_no_trouble_when_the_connections_were_cut(database: str) -> None:
    """The store has done its work; that the server has hung up on it just now is nobody's concern."""
    async with open_bridge() as bridge:
        cutter = await bridge.run(asyncpg.connect, database)
        try:
            for _ in range(30):
                async with open_postgres(database, connections=4) as store:
                    async with trio.open_nursery() as nursery:
                        for _ in range(8):
                            nursery.start_soon(store.tenants)
                    assert await bridge.run(cutter.fetch, CUT)
        finally:
            await bridge.run(cutter.close)


async def test_an_empty_database_is_given_its_schema(empty_database: str) -> None:
    """The first start needs no other command."""
    async with open_postgres(empty_database) as store:
        assert [tenant.id for tenant in await store.tenants()] == ["default"]
    assert (await migrations.status(empty_database)).pending == ()


async def test_a_server_that_is_not_there_is_named() -> None:
    """Refused: host, port, database and user are told, and what to look at."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    await listeners[0].aclose()
    error = await refused(f"postgresql://ann:secret@127.0.0.1:{port}/chats")
    assert error.fields == {"host": "127.0.0.1", "port": str(port), "database": "chats", "user": "ann"}
    for part in ("127.0.0.1", str(port), "chats", "ann", "check that the server runs"):
        assert part in str(error)


async def test_a_database_that_is_not_there_is_named(database: str) -> None:
    """Missing: the name, and how to make it."""
    error = await refused(named(database, "nowhere"))
    assert "'nowhere'" in str(error)
    assert "createdb nowhere" in str(error)


async def test_a_wrong_password_is_told_without_it(own_postgres: Server, caplog: pytest.LogCaptureFixture) -> None:
    """Neither as it is nor percent-encoded does it appear in the error, its causes or a log."""
    caplog.set_level(logging.DEBUG)
    await ask(own_postgres.dsn, "CREATE ROLE locked LOGIN PASSWORD 'another'")
    parts = urlsplit(own_postgres.dsn)
    coded = quote(CANARY, safe="")
    error = await refused(urlunsplit(parts._replace(netloc=f"locked:{coded}@")))
    assert "'locked'" in str(error)
    assert "password" in str(error)
    said = everything_said(error) + caplog.text
    assert CANARY not in said
    assert coded not in said


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://ann:{CANARY}@host/chats",
        f"postgresql://ann:{CANARY}",
        "postgresql://ann:S3#cret@host:5432/chats",
        "postgresql://ann:S3/cret@host:5432/chats",
        "postgresql://ann:S3?cret@host:5432/chats",
        "postgresql://ann:S3%cret@host:5432/chats",
        "postgresql://ann:S3cret@host:port/chats",
        "postgresql://ann:S3cret@[host/chats",
        "mysql://ann:S3cret@host/chats",
        "host=here password=S3cret",
        "S3cret",
        "",
    ],
)
async def test_a_dsn_that_cannot_be_read_is_not_repeated(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody knows which part of it was to be the password, so no part of it is shown."""
    caplog.set_level(logging.DEBUG)
    error = await refused(dsn)
    assert "postgresql://user:password@host:5432/database" in str(error)
    said = (
        str(error) + repr(error) + repr(error.__dict__) + repr(error.__cause__) + repr(error.__context__) + caplog.text
    )
    for part in ("S3", "cret", "ca:na", "ry@", "na/ry"):
        assert part not in said


async def test_a_wrong_option_is_told_without_the_password() -> None:
    """The driver's own words about a DSN are not trusted with it."""
    error = await refused("postgresql://ann:S3cret@localhost/chats?sslmode=S3cret")
    assert "S3cret" not in str(error) + repr(error.__cause__) + repr(error.__context__)


def test_a_target_does_not_show_its_dsn() -> None:
    """Whatever prints it."""
    target = read_dsn("postgresql://ann:S3cret@host:6543/chats?password=S3cret")
    assert "S3cret" not in f"{target}{target!r}{target.fields}"
    assert str(target) == "database 'chats' at host port 6543 as user 'ann'"


async def test_an_old_server_is_refused(database: str) -> None:
    """Both versions are told; nothing is changed."""
    ((version,),) = await ask(database, "SHOW server_version")
    told = f"server_version\0{version}\0".encode()
    old = f"server_version\0{'13.9':0<{len(version)}}\0".encode()
    async with proxied(database, {told: old}) as proxy:
        error = await refused(proxy.dsn)
    assert "version 13.9" in str(error)
    assert "14 or newer" in str(error)


async def test_a_server_that_says_nothing_is_given_up(database: str) -> None:
    """A dead wire does not hold the start for ever."""
    async with proxied(database) as proxy:
        proxy.go_dead()
        with trio.fail_after(30):
            error = await refused(proxy.dsn, timedelta(seconds=0.5))
    assert "does not answer" in str(error)
