"""Jobs in files: kept whole over restarts and failures, shown to people, and moved elsewhere."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import orjson
import pytest
import trio

from store.files import cron_keeping, export, open_json, read_json
from store.files.cron import ENDS
from store.files.disk import Replacement
from store.files.frames import encode, pack
from store.files.gather import gather
from store.jobs import KEEP_RUNS, LONGEST_SUMMARY, Delivery, JobStatus, Start
from store.protocols import RuleBroken, StoreUnavailable
from store.records import Tidied
from tests.contract.backends import Wall
from tests.contract.cron_rows import (
    DONE,
    HOUR,
    LEASE,
    NOW,
    Plan,
    added,
    changed,
    claimed,
    ended,
    fired,
    run_now,
    running,
    settled,
)
from tests.contract.picture import cron_picture
from tests.contract.rows import HERE
from tests.faults.disk_story import chat_of, content
from tests.faults.faulty_disk import FaultyDisk
from tests.unit.store.cron_life import ANSWER, indexes, living, rebuilt
from tests.unit.store.gated_disk import GatedDisk, all_wait

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from pathlib import Path

    from store.files import JsonStore
    from store.jobs import Claim


# ── kept ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("compacts", [False, True], ids=["from the journal", "from a snapshot"])
async def test_a_restart_changes_nothing(tmp_path: Path, compacts: bool) -> None:
    """Every row comes back as it was, spans and zones too, and every index says what it said."""
    async with living(tmp_path) as store:
        if compacts:
            await store.keeper.compact()
        before, indexed = await cron_picture(store), indexes(store.tables)
    assert before["unplanned"] == ()
    async with open_json(tmp_path, Wall()) as store:
        assert await cron_picture(store) == before
        assert indexes(store.tables) == indexed == indexes(rebuilt(store.tables))
        assert store.findings == ()
        job = await added(store.cron, "e")
        assert job.id == 4


async def test_an_end_is_one_line_with_all_that_follows(tmp_path: Path) -> None:
    """So a crash leaves all of it or nothing. (P4)"""
    async with open_json(tmp_path, Wall()) as store:
        await added(store.cron, "a", NOW)
        claims = await store.cron.claim("w1", 1, LEASE)
        before = store.tables.seq
        await store.cron.settle([ended(claim) for claim in claims], ANSWER.conclude)
        assert store.tables.seq == before + 1


async def test_many_ends_are_written_down_a_few_at_a_time(tmp_path: Path) -> None:
    """Somebody else has a turn after each few of them, and yet they go to the disk together."""
    disk = GatedDisk()
    answers: list[tuple[bool, ...]] = []

    async def settle(store: JsonStore, claims: Sequence[Claim]) -> None:
        answers.append(await store.cron.settle([ended(claim) for claim in claims], ANSWER.conclude))

    async with open_json(tmp_path, Wall(), disk=disk) as store:
        for number in range(4 * ENDS):
            await added(store.cron, str(number), NOW)
        claims = await store.cron.claim("w1", 4 * ENDS, LEASE)
        steps = Left(store)
        trio.lowlevel.add_instrument(steps)
        async with trio.open_nursery() as nursery:
            with disk.shut():
                nursery.start_soon(settle, store, claims)
                await all_wait()
                assert not len(store.tables.cron.executing)
                assert answers == []
        trio.lowlevel.remove_instrument(steps)
    assert answers == [(True,) * 4 * ENDS]
    assert max(before - after for before, after in pairwise(steps.executing)) == ENDS


class Left(trio.abc.Instrument):
    """How many execute after each step of any task."""

    def __init__(self, store: JsonStore) -> None:
        self.store = store
        self.executing = [len(store.tables.cron.executing)]

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.executing.append(len(self.store.tables.cron.executing))


async def test_nothing_is_taken_for_kept_because_a_later_change_was(tmp_path: Path) -> None:
    """The disk refuses the first of many changes while the others are made, and takes those: whoever asked is told."""
    disk = FaultyDisk()
    async with open_json(tmp_path, Wall(), disk=disk) as store:
        meta, journal = store.tables.meta, store.journal

        def changes() -> Iterator[Callable[[], str]]:
            yield lambda: store.tables.put(meta, "first", "")
            while not journal.failures:
                yield lambda: meta.rows.get("first", "")
            yield lambda: store.tables.put(meta, "last", "")

        disk.fail(1, only="sync")
        with pytest.raises(StoreUnavailable):
            await journal.do_each(changes())
        await journal.settled()
        assert ("first" in meta.rows, "last" in meta.rows) == (False, True)


# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("call", ["write", "sync"])
async def test_what_the_disk_refuses_has_not_happened(tmp_path: Path, call: str) -> None:
    """Each verb is undone whole, with every index, and works when it is asked again. (lesson 34)"""
    disk = FaultyDisk()
    async with living(tmp_path, disk) as store:
        await added(store.cron, "due", NOW)
        (lost,) = await store.cron.held("w1")
        verbs: list[Callable[[], Awaitable[object]]] = [
            lambda: added(store.cron, "new"),
            lambda: store.cron.change_job("default", 1, Plan("later", withdraw=True).decide),
            lambda: store.cron.claim("w1", 5, LEASE),
            lambda: store.cron.renew([lost], HOUR),
            lambda: settled(store.cron, ended(lost, "r2", output="y" * 5000), ANSWER),
            lambda: store.cron.change_job("default", 1, Plan(remove=True).decide),
            lambda: store.delete_tenant("t"),
        ]
        for verb in verbs:
            before, indexed = await cron_picture(store), indexes(store.tables)
            disk.fail(1, only=call)
            with pytest.raises(StoreUnavailable):
                await verb()
            disk.heal()
            assert await cron_picture(store) == before
            assert indexes(store.tables) == indexed == indexes(rebuilt(store.tables))
            assert await verb()
            await store.keeper.compact()  # after a failed sync it is under way anyway
            assert indexes(store.tables) == indexes(rebuilt(store.tables))
        last = content(read_json(tmp_path))
    assert content(read_json(tmp_path)) == last


async def test_a_decision_that_fails_leaves_nothing_of_its_batch(tmp_path: Path) -> None:
    """What was settled before it in the same call is undone with it: the caller asks again."""
    async with open_json(tmp_path, Wall()) as store:
        for uid in "ab":
            await added(store.cron, uid, NOW)
        claims = await store.cron.claim("w1", 2, LEASE)
        await store.cron.start([Start(claim, name) for claim, name in zip(claims, "xy", strict=True)])
        before, indexed, seq = await cron_picture(store), indexes(store.tables), store.tables.seq
        bad = [ended(claims[0], "x"), ended(claims[1], "y", output="\ud83d")]
        with pytest.raises(RuleBroken):
            await store.cron.settle(bad, ANSWER.conclude)
        assert await cron_picture(store) == before
        assert (indexes(store.tables), store.tables.seq) == (indexed, seq)


async def test_nobody_hears_of_a_claim_that_is_not_on_the_disk(tmp_path: Path) -> None:
    """Not even whoever only looks: a crash could still take it back. (P4)"""
    disk = GatedDisk()
    answers: list[object] = []

    async def ask(verb: Callable[[], Awaitable[object]]) -> None:
        answers.append(await verb())

    async with open_json(tmp_path, Wall(), disk=disk) as store:
        await added(store.cron, "a", NOW)
        async with trio.open_nursery() as nursery:
            with disk.shut():
                nursery.start_soon(ask, lambda: claimed(store.cron))
                await all_wait()
                nursery.start_soon(ask, store.cron.next_due)
                nursery.start_soon(ask, lambda: store.cron.counts("default"))
                await all_wait()
                assert answers == []
    assert len(answers) == 3


# ── the export ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_export_tells_people_which_jobs_there_are(tmp_path: Path) -> None:
    """In their order, by tenant, with what they do, when, and how it went; written whole or not at all. (lesson 34)"""
    async with living(tmp_path):
        pass
    document = orjson.loads((tmp_path / "jobs.json").read_bytes())
    assert document["written_at"] == "2026-03-01T12:00:00Z"
    assert [(job["tenant"], job["id"], job["status"]) for job in document["jobs"]] == [
        ("default", 1, "active"),
        ("default", 2, "completed"),
        ("default", 3, "active"),
        ("t", 1, "active"),
    ]
    assert document["jobs"][0] == {
        "id": 1,
        "tenant": "default",
        "agent": "main",
        "name": "",
        "message": "do a",
        "schedule": {"kind": "every", "expr": None, "every_s": 3600.0, "at": None, "zone": "UTC"},
        "status": "active",
        "reason": "",
        "next_at": "2026-03-01T13:00:00Z",
        "next_source": "baseline-interval",
        "last_run_at": None,
        "last_state": "succeeded",
        "failures": 0,
    }
    assert document["jobs"][3]["schedule"]["expr"] == "0 9 * * *"


async def test_the_export_is_never_in_memory_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines are written as they come: a list of them all would be visited by every collection meanwhile."""
    monkeypatch.setattr(export, "SLICE", 2)
    monkeypatch.setattr(export, "PIECE", 3)
    held: list[int] = []
    add = Replacement.add

    def note(self: Replacement, pieces: list[bytes]) -> None:
        held.append(sum(piece.count(b'"schedule"') for piece in pieces))
        add(self, pieces)

    monkeypatch.setattr(Replacement, "add", note)
    async with open_json(tmp_path, Wall()) as store:
        for number in range(50):
            await added(store.cron, str(number))
    assert sum(held) == 50
    assert max(held) <= 6
    assert [job["id"] for job in orjson.loads((tmp_path / "jobs.json").read_bytes())["jobs"]] == [*range(1, 51)]


@pytest.mark.parametrize("content", [b"", b'{"jobs": []}', b"nonsense"])
async def test_the_export_is_never_read_back(tmp_path: Path, content: bytes) -> None:
    """Whatever becomes of it, and of the rest of one that was not finished, the jobs are there. (lesson 34)"""
    async with living(tmp_path) as store:
        before = await cron_picture(store)
    (tmp_path / "jobs.json").write_bytes(content)
    (tmp_path / "jobs.json.tmp").write_bytes(content)
    async with open_json(tmp_path, Wall()) as store:
        assert await cron_picture(store) == before
        assert not (tmp_path / "jobs.json.tmp").exists()
        (finding,) = store.findings
        assert "jobs.json.tmp was not finished" in finding
    assert len(orjson.loads((tmp_path / "jobs.json").read_bytes())["jobs"]) == 4


async def test_a_look_counts_living_jobs(tmp_path: Path) -> None:
    """What `goclaw status` shows of a directory that nobody has open."""
    async with living(tmp_path):
        pass
    assert read_json(tmp_path).counts()["jobs"] == 3


# ── other parts ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_the_first_schema_wrote_is_understood(tmp_path: Path) -> None:
    """A reply from before there was cron names no run; it is sent like any other, and jobs can be added."""
    note = {"session": orjson.loads(encode(HERE)), "text": "old", "urgent": False}
    row = {"id": 1, "note": note, "answers": [], "parts": 0, "live": ""}
    lines = [{"journal": 1, "schema": 1, "after": 0}, {"seq": 1, "next": 2, "rows": [["reply", 1, row]]}]
    (tmp_path / "journal-1.jsonl").write_bytes(b"".join(map(pack, lines)))
    async with open_json(tmp_path, Wall()) as store:
        assert store.findings == ()
        chat = await chat_of(store)
        (reply,) = await chat.outbox(10)
        assert reply.note.run == ""
        assert await chat.sent(reply.id, failed="no such chat")
        await added(store.cron, "a")
    assert read_json(tmp_path).counts()["jobs"] == 1


async def test_what_became_of_an_answer_is_kept_with_its_run(tmp_path: Path) -> None:
    """In the same write in which the reply leaves the outbox."""
    async with open_json(tmp_path, Wall()) as store:
        chat = await chat_of(store)
        await settled(store.cron, ended(await running(store.cron, "a")), ANSWER)
        (reply,) = await chat.outbox(10)
        seq = store.tables.seq
        assert await chat.sent(reply.id, failed="blocked")
        assert store.tables.seq == seq + 1
    async with open_json(tmp_path, Wall()) as store:
        run = await run_now(store.cron)
        assert (run.delivery, run.delivery_error) == (Delivery.FAILED, "blocked")


async def test_everything_is_packed_for_the_move(tmp_path: Path) -> None:
    """Rows as they are, and how far each tenant has counted."""
    async with living(tmp_path) as store:
        packed = await gather(store)
        rows = store.tables.cron
        assert {job.key: job for job in packed.jobs} == dict(rows.jobs.rows)
        assert {(one.tenant, one.id): one for one in packed.triggers} == dict(rows.triggers.rows)
        assert {(one.tenant, one.id): one for one in packed.runs} == dict(rows.runs.rows)
        assert packed.outputs == (("default", "r1", "x" * (LONGEST_SUMMARY + 1)),)
        assert sorted((tenant, one.seq) for tenant, one in packed.news) == [("default", 1), ("default", 2), ("t", 1)]
        assert packed.numbers == (("default", 3, 2), ("t", 1, 1))


async def test_a_job_with_a_long_history_goes_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No step of tidying takes as long as a whole history; in the end all of it has gone."""
    monkeypatch.setattr(cron_keeping, "AT_ONCE", 4)
    monkeypatch.setattr("store.files.store.TIDY", 3)
    wall = Wall()
    async with open_json(tmp_path, wall) as store:
        job = await added(store.cron, "a")
        for number in range(8):
            await fired(store.cron, job, f"f{number}")
        await changed(store.cron, job, Plan(end=DONE.end, drop_others="over", status=JobStatus.COMPLETED))
        wall.pass_by(KEEP_RUNS)
        rounds = []
        while (round_ := await store.tidy()) != Tidied(0, 0, 0):
            rounds.append(round_.cron)
        assert rounds == [3, 3, 1]
        assert indexes(store.tables) == indexes(rebuilt(store.tables))
        assert [len(table.rows) for table in store.tables.cron.every] == [0, 0, 0, 0, 0, 1, 0]
