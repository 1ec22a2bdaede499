"""With 50,000 rows in every large table no verb of the daily work reads a whole one. (R24)"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import trio

from store.jobs import (
    KEEP_NEWS,
    KEEP_OUTPUTS,
    KEEP_RUNS,
    Job,
    NewJob,
    News,
    Run,
    Timing,
    Trigger,
    TriggerKind,
)
from store.pairing import CODE_LASTS, DENIED_FOR
from store.postgres.bridge import open_bridge
from store.postgres.cron_rows import as_json, job_row, job_state, news_row, run_end, trigger_row
from store.postgres.database import Limits, connect
from store.postgres.dsn import read_dsn
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
from tests.postgres.databases import Databases, run_script

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGE = (
    "inbox",
    "outbox",
    "sessions",
    "session_messages",
    "heartbeats",
    "machine_snapshots",
    "cron_jobs",
    "cron_triggers",
    "cron_run_logs",
    "cron_outputs",
    "notifications",
    "pairings",
)
EPOCH = datetime(2026, 3, 1, tzinfo=UTC)
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
INSERT INTO tenants SELECT 'tenant ' || n, '', 'UTC', true, now() FROM generate_series(1, 20) AS n;
INSERT INTO cron_jobs
SELECT CASE WHEN n % 2 = 0 THEN 'default' ELSE 'tenant ' || n % 20 + 1 END, n, 'u' || n, 'agent ' || n % 10, '', 'hi',
    'every', 'UTC', NULL, 3600000000, '', '{}', NULL, 'fresh', '', '', '', false, now() - n * interval '1 minute',
    now() - n * interval '1 minute', CASE WHEN n % 5 = 0 THEN 'completed' ELSE 'active' END, '', NULL, NULL, NULL, '',
    NULL, 0, 0, NULL, '', NULL, NULL, CASE WHEN n % 5 = 0 THEN NULL ELSE now() + (n - 100) * interval '1 minute' END,
    NULL
FROM generate_series(1, 50000) AS n;
INSERT INTO cron_triggers (tenant_id, id, job, agent, kind, slot, due_at, created_at, state, reason, trace, attempt,
    token, owner, leased_until, count, ended_at)
SELECT tenant_id, 't' || id, id, agent, 'schedule', next_at, next_at, created_at,
    CASE WHEN next_at < now() AND id % 2 = 0 THEN 'executing' ELSE 'pending' END, '', '', 0, 1, 'w' || id % 3,
    CASE WHEN next_at < now() AND id % 2 = 0 THEN next_at END, 1, NULL
FROM cron_jobs WHERE status = 'active';
INSERT INTO cron_triggers (tenant_id, id, job, agent, kind, slot, due_at, created_at, state, reason, trace, attempt,
    token, owner, count, ended_at)
SELECT tenant_id, 'old' || id, id, agent, 'schedule', created_at, created_at, created_at, 'completed', '', '', 1, 1,
    'w', 1, created_at
FROM cron_jobs;
INSERT INTO cron_run_logs (tenant_id, id, job, trigger, attempt, agent, kind, worker, trace, started_at, lateness_us,
    state, ended_at)
SELECT tenant_id, 'r' || id, job, id, 1, agent, kind, owner, '', created_at, 0,
    CASE WHEN state = 'completed' THEN 'succeeded' ELSE 'running' END, ended_at
FROM cron_triggers WHERE state IN ('completed', 'executing');
INSERT INTO cron_outputs SELECT tenant_id, id, started_at, 'hi' FROM cron_run_logs;
INSERT INTO notifications SELECT 'default', n, now() - n * interval '1 minute', 'run.started', 1, 'r', '{}'
FROM generate_series(1, 50000) AS n;
INSERT INTO pairings (tenant_id, channel, account, sender, name, digest, state, asked_at, decided_at)
SELECT CASE WHEN n % 500 > 0 THEN 'tenant ' || n % 20 + 1 END, 'fake', 'bot' || n % 3, n, 'Ann', 'd' || n,
    CASE WHEN n % 500 > 0 THEN 'approved' WHEN n % 1000 > 0 THEN 'denied' ELSE 'pending' END, now() - interval '2 h',
    CASE WHEN n % 1000 > 0 THEN now() - n % 30 * interval '1 h' END
FROM generate_series(1, 50000) AS n;
INSERT INTO cron_counters VALUES ('default', 50000, 50000);
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
CRON, PAIRINGS = load("cron"), load("pairings")
ANN = ("fake", "bot1", "7")
SPAN = timedelta(minutes=5)
CLAIMS = '[{"tenant_id": "default", "id": "t2", "token": 1, "run": "r", "place": 0}]'
JOBS = (["default", "tenant 2"], [2, 21])
NAMES = (["default", "tenant 2"], ["t2", "t21"])
JOB = Job(2, NewJob("u2", "default", "main", "hi", Timing("webhook")), EPOCH, EPOCH)
TRIGGER = Trigger("t2", "default", 2, "main", TriggerKind.SCHEDULE, EPOCH, EPOCH, EPOCH)
RUN = Run("r2", "default", 2, "t2", 1, "main", TriggerKind.SCHEDULE, None, "w", "", EPOCH, SPAN)
WRITTEN = (
    EPOCH,
    as_json([job_state(JOB)]),
    as_json([trigger_row(0, TRIGGER)]),
    as_json([run_end(RUN)]),
    as_json([news_row(0, News("run.started", "default", 2, "r2"))]),
    ["due"],
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
    "sent": (MESSAGES["sent"], (*WHO, 5, "")),
    "session": (SESSIONS["session"], PLACE),
    "sessions": (SESSIONS["sessions"], ("default", "default:main", 100)),
    "remember": (SESSIONS["remember"], (None, *PLACE, "[]")),
    "transcript": (SESSIONS["transcript"], (*PLACE, 50, 100)),
    "newest": (SESSIONS["newest"], (*PLACE, 20)),
    "trim": (SESSIONS["trim"], (None, *PLACE, 50)),
    "beats": (WORKERS["beats"], ("w1", 10)),
    "readings": (WORKERS["readings"], (60,)),
    "tidy": (UPKEEP["tidy"], TIDY),
    "allowed": (PAIRINGS["allowed"], ANN),
    "who": (PAIRINGS["one"], ANN),
    "who knocks there": (PAIRINGS["at_account"], ANN[:2]),
    "who has a code": (PAIRINGS["with_code"], ("d7",)),
    "knocks": (PAIRINGS["knocks"], (None,)),
    "pair": (PAIRINGS["write"], (*ANN, "Ann", "d7", "approved", EPOCH, "default", "me", EPOCH)),
    "dismiss": (PAIRINGS["remove"], ANN),
    "tidy knocks": (PAIRINGS["tidy"], (None, CODE_LASTS, DENIED_FOR, 1000)),
    "cron claim": (CRON["claim"], (None, "w", 10, SPAN, "default", ["agent 1", "agent 2"], [0, 3])),
    "cron claim without limits": (CRON["claim"], (None, "w", 10, SPAN, "", [], [])),
    "cron claim_orphans": (CRON["claim_orphans"], (None, "w", 10, SPAN, SPAN)),
    "cron held": (CRON["held"], (None, "w1")),
    "cron next_due": (CRON["next_due"], (None,)),
    "cron renew": (CRON["renew"], (None, SPAN, CLAIMS)),
    "cron start": (CRON["start"], (None, CLAIMS)),
    "cron before_adding": (CRON["before_adding"], (None, "default", "new", "agent 1", 500, 100)),
    "cron job": (CRON["job"], ("default", 2)),
    "cron jobs": (CRON["jobs"], ("default", 100, 200, None)),
    "cron jobs of a status": (CRON["jobs"], ("default", 100, 200, ["active"])),
    "cron unplanned": (CRON["unplanned"], (None, 100, 1000)),
    "cron fire": (CRON["fire"], (None, "default", "new", "key", 2, "manual", "")),
    "cron trigger": (CRON["trigger"], ("default", "t2")),
    "cron triggers": (CRON["triggers"], ("default", 2, 50)),
    "cron lock_jobs": (CRON["lock_jobs"], (None, *JOBS)),
    "cron open_triggers": (CRON["open_triggers"], JOBS),
    "cron tokens": (CRON["tokens"], NAMES),
    "cron withdraw": (CRON["withdraw"], NAMES),
    "cron put_jobs": (CRON["put_jobs"], (as_json([job_row(JOB)]),)),
    "cron say": (CRON["say"], (EPOCH, "[]", END[2], "[]")),
    "cron write": (CRON["write"], WRITTEN),
    "cron remove": (CRON["remove"], JOBS),
    "cron runs": (CRON["runs"], ("default", 100)),
    "cron runs of a job": (CRON["runs_of_job"], ("default", 100, 2)),
    "cron runs since": (CRON["runs_since"], ("default", 100, EPOCH)),
    "cron runs of a job since": (CRON["runs_of_job_since"], ("default", 100, 2, EPOCH)),
    "cron run": (CRON["run"], ("default", "rold2")),
    "cron job_with": (CRON["job_with"], ("default", "a job")),
    "cron output": (CRON["output"], ("default", "rold2")),
    "cron notifications": (CRON["notifications"], ("default", 49_000, 100)),
    "cron tidy_jobs": (CRON["tidy_jobs"], (None, KEEP_RUNS, 1000)),
    "cron tidy": (CRON["tidy"], (None, KEEP_RUNS, KEEP_OUTPUTS, KEEP_NEWS, 1000)),
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
    for plan in (await these_values(full, statement, values), await any_values(full, statement, len(values))):
        text = "\n".join(row[0] for row in plan)
        assert not [table for table in LARGE if f"Seq Scan on {table}" in text], text


async def these_values(dsn: str, statement: str, values: tuple[object, ...]) -> list[Any]:
    """The plan for the values at hand."""
    async with open_bridge() as bridge:
        connection = await bridge.run(connect, read_dsn(dsn), Limits())
        plan: list[Any] = await bridge.run(connection.fetch, f"EXPLAIN {statement}", *values)
        await bridge.run(connection.close)
        return plan


async def any_values(dsn: str, statement: str, count: int) -> list[Any]:
    """The plan that a connection settles for after it was asked some times."""
    async with open_bridge() as bridge:
        connection = await bridge.run(connect, read_dsn(dsn), Limits())
        await bridge.run(connection.execute, "SET plan_cache_mode = force_generic_plan")
        await bridge.run(connection.execute, f"PREPARE verb AS {statement}")
        values = f"({', '.join(['NULL'] * count)})" if count else ""
        plan: list[Any] = await bridge.run(connection.fetch, f"EXPLAIN EXECUTE verb{values}")
        await bridge.run(connection.close)
        return plan
