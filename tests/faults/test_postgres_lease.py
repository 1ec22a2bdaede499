"""Two processes want the chat lease: one has it at any time, and whoever slept through its end can write nothing."""

from __future__ import annotations

import signal

import trio

from tests.faults.talking import started
from tests.postgres.databases import ask, run_script

CONTENDER = "tests.postgres.contender"
NOTHING: dict[str, object] = {
    "accept": None,
    "cursor": None,
    "begin": [],
    "settle": False,
    "stop": [],
    "resume": [],
    "waiting": [],
    "outbox": [],
    "progress": False,
    "sent": False,
    "renew": None,
    "release": False,
}
RECORD = """
CREATE TABLE grants (at timestamptz, owner text, token bigint, was_owner text, was_until timestamptz);
CREATE FUNCTION record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO grants VALUES (now(), NEW.owner, NEW.token, OLD.owner, OLD.until);
    RETURN NEW;
END $$;
CREATE TRIGGER record AFTER INSERT OR UPDATE OF token ON leases FOR EACH ROW EXECUTE FUNCTION record();
"""


async def test_a_holder_that_was_frozen_is_refused_by_every_verb(database: str) -> None:
    """It wakes beyond its lease and changes nothing; tokens rise, and no two hold it at once. (R12)"""
    await run_script(database, RECORD)
    tokens: list[int] = []
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            holder = await started(nursery, CONTENDER, "first", database, "first")
            tokens.append((await holder.next_line())["held"])
            other = await started(nursery, CONTENDER, "second", database, "second")
            for _ in range(3):
                holder.process.send_signal(signal.SIGSTOP)
                tokens.append((await other.next_line())["held"])
                holder.process.send_signal(signal.SIGCONT)
                assert await holder.next_line() == {"token": tokens[-2], "refused": NOTHING}
                holder, other = other, holder
            nursery.cancel_scope.cancel()
    assert tokens == [1, 2, 3, 4]
    await check_the_record(database, tokens)


async def check_the_record(database: str, tokens: list[int]) -> None:
    """What the database saw: each grant under a new token, after the one before it had run out."""
    grants = await ask(database, "SELECT * FROM grants ORDER BY token")
    assert [grant["token"] for grant in grants] == tokens
    assert [grant["owner"] for grant in grants] == ["first", "second", "first", "second"]
    assert all(grant["was_until"] <= grant["at"] for grant in grants[1:])
    written = await ask(database, "SELECT external_id, state FROM inbox ORDER BY id")
    assert not [row for row in written if "late" in row["external_id"]]
    assert {row["state"] for row in written if "runs" in row["external_id"]} == {"running"}
    assert len(await ask(database, "SELECT FROM outbox WHERE body = 'an answer' AND live = ''")) == len(tokens)
    assert await ask(database, "SELECT FROM cursors") == []
