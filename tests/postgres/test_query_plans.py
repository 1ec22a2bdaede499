"""With 50,000 rows in every large table no verb of the daily work reads a whole one. (R24)"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
import trio

from store.postgres.bridge import open_bridge
from store.postgres.messages import SOURCES
from store.postgres.queries import load
from store.postgres.rows import batch_json, notes_json, said_json
from store.records import (
    KEEP_BEATS,
    KEEP_READINGS,
    REMEMBER_KEYS,
    DeliveryKey,
    Incoming,
    MessageState,
    Note,
    Role,
    Said,
    SessionKey,
)
from tests.postgres.databases import Databases, ask, run_script

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGE = ("inbox", "outbox", "sessions", "session_messages", "heartbeats", "machine_snapshots")
HERE = SessionKey("default", "main", "fake", "bot", "7")
FILL = """
INSERT INTO inbox (tenant_id, session, channel, account, external_id, sender, body, is_group, is_admin, is_control,
    accepted_at, state, ended_at)
SELECT 'default', CASE WHEN n % 50 = 0 THEN 'default:main:fake:bot:' || n % 1000 || '::0' ELSE '' END, 'fake', 'bot', n,
    'ann', 'hello', false, false, false, now() - n * interval '1 minute',
    CASE WHEN n % 50 = 0 THEN 'accepted' ELSE 'done' END,
    CASE WHEN n % 50 = 0 THEN NULL ELSE now() - n * interval '1 minute' END
FROM generate_series(1, 50000) AS n;
INSERT INTO outbox (tenant_id, session, address, body, urgent, answers)
SELECT 'default', 'default:main:fake:bot:' || n % 1000 || '::0', 'fake:bot:' || n % 1000 || ':', 'hi', n % 99 = 0, '{1}'
FROM generate_series(1, 50000) AS n;
INSERT INTO sessions (tenant_id, session, lines, updated_at)
SELECT 'default', 'default:main:fake:bot:' || n || '::0', 100, now() FROM generate_series(1, 50000) AS n;
INSERT INTO session_messages (tenant_id, session, number, said_at, role, body, data)
SELECT 'default', 'default:main:fake:bot:' || n / 100 + 1 || '::0', n % 100 + 1, now(), 'user', 'hello', '{}'
FROM generate_series(0, 49999) AS n;
INSERT INTO heartbeats (worker, status, run, context, at)
SELECT 'w' || n % 5, 'alive', '', '{}', now() - n * interval '1 minute' FROM generate_series(1, 50000) AS n;
INSERT INTO machine_snapshots (worker, active_workers, active_runs, context, at)
SELECT 'w', 1, 1, '{}', now() - n * interval '1 minute' FROM generate_series(1, 50000) AS n;
INSERT INTO leases VALUES ('chat', 'me', 1, 'infinity');
ANALYZE;
"""

MESSAGES, SESSIONS, WORKERS, UPKEEP = (load(file) for file in ("messages", "sessions", "workers", "upkeep"))
WHO = (None, 1)
PLACE = ("default", str(HERE))
BATCH = batch_json([Incoming(DeliveryKey("fake", "bot", text), HERE, "ann", text) for text in ("7", "new")])
END = (
    MessageState.DONE,
    SOURCES[MessageState.DONE],
    notes_json([Note(HERE, "hi")]),
    said_json([Said(Role.USER, "hi")]),
)
TIDY = (None, REMEMBER_KEYS, KEEP_BEATS, KEEP_READINGS, 1000)
ASKED: dict[str, tuple[str, tuple[object, ...]]] = {
    "accept": (MESSAGES["accept"], (*WHO, BATCH, "fake", "bot", 5, timedelta(days=7))),
    "begin": (MESSAGES["begin"], (*WHO, "turn", [50, 100])),
    "settle": (MESSAGES["settle"], (*WHO, "turn", [50, 100], *END, 0.5)),
    "stop": (MESSAGES["stop"], (*WHO, *PLACE, 5000, None, None)),
    "stop some": (MESSAGES["stop"], (*WHO, *PLACE, 5000, "ann", [50, 100])),
    "put_back": (MESSAGES["put_back"], (*WHO, "turn", [50, 100])),
    "resume": (MESSAGES["resume"], WHO),
    "waiting": (MESSAGES["waiting"], WHO),
    "standings": (MESSAGES["standings"], (f'[{{"tenant_id": "default", "session": "{HERE}"}}]',)),
    "outbox": (MESSAGES["outbox"], (*WHO, 50, ["fake:bot:7:"])),
    "progress": (MESSAGES["progress"], (*WHO, 5, 1, "x")),
    "sent": (MESSAGES["sent"], (*WHO, 5)),
    "session": (SESSIONS["session"], PLACE),
    "sessions": (SESSIONS["sessions"], ("default", "default:main", 100)),
    "remember": (SESSIONS["remember"], (None, *PLACE, "[]")),
    "transcript": (SESSIONS["transcript"], (*PLACE, 50, 100)),
    "newest": (SESSIONS["newest"], (*PLACE, 20)),
    "trim": (SESSIONS["trim"], (None, *PLACE, 50)),
    "beats": (WORKERS["beats"], ("w1", 10)),
    "readings": (WORKERS["readings"], (60,)),
    "tidy": (UPKEEP["tidy"], TIDY),
}


@pytest.fixture(scope="module")
def full(postgres: Databases) -> Iterator[str]:
    """The DSN of a large database."""
    with postgres.fresh() as dsn:
        trio.run(run_script, dsn, FILL)
        yield dsn


@pytest.mark.parametrize("verb", ASKED)
async def test_a_verb_goes_by_an_index(full: str, verb: str) -> None:
    """Neither with the values at hand nor in the plan for any values is a large table read from end to end."""
    statement, values = ASKED[verb]
    plans = [await ask(full, f"EXPLAIN {statement}", *values), await any_values(full, statement, len(values))]
    for plan in plans:
        text = "\n".join(row[0] for row in plan)
        assert not [table for table in LARGE if f"Seq Scan on {table}" in text], text


async def any_values(dsn: str, statement: str, count: int) -> list[Any]:
    """The plan that a connection settles for after it was asked some times."""
    async with open_bridge() as bridge:
        connection = await bridge.run(asyncpg.connect, dsn)
        await bridge.run(connection.execute, "SET plan_cache_mode = force_generic_plan")
        await bridge.run(connection.execute, f"PREPARE verb AS {statement}")
        values = f"({', '.join(['NULL'] * count)})" if count else ""
        plan: list[Any] = await bridge.run(connection.fetch, f"EXPLAIN EXECUTE verb{values}")
        await bridge.run(connection.close)
        return plan
