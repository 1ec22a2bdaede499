"""Quiet: an end can wait for work that is under way, and only for that."""

from __future__ import annotations

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gateway.quiet import Quiet


async def test_it_is_quiet_before_anything_began() -> None:
    """Waiting for nothing returns at once."""
    quiet = Quiet()
    assert quiet.now
    with trio.fail_after(1):
        await quiet.wait()


async def test_waiting_ends_with_the_last_piece_of_work(autojump_clock: MockClock) -> None:
    """Several waiters wait for all of several pieces, also for those that begin meanwhile."""
    quiet = Quiet()
    woken: list[float] = []

    async def wait() -> None:
        await quiet.wait()
        woken.append(trio.current_time())

    start = trio.current_time()
    quiet.begin()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        nursery.start_soon(wait)
        await trio.sleep(1)
        quiet.begin()
        quiet.end()
        await trio.sleep(1)
        assert not quiet.now
        quiet.end()
    assert [at - start for at in woken] == [2, 2]


async def test_work_that_begins_before_a_waiter_looks_is_waited_for_too(autojump_clock: MockClock) -> None:
    """An end and a new begin in one go: whoever waits sees that it is not quiet and waits on."""
    quiet = Quiet()
    quiet.begin()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(quiet.wait)
        await wait_all_tasks_blocked()
        quiet.end()
        quiet.begin()
        await wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
        quiet.end()
