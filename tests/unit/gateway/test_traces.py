"""Traces: every run leaves one, however it ended, and writing it costs the run next to nothing."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import trio

from gateway.traces import SPANS, Trace, Traces, current_trace

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def new_traces(place: Path, **options: Any) -> Traces:
    return Traces(place / "data" / "logs", lambda: NOW, gather_s=0, **options)


def lines(place: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place / "data" / "logs" / "traces.jsonl").read_text().splitlines()]


async def write(traces: Traces) -> None:
    """A writer that begins when everything is closed, and ends at once."""
    with trio.CancelScope() as scope:
        scope.cancel()
        await traces.run()


async def test_a_run_is_traced_step_by_step(autojump_clock: MockClock) -> None:
    """Each step with its beginning, its length and how it went; the clock is the run's own."""
    closed: list[Trace] = []
    trace = Trace("x", "s", "main", "chat", NOW, closed=closed.append)
    with trace.span("queued"):
        await trio.sleep(1)
    with trace.span("model", "large") as model:
        await trio.sleep(2)
    with pytest.raises(RuntimeError), trace.span("tool", "shell"):
        raise RuntimeError
    with trio.move_on_after(3), trace.span("tool", "slow"):
        await trio.sleep_forever()
    trace.close("done")
    assert closed == [trace]
    assert model.took_s == 2
    steps = [(one.kind, one.name, one.start_s, one.took_s, one.status) for one in trace.spans]
    assert steps == [
        ("queued", "", 0, 1, "ok"),
        ("model", "large", 1, 2, "ok"),
        ("tool", "shell", 3, 0, "failed"),
        ("tool", "slow", 3, 3, "cancelled"),
    ]
    assert trace.took_s == 6


async def test_a_cancelled_nursery_is_a_cancelled_step(autojump_clock: MockClock) -> None:
    """Groups are looked into: only what really went wrong is a failure."""
    trace = Trace("x", "s", "main", "chat", NOW)
    with trio.move_on_after(1), trace.span("tool", "a"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)

    async def fail() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise RuntimeError

    with pytest.raises(ExceptionGroup), trace.span("tool", "b"):
        await fail()
    assert [span.status for span in trace.spans] == ["cancelled", "failed"]


async def test_only_the_first_end_counts_and_open_steps_end_with_it(autojump_clock: MockClock) -> None:
    """A stop and a failure may both want to close it."""
    closed: list[Trace] = []
    trace = Trace("x", "s", "main", "chat", NOW, closed=closed.append)
    waiting = trace.span("slot")
    await trio.sleep(2)
    trace.close("dropped")
    await trio.sleep(2)
    trace.close("failed", "late")
    waiting.end()
    assert (trace.status, trace.error, trace.took_s, len(closed)) == ("dropped", "", 2, 1)
    assert (waiting.status, waiting.took_s) == ("cancelled", 2)


async def test_a_run_without_end_has_a_trace_with_one() -> None:
    """Steps beyond the most that are kept are counted."""
    trace = Trace("x", "s", "main", "chat", NOW)
    for _ in range(SPANS + 3):
        with trace.span("tool", "again"):
            pass
    trace.close("done")
    assert (len(trace.spans), trace.line()["left_out"]) == (SPANS, 3)


async def test_a_closed_trace_is_one_line(tmp_path: Path) -> None:
    """With a time that everybody can read, and only for its owner."""
    traces = new_traces(tmp_path)
    trace = traces.start("default:main:wire::dm::0", "main", "chat")
    with trace.span("model", "large"):
        pass
    trace.facts["tokens_in"] = 12
    trace.close("failed", "no\nluck")
    await write(traces)
    (line,) = lines(tmp_path)
    assert line["trace"] == trace.id
    assert len(trace.id) == 32
    assert (line["kind"], line["at"], line["status"]) == ("chat", "2026-03-01T12:00:00Z", "failed")
    assert (line["error"], line["tokens_in"], line["session"]) == ("no\nluck", 12, "default:main:wire::dm::0")
    assert line["spans"][0].keys() == {"kind", "name", "start_s", "took_s", "status"}
    assert stat.S_IMODE((tmp_path / "data" / "logs" / "traces.jsonl").stat().st_mode) == 0o600


async def test_a_trace_that_is_closed_by_a_cancel_is_written_at_shutdown(tmp_path: Path) -> None:
    """The writer ends after everybody else has closed theirs."""
    traces = new_traces(tmp_path)

    async def run(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        trace = traces.start("s", "main", "chat")
        try:
            with trace.span("model"):
                task_status.started()
                await trio.sleep_forever()
        finally:
            trace.close("cancelled")

    async with trio.open_nursery() as services:
        services.start_soon(traces.run)
        async with trio.open_nursery() as nursery:
            await nursery.start(run)
            nursery.cancel_scope.cancel()
        services.cancel_scope.cancel()
    (line,) = lines(tmp_path)
    assert (line["status"], line["spans"][0]["status"]) == ("cancelled", "cancelled")


async def test_all_of_many_are_written_in_order(tmp_path: Path) -> None:
    """While others are closed, in pieces."""
    traces = new_traces(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(traces.run)
        for number in range(1_500):
            traces.start(str(number), "main", "chat").close("done")
            if number % 100 == 0:
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert [line["session"] for line in lines(tmp_path)] == [str(number) for number in range(1_500)]


async def test_the_last_ones_are_there_to_be_read(tmp_path: Path) -> None:
    """So many and no more, the newest first."""
    traces = new_traces(tmp_path, kept=3)
    made = [traces.start("s", "main", "chat") for _ in range(5)]
    for trace in made:
        trace.close("done")
    assert list(traces.recent()) == [made[4], made[3], made[2]]
    assert traces.get(made[3].id) is made[3]
    assert traces.get(made[0].id) is None


async def test_what_is_delivered_later_has_a_line_of_its_own(tmp_path: Path) -> None:
    """And a step in the trace, while that is in memory."""
    traces = new_traces(tmp_path)
    trace = traces.start("s", "main", "chat")
    trace.close("done")
    traces.delivered(trace.id, took_s=0.25, channel="wire", receipt="7")
    traces.delivered("unknown", status="failed", error="blocked")
    await write(traces)
    _, sent, failed = lines(tmp_path)
    assert (sent["kind"], sent["trace"], sent["status"], sent["took_s"]) == ("deliver", trace.id, "ok", 0.25)
    assert (sent["channel"], sent["receipt"]) == ("wire", "7")
    assert (failed["trace"], failed["status"], failed["error"]) == ("unknown", "failed", "blocked")
    assert [(span.kind, span.name) for span in trace.spans] == [("deliver", "wire")]


async def test_a_full_disk_loses_traces_and_says_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody else notices; they come again when the disk does."""
    (tmp_path / "data" / "logs").mkdir(parents=True)
    file = tmp_path / "data" / "logs" / "traces.jsonl"
    file.symlink_to("/dev/full")
    traces = new_traces(tmp_path)
    for number in range(3):
        for _ in range(number):
            traces.start("s", "main", "chat").close("done")
        await write(traces)
    assert traces.lost == 3
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    file.unlink()
    traces.start("again", "main", "chat").close("done")
    await write(traces)
    assert [line["session"] for line in lines(tmp_path)] == ["again"]


async def test_whatever_is_in_it_is_one_line_without_secrets(tmp_path: Path) -> None:
    """Odd values and half characters too."""
    traces = new_traces(tmp_path, redact=lambda line: line.replace("canary", "***"))
    trace = traces.start("s", "main", "chat")
    trace.facts |= {"odd": object(), "key": "canary"}
    trace.close("done")
    half = traces.start("s\ud800", "main", "chat")
    half.close("done")
    await write(traces)
    first, second = lines(tmp_path)
    assert first["key"] == "***"
    assert second["trace"] == half.id


async def test_a_task_knows_the_run_it_works_for(tmp_path: Path) -> None:
    """The tasks that it starts do too, and nobody else."""
    seen: list[Trace | None] = []

    async def look() -> None:
        await trio.lowlevel.checkpoint()
        seen.append(current_trace.get())

    trace = new_traces(tmp_path).start("s", "main", "chat")
    token = current_trace.set(trace)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
    current_trace.reset(token)
    await look()
    assert seen == [trace, None]
