"""Idle costs nothing: no session, no timer, no task, no wake-up is left when the work is done."""

from __future__ import annotations

import gc
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from scheduler import Mode, Policy, Request, Scheduler, open_scheduler
from tests.unit.scheduler.probe import GROUP, Probe, forever, nothing, quick

if TYPE_CHECKING:
    from scheduler import Run


class Steps(trio.abc.Instrument):
    """Counts the steps of every task but the test's own."""

    def __init__(self) -> None:
        self.own = trio.lowlevel.current_task()
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is not self.own:
            self.count += 1


async def fails(run: Run) -> None:
    raise ValueError


async def parent(run: Run) -> None:
    await run.schedule(quick(nothing, None, f"sub {run.id}")).wait()
    run.schedule(quick(nothing, None, f"detached {run.id}"))


async def all_sorts_of_work(scheduler: Scheduler) -> None:
    limited = Policy(debounce_s=0, timeout_s=3600)
    for number in range(100):
        session = f"dm {number}"
        scheduler.schedule(quick(nothing, None, session))
        scheduler.schedule(quick(parent, None, session, policy=limited))
        scheduler.schedule(quick(fails, None, session, tenant=str(number % 3)))
        scheduler.schedule(Request(session, Probe(0.1), lane=("main", "cron", "subagent")[number % 3]))
        scheduler.schedule(quick(forever, None, f"stopped {number}", policy=limited))
        scheduler.schedule(quick(nothing, None, f"stopped {number}", policy=Policy(debounce_s=5000)))
        scheduler.cancel_all(f"stopped {number}")
        scheduler.schedule(quick(nothing, None, f"now {number}", policy=Policy(mode=Mode.INTERRUPT)))
        for _ in range(15):
            scheduler.schedule(quick(nothing, None, f"group {number}", policy=GROUP))
    await scheduler.drain()


async def test_nothing_is_left_after_the_work(autojump_clock: MockClock) -> None:
    """No session, no deadline, no worker, nobody in any line. (M1, P13)"""
    async with open_scheduler() as scheduler:
        await all_sorts_of_work(scheduler)
        await wait_all_tasks_blocked()
        assert scheduler.sessions == {}
        assert len(scheduler.timers) == 0
        assert len(scheduler.nursery.child_tasks) == 1  # the one that sleeps for all deadlines
        for lane in scheduler.lanes:
            assert (lane.active, lane.parked, lane.waiting, lane.stuck) == (0, 0, 0, 0)
            assert not lane.lines
            assert not lane.returning


async def test_an_idle_scheduler_never_wakes_up(mock_clock: MockClock) -> None:
    """After work with time limits and windows, a day passes without one step of one task. (P13)"""
    async with open_scheduler() as scheduler:
        mock_clock.autojump_threshold = 0
        await all_sorts_of_work(scheduler)
        await wait_all_tasks_blocked()
        mock_clock.autojump_threshold = float("inf")
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        for _ in range(24):
            mock_clock.jump(3600)
            await wait_all_tasks_blocked()
        trio.lowlevel.remove_instrument(steps)
    assert steps.count == 0


async def test_a_message_whose_time_limit_is_called_off_leaves_no_wake_up(mock_clock: MockClock) -> None:
    """One run that ended long before its limit, and then silence. (P13)"""
    async with open_scheduler() as scheduler:
        await scheduler.schedule(quick(nothing, policy=Policy(debounce_s=0, timeout_s=100))).result()
        await wait_all_tasks_blocked()
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        mock_clock.jump(1000)
        await wait_all_tasks_blocked()
        trio.lowlevel.remove_instrument(steps)
    assert steps.count == 0


async def test_called_off_deadlines_are_swept_out(autojump_clock: MockClock) -> None:
    """While work goes on, deadlines that will never come do not pile up. (M1)"""
    policy = Policy(debounce_s=0, timeout_s=3600)
    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(forever, None, "long", policy=policy))
        for number in range(5000):
            scheduler.schedule(quick(nothing, None, f"dm {number}", policy=policy))
        while len(scheduler.sessions) > 1:  # noqa: ASYNC110 - the long one never ends
            await trio.sleep(1)
        assert len(scheduler.timers) == 1
        assert len(scheduler.timers._heap) < 200


@pytest.mark.parametrize("way", ["quick", "debounced", "stopped", "nested", "interrupt"])
async def test_thousands_of_sessions_used_once_leave_no_object_behind(autojump_clock: MockClock, way: str) -> None:
    """The number of living objects is where it was before, whichever way the sessions were used. (M1, P13)"""

    def use(scheduler: Scheduler, number: int) -> None:
        session = f"{way} {number}"
        if way == "quick":
            scheduler.schedule(quick(nothing, None, session))
        elif way == "debounced":
            scheduler.schedule(Request(session, nothing))
        elif way == "stopped":
            scheduler.schedule(quick(forever, None, session))
            scheduler.cancel_all(session)
        elif way == "nested":
            scheduler.schedule(quick(parent, None, session, lane="delegate"))
        else:
            scheduler.schedule(quick(nothing, None, session, policy=Policy(mode=Mode.INTERRUPT, debounce_s=0)))

    async def round_of(scheduler: Scheduler, count: int) -> int:
        for start in range(0, count, 500):
            for number in range(start, min(start + 500, count)):
                use(scheduler, number)
            await trio.sleep(1)
            await scheduler.drain()
        await wait_all_tasks_blocked()
        gc.collect()
        return len(gc.get_objects())

    async with open_scheduler() as scheduler:
        before = await round_of(scheduler, 500)
        after = await round_of(scheduler, 10_000 if way == "quick" else 3000)
        assert scheduler.sessions == {}
    assert after - before < 200


async def test_a_busy_lane_keeps_nothing_of_the_message_that_woke_it(autojump_clock: MockClock) -> None:
    """Whatever a message's context holds is free when the message has ended, however long its worker works on. (M1)"""
    held: ContextVar[object] = ContextVar("held")

    class Big:
        pass

    big = Big()
    alive = weakref.ref(big)
    async with open_scheduler({"main": 1}) as scheduler:
        token = held.set(big)
        scheduler.schedule(quick(nothing, None, "first"))
        held.reset(token)
        del big, token
        scheduler.schedule(quick(Probe(100), None, "second"))
        await trio.sleep(1)
        gc.collect()
        assert scheduler.session_statistics("second").running == 1
        assert alive() is None


async def test_a_message_that_keeps_bringing_the_next_one_keeps_nothing(autojump_clock: MockClock) -> None:
    """A chain of thousands, each scheduled inside the one before, does not hold its past alive. (M1)"""
    counts: list[int] = []
    left = 6000

    async def link(run: Run) -> None:
        nonlocal left
        left -= 1
        if left % 2000 == 0:
            gc.collect()
            counts.append(len(gc.get_objects()))
        if left:
            run.schedule(quick(link, None, f"dm {left}"))

    async with open_scheduler() as scheduler:
        scheduler.schedule(quick(link))
        await scheduler.drain()
    assert counts[-1] - counts[0] < 200
