"""From files to a database: everything is there afterwards, and copying again brings only what is new."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from store.copying import Copied
from store.files import gather, open_json
from store.jobs import Delivery, JobStatus, Rules, RunState, TriggerState
from store.pairing import Knock, Sender
from store.postgres import open_postgres
from store.postgres.adopt import _adopt, adopt
from store.records import (
    CHAT_LEASE,
    Cursor,
    MessageState,
    NewToken,
    Note,
    Reading,
    Role,
    Said,
    SessionKey,
    SessionPolicy,
    WorkerStatus,
)
from tests.contract.backends import Wall
from tests.contract.cron_rows import (
    AT_NOON,
    HOUR,
    WEBHOOK,
    Plan,
    added,
    changed,
    claim_one,
    ended,
    fired,
    passed,
    settled,
)
from tests.contract.cron_rows import running as cron_running
from tests.contract.picture import normal, picture
from tests.contract.rows import HERE, NOTE, THERE, accepted, delivered, running, sent, state, waiting_replies

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from store.files import JsonStore
    from store.postgres import PostgresStore
    from store.protocols import MessageStore, Store

ACME = SessionKey("acme", "main", "fake", "bot", "there \x00 :")
CENTURY = timedelta(days=36_500)
ALL = Plan("n", end=TriggerState.COMPLETED, note="an\x00swer", said="an\x00swer", news="run.completed", stretch="s")


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
async def files(tmp_path: Path, wall: Wall) -> AsyncIterator[JsonStore]:
    async with open_json(tmp_path / "data", wall, compact_at=2_000) as store:
        yield store


@pytest.fixture
async def database(database: str, wall: Wall) -> AsyncIterator[PostgresStore]:
    async with open_postgres(database, now=wall) as store:
        yield store


async def working(store: Store) -> MessageStore:
    return store.messages(await store.acquire(CHAT_LEASE, "me", CENTURY))


async def fill(store: Store) -> None:
    """A bit of everything, in every state."""
    messages = await working(store)
    await store.create_tenant("acme", "Acme", "Europe/Berlin")
    await store.create_tenant("off")
    await store.enable_tenant("off", False)
    await store.add_token(NewToken("t1", "acme", "phone", "0" * 64, ("chat", "cron")))
    await store.add_token(NewToken("t2", "acme", "old", "1" * 64))
    await store.revoke_token("acme", "t2")
    for sender, code in enumerate("abc"):
        await store.knock(Knock(Sender("fake", "b\x00t", str(sender)), "n\x00", code))
    await store.approve("a", "acme", "the phone")
    await store.deny(Sender("fake", "b\x00t", "1"), "me")
    await messages.accept([sent("waits"), sent("also\x00waits", ACME)], Cursor("fake", "bot", 17))
    ids = await running(messages, "done")
    said = [Said(Role.USER, "done"), Said(Role.TOOL, "\ue000", {"calls": [1, {"two": "\x00"}]})]
    await messages.settle("turn", ids, MessageState.DONE, [NOTE, Note(ACME, "an aside", urgent=True)], said, 0.4)
    (first, *_) = await messages.outbox(10)
    await messages.progress(first.id, 2, "live id")
    await running(messages, "runs", turn="other")
    await store.set_policy(THERE, SessionPolicy("steer", 3, "new", 0, 2))
    await store.remember(ACME, [Said(Role.ASSISTANT, str(number)) for number in range(50)])
    await store.trim(ACME, 7)
    await store.beat("w1", WorkerStatus.BUSY, run="r", context={"lanes": 2})
    await store.record(Reading("w1", 1, 2, None, 512.5, {"cores": 2}))


async def seen(store: Store) -> object:
    """Both sides as they are after a start: what was running waits again."""
    messages = await working(store)
    await messages.resume()
    return normal(await picture(store, messages, leases=()))


async def test_everything_arrives(files: JsonStore, database: PostgresStore) -> None:
    """After copying the database holds what the directory holds, whatever the texts are made of."""
    await fill(files)
    await adopt(database, await gather(files))
    assert await seen(database) == await seen(files)
    assert await state(await working(database), "done") is MessageState.DONE


async def test_the_same_delivery_in_two_tenants_arrives_in_both(files: JsonStore, database: PostgresStore) -> None:
    """What has ended in one of them and waits in the other does so afterwards, and each reply answers its own. (P11)"""
    messages = await working(files)
    await files.create_tenant("acme")
    ids = await running(messages, "a")
    await accepted(messages, "a", session=ACME)
    await messages.settle("turn", ids, MessageState.DONE, [NOTE])
    assert (await adopt(database, await gather(files))).messages == 2
    assert await seen(database) == await seen(files)
    copied = await working(database)
    ours, theirs = await delivered(copied, sent("a"), sent("a", ACME))
    assert (ours.state, theirs.state) == (MessageState.DONE, MessageState.ACCEPTED)
    assert [reply.answers for reply in await copied.outbox(10)] == [(ours.id,)]


async def test_copying_again_changes_nothing(files: JsonStore, database: PostgresStore) -> None:
    """The second time there is nothing new, and nothing is there twice."""
    await fill(files)
    first = await adopt(database, await gather(files))
    before = await seen(database)
    again = await adopt(database, await gather(files))
    assert await seen(database) == before
    assert (first.messages, first.replies, first.lines) == (4, 2, 45)
    assert again == Copied()


async def test_what_was_answered_in_the_database_does_not_come_back(
    files: JsonStore, database: PostgresStore, wall: Wall
) -> None:
    """Weeks later, when even the keys are forgotten, an old directory brings no old message. (P6)"""
    await fill(files)
    await adopt(database, await gather(files))
    messages = await working(database)
    for message in await messages.resume():
        await messages.settle("", [message.id], MessageState.FAILED, [])
    for reply in await messages.outbox(10):
        await messages.sent(reply.id)
    wall.pass_by(timedelta(days=30))
    while any(await database.tidy()):
        pass
    copied = await adopt(database, await gather(files))
    assert (copied.messages, copied.replies) == (0, 0)
    assert await messages.waiting() == ()


async def test_what_is_new_in_the_files_follows(files: JsonStore, database: PostgresStore) -> None:
    """Messages, lines and a cursor that came after the first copy are brought by the second."""
    await fill(files)
    await adopt(database, await gather(files))
    messages = await working(files)
    await messages.accept([sent("new")], Cursor("fake", "bot", 18))
    await files.remember(ACME, [Said(Role.USER, "more")])
    copied = await adopt(database, await gather(files))
    assert (copied.messages, copied.lines, copied.left) == (1, 1, 0)
    assert await seen(database) == await seen(files)


async def test_a_conversation_that_went_on_in_the_database_is_left_alone(
    files: JsonStore, database: PostgresStore
) -> None:
    """Two transcripts are never mixed: the database's stays, and that is told."""
    await fill(files)
    await adopt(database, await gather(files))
    await database.remember(ACME, [Said(Role.USER, "here")])
    await database.set_policy(HERE, SessionPolicy(cap=5))
    await files.remember(ACME, [Said(Role.USER, "there"), Said(Role.USER, "and there")])
    before = await seen(database)
    copied = await adopt(database, await gather(files))
    assert copied.left == 1
    assert "left alone, because they went on in the database: sessions 1" in str(copied)
    assert await seen(database) == before


async def test_what_ended_in_the_files_ends_in_the_database(files: JsonStore, database: PostgresStore) -> None:
    """Stopped, revoked, disabled after the first copy: after the second nothing of it runs or opens anything. (P7)"""
    await fill(files)
    await files.add_token(NewToken("t3", "acme", "tablet", "3" * 64))
    await adopt(database, await gather(files))
    messages = await working(files)
    await messages.stop(HERE, 1_000)
    await messages.stop(ACME, 1_000)
    await files.revoke_token("acme", "t3")
    await files.enable_tenant("acme", False)
    copied = await adopt(database, await gather(files))
    assert (copied.ended, copied.messages) == (3, 0)
    assert await (await working(database)).resume() == ()
    assert await state(await working(database), "waits") is MessageState.STOPPED
    assert await seen(database) == await seen(files)
    await database.enable_tenant("acme", True)
    assert await database.token_for("3" * 64) is None


async def test_what_runs_in_the_database_is_not_ended_from_the_files(files: JsonStore, database: PostgresStore) -> None:
    """Once the database's gateway has begun a message it is that gateway's."""
    await accepted(await working(files), "a")
    await adopt(database, await gather(files))
    messages = await working(database)
    ids = [message.id for message in await messages.resume()]
    await messages.begin("turn", ids)
    await (await working(files)).stop(HERE, 1_000)
    assert (await adopt(database, await gather(files))).ended == 0
    assert await messages.settle("turn", ids, MessageState.DONE, [NOTE])


async def test_a_restored_directory_brings_what_is_new_in_it(
    tmp_path: Path, database: PostgresStore, wall: Wall
) -> None:
    """A backup uses its numbers again for other messages: those are copied too, with their replies. (P1)"""
    async with open_json(tmp_path / "data", wall) as store:
        await accepted(await working(store), "one")
    shutil.copytree(tmp_path / "data", tmp_path / "backup")
    wall.pass_by(timedelta(hours=1))
    async with open_json(tmp_path / "data", wall) as store:
        await accepted(await working(store), "two", "three")
        await adopt(database, await gather(store))
    wall.pass_by(timedelta(hours=1))
    async with open_json(tmp_path / "backup", wall) as store:
        messages = await working(store)
        await accepted(messages, "four")
        ids = await running(messages, "five")
        await messages.settle("turn", ids, MessageState.DONE, [NOTE])
        copied = await adopt(database, await gather(store))
    assert (copied.messages, copied.replies) == (2, 1)
    assert [one.text for one in await (await working(database)).waiting()] == ["one", "two", "three", "four"]
    assert await waiting_replies(await working(database)) == [NOTE.text]


async def test_a_copy_that_fails_leaves_nothing(files: JsonStore, database: PostgresStore) -> None:
    """All or nothing: cancelled at the last step, the database is as it was."""
    await fill(files)
    before = await seen(database)
    everything = await gather(files)
    with pytest.raises(ZeroDivisionError):
        await database.db.together(lambda connection: failing(connection, everything))
    assert await seen(database) == before


async def test_who_was_let_in_since_follows(files: JsonStore, database: PostgresStore, wall: Wall) -> None:
    """A decision in the files counts here too, unless there was one here; who was forgotten here does not come back."""
    people = [Sender("fake", bot, bot) for bot in ("let in", "turned away", "forgotten", "new")]
    for who in people[:3]:
        await files.knock(Knock(who, "", who.sender))
    await files.approve("forgotten", "default", "files")
    assert (await adopt(database, await gather(files))).pairings == 3
    assert await database.dismiss("default", people[2])
    assert await database.deny(people[1], "database")
    wall.pass_by(timedelta(minutes=1))
    await files.approve("let in", "default", "files")
    await files.approve("turned away", "default", "files")
    await files.knock(Knock(people[3], "", "new"))
    assert (await adopt(database, await gather(files))).pairings == 2
    assert [await database.allowed(who) for who in people] == ["default", None, None, None]
    assert [one.who for one in await database.knocks()] == [people[3], people[1]]
    assert await adopt(database, await gather(files)) == Copied()


async def test_a_code_of_somebody_else_is_not_copied(files: JsonStore, database: PostgresStore) -> None:
    """One code leads to one person; the other one knocks again."""
    ann, bob = Sender("fake", "bot", "ann"), Sender("fake", "bot", "bob")
    await database.knock(Knock(ann, "", "same"))
    await files.knock(Knock(bob, "", "same"))
    assert (await adopt(database, await gather(files))).pairings == 0
    assert [one.who for one in await database.knocks()] == [ann]
    assert await database.knock(Knock(bob, "", "other"))


async def failing(connection: object, everything: object) -> None:
    await _adopt(connection, everything)  # type: ignore[arg-type]
    raise ZeroDivisionError


async def test_whoever_works_on_the_database_hears_of_it(files: JsonStore, database: PostgresStore) -> None:
    """A gateway that runs there takes the copied messages up at once."""
    await accepted(await working(files), "waits")
    async with database.listen() as heard:
        words = aiter(heard)
        assert await anext(words) == "poll"
        await adopt(database, await gather(files))
        assert await anext(words) == "inbox"


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def fill_jobs(store: Store) -> None:
    """Jobs, triggers and runs in every state but under a claim; a number that is used no more; an answer that waits."""
    cron = store.cron
    await store.create_tenant("acme")
    await changed(cron, await added(cron, "purged"), Plan(remove=True))
    for tenant, session in (("default", HERE), ("acme", ACME)):
        claim = await cron_running(cron, "a\x00", "r\x00", tenant=tenant, deliver_to=session, timing=AT_NOON)
        await settled(cron, ended(claim, "r\x00", output="é\x00" * 9000), ALL)
        await fired(cron, claim.job, "f\x00", key="k\x00", trace="t\x00")
        claim = await claim_one(cron)
        await settled(cron, passed(claim), Plan(end=TriggerState.PENDING, again=HOUR, reason="later"))
    paused = await added(cron, "paused", rules=Rules("queue", "skip", HOUR, max_retries=0), timing=WEBHOOK)
    await changed(cron, paused, Plan(status=JobStatus.PAUSED, withdraw=True))
    await changed(cron, await added(cron, "over"), Plan(status=JobStatus.FAILED, end=TriggerState.FAILED))
    await added(cron, "last")
    await changed(cron, await added(cron, "purged too"), Plan(remove=True))


async def test_jobs_arrive_with_their_history(files: JsonStore, database: PostgresStore) -> None:
    """Every job, trigger, run, output and notification, under its own number; new ones are numbered on. (A26)"""
    await fill_jobs(files)
    copied = await adopt(database, await gather(files))
    assert (copied.jobs, copied.runs) == (5, 2)
    assert await seen(database) == await seen(files)
    for store in (files, database):
        fresh = await added(store.cron, "fresh")
        assert fresh.id == 7
        await changed(store.cron, fresh, Plan(news="run.skipped"))
    assert await seen(database) == await seen(files)


async def test_copying_jobs_again_changes_nothing(files: JsonStore, database: PostgresStore) -> None:
    """The second time there is nothing new, and nothing is there twice."""
    await fill_jobs(files)
    await adopt(database, await gather(files))
    before = await seen(database)
    assert await adopt(database, await gather(files)) == Copied()
    assert await seen(database) == before


async def test_jobs_that_are_new_in_the_files_follow(files: JsonStore, database: PostgresStore, wall: Wall) -> None:
    """With their triggers; those that the database has are as they were there. (32)"""
    await fill_jobs(files)
    await adopt(database, await gather(files))
    known = await database.cron.jobs("default")
    wall.pass_by(timedelta(minutes=1))
    job = await added(files.cron, "new")
    assert (await adopt(database, await gather(files))).jobs == 1
    assert await database.cron.jobs("default") == (*known, job)
    assert await database.cron.triggers(*job.key) == await files.cron.triggers(*job.key)


async def test_a_job_that_goes_on_in_the_database_is_left_alone(files: JsonStore, database: PostgresStore) -> None:
    """What was edited, run or removed there is not undone by an old directory. (32)"""
    for uid in ("edited", "runs", "gone"):
        await added(files.cron, uid, timedelta(0))
    await adopt(database, await gather(files))
    edited, _, gone = await database.cron.jobs("default")
    await changed(database.cron, edited, Plan("n", withdraw=True, agent="other", status=JobStatus.PAUSED))
    await settled(database.cron, passed(await claim_one(database.cron)), Plan("n", end=TriggerState.COMPLETED))
    await changed(database.cron, gone, Plan(remove=True))
    before = await seen(database)
    assert await adopt(database, await gather(files)) == Copied()
    assert await seen(database) == before


async def test_a_number_that_the_database_uses_is_not_used_twice(files: JsonStore, database: PostgresStore) -> None:
    """The copied job gets the next free one, with its triggers and runs; the one that was there stays. (P11)"""
    here = await added(database.cron, "here")
    await settled(files.cron, ended(await cron_running(files.cron, "there")), Plan("n", end=TriggerState.COMPLETED))
    assert (await adopt(database, await gather(files))).jobs == 1
    ours, theirs = await database.cron.jobs("default")
    assert (ours, theirs.spec.uid, theirs.id) == (here, "there", 2)
    assert [run.job for run in await database.cron.runs("default")] == [2]
    assert {one.job for one in await database.cron.triggers("default", 2)} == {2}
    assert [one.trigger.job for one in await database.cron.claim("w1", 9, 2 * HOUR)] == []


async def test_what_executed_waits_again_in_the_database(files: JsonStore, database: PostgresStore) -> None:
    """Its worker is gone: the run has failed, its attempt counts, and another claims it under a new token. (27)"""
    claim = await cron_running(files.cron, "a")
    await adopt(database, await gather(files))
    run = await database.cron.run("default", "r1")
    assert run is not None
    assert (run.state, run.error) == (RunState.FAILED, "lost when moved")
    again = await claim_one(database.cron, "w2")
    assert (again.trigger.id, again.trigger.attempt, again.lost) == (claim.trigger.id, 1, None)
    assert again.trigger.token > claim.trigger.token


async def test_an_answer_that_was_copied_is_told_to_its_run(files: JsonStore, database: PostgresStore) -> None:
    """Delivered from the database, the run there knows. (37)"""
    claim = await cron_running(files.cron, "a", deliver_to=HERE)
    await settled(files.cron, ended(claim), ALL)
    await adopt(database, await gather(files))
    messages = await working(database)
    (reply,) = await messages.outbox(9)
    assert await messages.sent(reply.id)
    run = await database.cron.run("default", "r1")
    assert run is not None
    assert run.delivery is Delivery.DELIVERED
