"""Opening the store: it works, or a person is told what to do, and never what the password is."""

from __future__ import annotations

import logging
import traceback
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest
import trio

from store.postgres import migrations, open_postgres
from store.postgres.bridge import open_bridge
from store.postgres.dsn import read_dsn
from store.protocols import CannotOpen, StoreUnavailable
from store.records import WorkerStatus
from tests.postgres.databases import ask, named
from tests.postgres.proxy import proxied

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.postgres.databases import Databases
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


@pytest.mark.parametrize("host", ["a..b", ".a", "a" * 64, "here.%s.org" % ("b" * 64)])
async def test_a_host_that_can_have_no_such_name_is_told(host: str, caplog: pytest.LogCaptureFixture) -> None:
    """Its name is shown, the password is not."""
    caplog.set_level(logging.DEBUG)
    for dsn in (f"postgresql://ann:S3cret@{host}/chats", f"postgresql://ann:S3cret@/chats?host={host}"):
        error = await refused(dsn)
        assert f"'{host}' cannot be the name of a host" in str(error)
        assert "S3cret" not in everything_said(error) + caplog.text


@pytest.fixture(params=["LATIN1", "SQL_ASCII"])
def encoding(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def narrow_database(postgres: Databases, encoding: str) -> Iterator[str]:
    """The DSN of an empty one with that encoding."""
    with postgres.empty(f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'") as dsn:
        yield dsn


async def test_a_database_that_cannot_hold_every_character_is_refused(narrow_database: str, encoding: str) -> None:
    """Before anything is written to it: the encoding is told, and how to make a database that will do."""
    errors: list[CannotOpen] = [await refused(narrow_database)]
    for verb in (migrations.status, migrations.upgrade):
        with pytest.raises(CannotOpen) as caught:
            await verb(narrow_database)
        errors.append(caught.value)
    for error in errors:
        assert f"encoding {encoding}" in str(error)
        assert "createdb -E UTF8" in str(error)
    assert await ask(narrow_database, "SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace") == []


@pytest.fixture
async def lowly(database: str, empty_database: str) -> AsyncIterator[str]:
    """A role that may do nothing in these two."""
    role = f"lowly_{uuid4().hex[:12]}"
    await ask(database, f"CREATE ROLE {role} LOGIN PASSWORD 'lowly'")
    await ask(empty_database, "REVOKE CREATE ON SCHEMA public FROM public")
    yield role
    await ask(database, f"DROP OWNED BY {role}")
    await ask(database, f"DROP ROLE {role}")


def seen_by(role: str, dsn: str) -> str:
    parts = urlsplit(dsn)
    return urlunsplit(parts._replace(netloc=f"{role}:lowly@{parts.netloc.rpartition('@')[2]}"))


async def test_whoever_may_do_too_little_is_told_what_to_grant(database: str, empty_database: str, lowly: str) -> None:
    """Neither may this role look at the tables of others, nor make some in an empty database."""
    for dsn in (database, empty_database):
        error = await refused(seen_by(lowly, dsn))
        assert f'SCHEMA public TO "{lowly}"' in str(error)
        assert "GRANT SELECT, INSERT, UPDATE, DELETE" in str(error)


async def test_what_is_granted_is_enough_and_its_loss_is_told(database: str, lowly: str) -> None:
    """With the rights that the error names every verb works; without them the verb says so."""
    await ask(database, f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {lowly}")
    await ask(database, f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {lowly}")
    async with open_postgres(seen_by(lowly, database)) as store:
        assert await store.create_tenant("acme")
        await store.beat("w", WorkerStatus.IDLE)
        assert await store.acquire("chat", "me", timedelta(days=1)) is not None
        await ask(database, f"REVOKE INSERT ON tenants FROM {lowly}")
        with pytest.raises(StoreUnavailable, match="GRANT SELECT, INSERT") as caught:
            await store.create_tenant("other")
    assert not caught.value.retriable


@pytest.mark.parametrize("option", ["sslrootcert", "sslcert"])
async def test_a_file_for_tls_that_is_not_there_is_named(database: str, tmp_path: Path, option: str) -> None:
    """It is not the server that is away."""
    file = tmp_path / "root.pem"
    error = await refused(f"postgresql://ann:S3cret@localhost/chats?sslmode=require&{option}={file}")
    assert f"there is no file '{file}'" in str(error)
    assert "S3cret" not in everything_said(error)


async def test_a_server_that_says_nothing_is_given_up(database: str) -> None:
    """A dead wire does not hold the start for ever."""
    async with proxied(database) as proxy:
        proxy.go_dead()
        with trio.fail_after(30):
            error = await refused(proxy.dsn, timedelta(seconds=0.5))
    assert "does not answer" in str(error)
