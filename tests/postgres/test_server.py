"""The server of the test run: shared, and gone with the run."""

from __future__ import annotations

import asyncpg

from store.bridge import open_bridge


async def test_a_database_is_a_real_and_recent_postgres(database: str) -> None:
    """What the tests run against is a server, not something that looks like one."""
    async with open_bridge() as bridge:
        connection = await bridge.run(asyncpg.connect, database)
        assert (await bridge.run(connection.fetchval, "SHOW server_version_num")) >= "140000"
        await bridge.run(connection.close)
