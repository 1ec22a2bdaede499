"""Work sources: each file of a folder is an item, taken by one run, and never lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import trio

from cron.errors import BadInput, PermanentFailure
from cron.options import Options
from cron.work import SOURCES, FolderSource, WorkItem, open_source, prompt
from tests.unit.cron.world import make_world

if TYPE_CHECKING:
    from pathlib import Path

    from cron.run import Work

MINUTE = timedelta(minutes=1)


def files_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if one.is_file())


@dataclass(eq=False)
class ListSource:
    """A source without threads: under a clock that jumps they would be overtaken by it."""

    waiting: list[str]
    taken: dict[str, str] = field(default_factory=dict)
    ended: list[tuple[str, str]] = field(default_factory=list)

    async def next(self, key: str) -> WorkItem | None:
        await trio.lowlevel.checkpoint()
        if not self.waiting:
            return None
        self.taken[key] = self.waiting.pop(0)
        return WorkItem(self.taken[key], "list", key)

    async def done(self, key: str) -> None:
        await trio.lowlevel.checkpoint()
        self.ended.append(("done", self.taken.pop(key)))

    async def failed(self, key: str, error: str) -> None:
        await trio.lowlevel.checkpoint()
        self.ended.append((f"failed: {error}", self.taken.pop(key)))

    async def release(self, key: str) -> None:
        await trio.lowlevel.checkpoint()
        if key in self.taken:
            self.waiting.insert(0, self.taken.pop(key))


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> ListSource:
    """What `list:` names."""
    found = ListSource(["one", "two"])
    monkeypatch.setitem(SOURCES, "list", lambda name: found)
    return found


def test_the_prompt_is_built_from_job_and_item() -> None:
    """The job's words, then the item with what is known of it; with neither, a plain sentence. (H15)"""
    item = WorkItem("Fix it", "github", "42", "It is broken.", "high", ("bug", "ui"), "https://example.org/42")
    assert prompt("Work on this.", item) == (
        "Work on this.\n\n## Work Item: Fix it\n\n- Source: github\n- ID: 42\n- Priority: high\n- Labels: bug, ui\n"
        "- URL: https://example.org/42\n\nIt is broken."
    )
    assert prompt("Only words.", None) == "Only words."
    assert prompt("", None) == "Execute scheduled task."
    assert prompt("", WorkItem("a", "folder", "1")) == "## Work Item: a\n\n- Source: folder\n- ID: 1"


async def test_an_item_is_one_runs_alone(tmp_path: Path) -> None:
    """In the order of names; hidden files and folders are none; what is done, failed or released is where it says."""
    for name in ("b.txt", "a.txt", ".hidden", "c.txt"):
        (tmp_path / name).write_text(f"text of {name}")
    source = FolderSource(tmp_path)
    first, second, third = [await source.next(run) for run in ("r1", "r2", "r3")]
    assert [one and one.title for one in (first, second, third)] == ["a.txt", "b.txt", "c.txt"]
    assert first is not None
    assert first.body == "text of a.txt"
    assert await source.next("r4") is None
    await source.done("r1")
    await source.failed("r2", "no")
    await source.release("r3")
    await source.release("r3")
    assert (tmp_path / "done" / "a.txt").read_text() == "text of a.txt"
    assert (tmp_path / "failed" / "b.txt").exists()
    assert files_in(tmp_path) == [".hidden", "c.txt"]


async def test_two_who_want_the_same_item_get_different_ones(tmp_path: Path) -> None:
    """Moving the file decides."""
    for number in range(20):
        (tmp_path / f"{number:02}").write_text(str(number))
    found: list[str] = []

    async def take(key: str) -> None:
        item = await FolderSource(tmp_path).next(key)
        assert item is not None
        found.append(item.title)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(take, f"r{number}")
    assert sorted(found) == [f"{number:02}" for number in range(20)]


async def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    """Nothing is overwritten."""
    source = FolderSource(tmp_path)
    for run in ("r1", "r2"):
        (tmp_path / "a.txt").write_text(run)
        await source.next(run)
        await source.done(run)
    assert {one.name: one.read_text() for one in (tmp_path / "done").iterdir()} == {"a.txt": "r1", "a-2.txt": "r2"}


async def test_a_job_works_through_its_source(source: ListSource, autojump_clock: object) -> None:
    """An item a run; without one the slot is skipped and no agent is asked. (H14, P13)"""
    world = make_world()
    job = await world.add("every 1 minute", "Do it.", work_source="list:x")
    await world.live(timedelta(seconds=190))
    assert [work.prompt.splitlines()[2] for work in world.runner.works] == ["## Work Item: one", "## Work Item: two"]
    assert await world.states(job) == ["completed", "completed", "skipped(no_work)", "pending"]
    assert source.ended == [("done", "one"), ("done", "two")]


async def test_an_item_whose_run_fails_is_tried_again_and_then_set_aside(
    source: ListSource, autojump_clock: object
) -> None:
    """Released between attempts, failed after the last. (H14)"""
    world = make_world(options=Options(max_retries=2))

    async def fails(work: Work) -> str:
        assert source.taken == {work.run.trigger: "one"}
        await trio.lowlevel.checkpoint()
        raise RuntimeError("no")

    world.runner.act = fails
    await world.add("in 1 minute", work_source="list:x")
    await world.live(5 * MINUTE)
    assert len(world.runner.works) == 3
    assert (source.ended, source.waiting) == ([("failed: no", "one")], ["two"])


async def says_nothing(self: ListSource, key: str) -> None:
    await trio.lowlevel.checkpoint()


async def test_an_item_of_a_dead_process_is_released(source: ListSource, autojump_clock: object) -> None:
    """Whoever settles the lost run gives its item back. (H14, 27)"""
    world = make_world()

    async def endless(work: Work) -> str:
        await trio.sleep_forever()
        return ""

    world.runner.act = endless
    await world.add("in 1 minute", work_source="list:x")
    with pytest.MonkeyPatch.context() as dying:
        dying.setattr(ListSource, "release", says_nothing)
        await world.crash_after(2 * MINUTE)
    assert list(source.taken.values()) == ["one"]
    world.runner.act = None
    await world.live(MINUTE)
    assert source.ended == [("done", "one")]


async def test_an_item_is_given_back_when_the_process_ends_at_once(source: ListSource, autojump_clock: object) -> None:
    """Cancelled from outside in the middle of a run. (H14)"""
    world = make_world()

    async def endless(work: Work) -> str:
        await trio.sleep_forever()
        return ""

    world.runner.act = endless
    await world.add("in 1 minute", work_source="list:x")
    await world.live(2 * MINUTE)
    assert (source.taken, source.waiting) == ({}, ["one", "two"])


async def test_an_item_taken_by_an_owner_that_died_before_its_run_was_written_is_found(
    source: ListSource, autojump_clock: object
) -> None:
    """The trigger's next owner gives it back before it takes one. (H14)"""
    world = make_world()
    job = await world.add("in 1 minute", work_source="list:x")
    (trigger,) = await world.triggers(job)
    await source.next(trigger.id)
    await world.live(2 * MINUTE)
    assert (source.ended, source.waiting) == ([("done", "one")], ["two"])


async def test_a_source_that_is_not_there_fails_the_run_and_says_so(
    source: ListSource, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    """The schedule goes on: it may come back. (A22)"""

    async def away(self: ListSource, key: str) -> None:
        await trio.lowlevel.checkpoint()
        raise PermanentFailure("the work folder cannot be read")

    monkeypatch.setattr(ListSource, "next", away)
    world = make_world()
    job = await world.add("every 1 minute", work_source="list:x")
    await world.live(timedelta(seconds=65))
    (run,) = await world.runs(job)
    assert (run.state, run.error) == ("failed", "the work folder cannot be read")
    assert (await world.job(job)).status == "active"


@pytest.mark.parametrize("text", ["imap:x", "folder:", "folder", ":x", "folder:  "])
def test_an_unknown_source_is_refused(text: str) -> None:
    """With an example."""
    with pytest.raises(BadInput, match="folder:/srv/inbox"):
        open_source(text)


async def test_a_file_that_cannot_be_taken_is_in_nobodys_way(tmp_path: Path) -> None:
    """Names may be as long as the system allows; what cannot be read is passed over. (33)"""
    (tmp_path / ("a" * 250)).write_text("long")
    (tmp_path / "b").write_text("short")
    first = await FolderSource(tmp_path).next("k" * 36)
    second = await FolderSource(tmp_path).next("l" * 36)
    assert [one and one.body for one in (first, second)] == ["long", "short"]


async def test_a_large_or_binary_item_is_readable(tmp_path: Path) -> None:
    """Cut at a megabyte, with a mark; odd bytes are replaced."""
    (tmp_path / "a").write_bytes(b"\xff\x00" * (1 << 20))
    item = await FolderSource(tmp_path).next("r")
    assert item is not None
    assert item.body.endswith("…[truncated]")


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """With its name and what to do."""
    with pytest.raises(PermanentFailure, match=r"cannot be read: No such file or directory\. Make it"):
        await FolderSource(tmp_path / "none").next("r")
