"""Migrations: forward only, each once, whoever asks for them and however many at once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
import trio

from store.postgres import migrations, open_postgres
from store.postgres.queries import Migration
from store.postgres.queries import migrations as known_migrations
from store.protocols import CannotOpen
from tests.postgres.databases import ask

if TYPE_CHECKING:
    from store.postgres.migrations import Upgraded

NEWEST = known_migrations()[-1].version
UPGRADE = "import sys, trio\nfrom store.postgres import migrations\nprint(trio.run(migrations.upgrade, sys.argv[1]))"


async def test_an_upgrade_goes_from_nothing_to_the_newest(empty_database: str) -> None:
    """Every migration is applied and noted; asking again changes nothing."""
    before = await migrations.status(empty_database)
    assert (before.version, before.newest, len(before.pending)) == (0, NEWEST, len(known_migrations()))
    assert await migrations.upgrade(empty_database) == migrations.Upgraded(0, NEWEST)
    assert await migrations.upgrade(empty_database) == migrations.Upgraded(NEWEST, NEWEST)
    after = await migrations.status(empty_database)
    assert (after.version, after.pending) == (NEWEST, ())
    rows = await ask(empty_database, "SELECT version, name, checksum FROM schema_migrations ORDER BY version")
    assert [tuple(row) for row in rows] == [(one.version, one.name, one.checksum) for one in known_migrations()]


async def test_looking_changes_nothing(empty_database: str) -> None:
    """A status of an empty database leaves it empty."""
    await migrations.status(empty_database)
    assert await ask(empty_database, "SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace") == []


async def test_the_numbers_have_no_gap() -> None:
    """Versions count from 1, so that two people who add one at once notice."""
    assert [one.version for one in known_migrations()] == list(range(1, NEWEST + 1))


async def test_tasks_may_upgrade_at_once(empty_database: str) -> None:
    """All of them end with the newest schema, which was made once."""
    results: list[Upgraded] = []

    async def one() -> None:
        results.append(await migrations.upgrade(empty_database))

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(one)
    assert {result.after for result in results} == {NEWEST}
    assert len(await ask(empty_database, "SELECT FROM schema_migrations")) == NEWEST


async def test_processes_may_upgrade_at_once(empty_database: str) -> None:
    """The lock holds between processes too: none of them fails."""
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(trio.run_process, [sys.executable, "-c", UPGRADE, empty_database])
    assert (await migrations.status(empty_database)).version == NEWEST


async def test_an_older_schema_asks_for_the_upgrade(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program does not change what somebody may still use: it tells the command."""
    further = (*known_migrations(), Migration(NEWEST + 1, "more", "CREATE TABLE more ()"))
    monkeypatch.setattr(migrations, "migrations", lambda: further)
    with pytest.raises(CannotOpen, match="run `goclaw db upgrade`"):
        async with open_postgres(database):
            pass
    assert (await migrations.status(database)).pending == (f"{NEWEST + 1:04} more",)
    assert await migrations.upgrade(database) == migrations.Upgraded(NEWEST, NEWEST + 1)
    async with open_postgres(database) as store:
        assert await store.tenant("default")


async def test_a_migration_that_fails_leaves_nothing(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its statements go together or not at all, and a person is told."""
    broken = (*known_migrations(), Migration(NEWEST + 1, "broken", "CREATE TABLE more (); SELECT 1/0"))
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "migrations", lambda: broken)
        with pytest.raises(CannotOpen, match="division by zero"):
            await migrations.upgrade(database)
    assert (await migrations.status(database)).version == NEWEST
    assert await ask(database, "SELECT to_regclass('more') IS NULL") == [(True,)]


async def test_a_newer_schema_is_left_alone(database: str) -> None:
    """Neither opened nor upgraded: the newer program is named as the way out."""
    await ask(database, "INSERT INTO schema_migrations VALUES ($1, 'future', '')", NEWEST + 1)
    for attempt in (migrations.upgrade, migrations.status):
        with pytest.raises(CannotOpen, match="newer than this program"):
            await attempt(database)
    with pytest.raises(CannotOpen, match="start the newer goclaw"):
        async with open_postgres(database):
            pass


async def test_another_past_is_noticed(database: str) -> None:
    """A migration that was edited after it was applied is told, not passed over."""
    await ask(database, "UPDATE schema_migrations SET checksum = 'other' WHERE version = 1")
    with pytest.raises(CannotOpen, match="another text of the migration"):
        async with open_postgres(database):
            pass
