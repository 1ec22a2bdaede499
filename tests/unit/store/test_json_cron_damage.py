"""Damaged files with jobs in them: what cannot be read or understood costs itself, and is never taken for nothing."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from store.files import open_json, read_json
from store.files.frames import pack
from tests.contract.backends import Wall
from tests.contract.cron_rows import (
    LEASE,
    NOW,
    added,
    claim_one,
    claimed,
    ended,
    running,
    settled,
    started,
    told,
)
from tests.contract.picture import cron_picture
from tests.faults.damage import newest, set_aside
from tests.faults.disk_story import chat_of
from tests.unit.store.cron_life import ANSWER, indexes, living, rebuilt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def spoil(place: Path, table: str, key: object, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a row wherever it is written, with checksums that fit: as another program would have written it."""

    def spoilt(rows: list[Any]) -> None:
        for name, its_key, row in rows:
            if (name, its_key) == (table, key) and row is not None:
                change(row)

    for path in place.glob("journal-*.jsonl"):
        lines = [orjson.loads(line[9:]) for line in path.read_bytes().splitlines()]
        for line in lines:
            spoilt(line.get("rows", []))
        path.write_bytes(b"".join(map(pack, lines)))
    for path in place.glob("snapshot-*.json"):
        document = orjson.loads(path.read_bytes())
        spoilt(document["rows"])
        del document["crc"]
        body = orjson.dumps(document).removesuffix(b"}")
        path.write_bytes(body + b',"crc":"%08x"}\n' % zlib.crc32(body))


SPOILT: dict[str, Callable[[dict[str, Any]], object]] = {
    "a status that nobody knows": lambda row: row.update(status="dreaming"),
    "a schedule that nobody knows": lambda row: row["spec"]["timing"].update(kind="moon"),
    "a field is missing": lambda row: row["spec"].pop("message"),
    "a number is none": lambda row: row.update(failures="many"),
    "a time is none": lambda row: row.update(updated_at="soon"),
    "it calls itself otherwise": lambda row: row.update(id=77),
    "nothing is right": lambda row: row.clear(),
}


@pytest.mark.parametrize("compacts", [False, True], ids=["in the journal", "in the snapshots"])
@pytest.mark.parametrize("damage", SPOILT)
async def test_a_malformed_job_stops_no_other(tmp_path: Path, damage: str, compacts: bool) -> None:
    """The store opens, names the row, and everything else is there and fires; the file is kept. (lesson 33, J2)"""
    async with open_json(tmp_path, Wall()) as store:
        for uid in "abc":
            await added(store.cron, uid, NOW)
        if compacts:
            await store.keeper.compact()
            await store.keeper.compact()
    spoil(tmp_path, "job", ["default", 2], SPOILT[damage])
    async with open_json(tmp_path, Wall()) as store:
        left_out, orphans, *_ = store.findings
        assert "job ['default', 2]" in left_out
        assert "1 triggers" in orphans
        assert [job.spec.uid for job in await store.cron.jobs("default")] == ["a", "c"]
        assert await claimed(store.cron) == ["a#1", "c#3"]
        assert indexes(store.tables) == indexes(rebuilt(store.tables))
        assert (await added(store.cron, "d")).id == 4
    assert len(set_aside(tmp_path)) == 1
    assert read_json(tmp_path).findings == ()


async def test_a_malformed_trigger_is_planned_again(tmp_path: Path) -> None:
    """Its job is left without one, which is what the watchdog looks for. (lesson 33, P9)"""
    async with open_json(tmp_path, Wall()) as store:
        await added(store.cron, "a")
        await added(store.cron, "b")
    spoil(tmp_path, "trigger", ["default", "a#1"], lambda row: row.update(state="asleep"))
    async with open_json(tmp_path, Wall()) as store:
        (job,) = await store.cron.unplanned()
        assert job.spec.uid == "a"
        assert "trigger ['default', 'a#1']" in store.findings[0]


async def test_a_malformed_row_costs_only_itself_in_its_transaction(tmp_path: Path) -> None:
    """A batch is one line: one job in it that cannot be understood does not undo the others' ends. (lesson 33)"""
    async with open_json(tmp_path, Wall()) as store:
        for uid in "ab":
            await added(store.cron, uid, NOW)
        claims = await store.cron.claim("w1", 2, LEASE)
        await store.cron.settle([ended(claim) for claim in claims], ANSWER.conclude)
    spoil(tmp_path, "job", ["default", 1], lambda row: row["runs"] and row.update(status="dreaming"))
    async with open_json(tmp_path, Wall()) as store:
        assert [job.runs for job in await store.cron.jobs("default")] == [0, 1]
        assert await store.cron.counts("default") == (2, 0, 2, 0)
        assert len(await (await chat_of(store)).outbox(10)) == 2


async def test_a_lost_number_is_not_given_again(tmp_path: Path) -> None:
    """Numbers of jobs and of notifications go on after the highest that is there. (lesson 33)"""
    async with open_json(tmp_path, Wall()) as store:
        await settled(store.cron, ended(await running(store.cron, "a")), ANSWER)
    for table in ("job_number", "news_number"):
        lose(tmp_path, table)
    async with open_json(tmp_path, Wall()) as store:
        assert (await added(store.cron, "b", NOW)).id == 2
        await started(store.cron, await claim_one(store.cron), "r2")
        assert await told(store.cron) == [(1, "run.started"), (2, "run.completed"), (3, "run.started")]


def lose(place: Path, table: str) -> None:
    """As if the rows of a table had never been written."""
    path = newest(place, "journal-*.jsonl")
    lines = [orjson.loads(line[9:]) for line in path.read_bytes().splitlines()]
    for line in lines:
        if "rows" in line:
            line["rows"] = [row for row in line["rows"] if row[0] != table]
    path.write_bytes(b"".join(pack(line) for line in lines))


async def test_a_lost_tenant_stops_no_other(tmp_path: Path) -> None:
    """It is made anew, disabled, and its jobs are still there. (lesson 33)"""
    async with open_json(tmp_path, Wall()) as store:
        await store.create_tenant("t")
        await added(store.cron, "a", NOW, tenant="t")
        await added(store.cron, "b", NOW)
        await store.keeper.compact()
    spoil(tmp_path, "tenant", "t", lambda row: row.clear())
    async with open_json(tmp_path, Wall()) as store:
        claims = await store.cron.claim("w1", 5, LEASE)
        assert [(one.job.spec.uid, one.tenant_enabled) for one in claims] == [("b", True), ("a", False)]
        assert any("'t' is missing" in finding for finding in store.findings)


async def test_a_torn_end_costs_only_what_nobody_was_told(tmp_path: Path) -> None:
    """Wherever the last line is cut, the jobs before it are there, also after the next start. (J2)"""
    async with open_json(tmp_path / "whole", Wall()) as store:
        await added(store.cron, "a")
        size = store.journal.file.size
        await added(store.cron, "b")
        torn = newest(tmp_path / "whole", "journal-*.jsonl").read_bytes()
    for cut in range(size, len(torn), 50):
        place = tmp_path / str(cut)
        place.mkdir()
        (place / "journal-1.jsonl").write_bytes(torn[:cut])
        for _ in range(2):
            async with open_json(place, Wall()) as store:
                assert [job.spec.uid for job in await store.cron.jobs("default")] == ["a"]


@pytest.mark.parametrize("garbage", [b"", b"{}", b"[]", b'{"jobs": []}', b"\x00" * 4096])
async def test_a_garbage_snapshot_loses_no_job(tmp_path: Path, garbage: bytes) -> None:
    """It is set aside, what was before it is used, and nothing is overwritten with nothing. (J2, lesson 34)"""
    async with living(tmp_path) as store:
        await store.keeper.compact()
        await added(store.cron, "last")
        before = await cron_picture(store)
    damaged = newest(tmp_path, "snapshot-*.json")
    damaged.write_bytes(garbage)
    async with open_json(tmp_path, Wall()) as store:
        assert await cron_picture(store) == before
    assert set_aside(tmp_path) == [damaged.name]


async def test_jobs_without_a_journal_are_not_taken_for_none(tmp_path: Path) -> None:
    """Where the export shows that there were jobs, an empty journal is said to be a loss. (J2)"""
    async with open_json(tmp_path, Wall()) as store:
        await added(store.cron, "a")
    journal = newest(tmp_path, "journal-*.jsonl")
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    async with open_json(tmp_path, Wall()) as store:
        assert "jobs.json shows that there were jobs" in store.findings[0]
        assert "LOST" in store.findings[0]
    assert set_aside(tmp_path) == [journal.name]
