"""What must hold after every step, what must hold when all tasks are blocked, and what must hold at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from scheduler import LaneStatistics
    from tests.unit.scheduler.machine.world import World


async def check(world: World) -> None:
    """The scheduler says of itself what the model says of it."""
    settled = world.settled
    world.sync()
    world.settled = settled
    if not world.complaints:
        check_sessions(world)
        check_lanes(world)
        if settled:
            world.model.settle()
            check_rest(world)
    if world.complaints:
        raise AssertionError("\n".join(["", *world.complaints, "", "What happened, last things last:", *world.log]))


def check_sessions(world: World) -> None:
    busy = {key for key, talk in world.model.talks.items() if talk.busy}
    if busy != set(world.scheduler.sessions):
        world.complain(f"sessions kept: {sorted(world.scheduler.sessions)}, busy: {sorted(busy)}")
    for key in sorted(busy):
        talk, told = world.model.talks[key], world.scheduler.session_statistics(key)
        expected = {
            "limit": talk.limit,
            "throttled": talk.throttled,
            "buffered": talk.buffered,
            "waiting": talk.waiting,
            "steering": talk.steering,
            "running": len(talk.runs),
            "stopping": sum(run.reason is not None for run in talk.runs),
            "children": len(talk.children) + sum(len(run.children) for run in talk.runs),
        }
        for name, value in expected.items():
            if getattr(told, name) != value:
                world.complain(f"{key!r} has {name} = {getattr(told, name)}, expected {value}: {talk}")


def check_lanes(world: World) -> None:
    told = world.scheduler.statistics()
    if told.callback_errors:
        world.complain(f"{told.callback_errors} callbacks raised")
    for lane in told.lanes:
        waiting = sum(turn.leader.lane == lane.name for talk in world.model.talks.values() for turn in talk.queue)
        stuck = sum(run.lane == lane.name and run.stuck_at is not None and not run.over for run in world.model.runs)
        if (lane.waiting, lane.stuck) != (waiting, stuck):
            world.complain(f"{lane}: expected {waiting} waiting and {stuck} stuck")


def check_rest(world: World) -> None:
    """With every task blocked nothing is on its way: slots, tasks and ends must be exactly where they belong."""
    now = trio.current_time()
    for message in world.model.messages:
        if message.due is not None and message.told != 1:
            world.complain(f"{message} is over, but was told {message.told} times")
    for run in world.model.runs:
        if run.over:
            continue
        if not run.begun:
            world.complain(f"{run} has a slot but does not begin")
        if run.overdue(now) and not world.left:
            world.complain(f"{run} ignores its cancellation since {run.watched_at}, nothing is done about it")
    for talk in world.model.talks.values():
        if talk.window is not None and talk.window.closes_at <= now:
            world.complain(f"the window of {talk.key!r} is open since {talk.window.closes_at}")
    for lane in world.scheduler.statistics().lanes:
        check_lane_at_rest(world, lane)
    check_tasks(world)


def check_lane_at_rest(world: World, lane: LaneStatistics) -> None:
    here = [run for run in world.model.runs if run.lane == lane.name and not run.over]
    held = sum(run.slot for run in here)
    unsure = sum(run.slot_unsure for run in here)
    returning = [run for run in here if run.in_line]
    parked = sum(run.parked for run in here)
    if not held <= lane.active <= held + unsure:
        world.complain(f"{lane.name!r} has {lane.active} active, expected {held} to {held + unsure}: {here}")
    if not parked <= lane.parked <= parked + unsure:
        world.complain(f"{lane.name!r} has {lane.parked} parked, expected {parked} to {parked + unsure}: {here}")
    if lane.active >= world.model.limits[lane.name] or world.model.closed:
        return
    if returning:
        world.complain(f"{lane.name!r} has a free slot that {returning} waits for")
    for talk in world.model.talks.values():
        if talk.ready and talk.queue[0].leader.lane == lane.name:
            world.complain(f"{lane.name!r} has a free slot that {talk.queue[0].messages} waits for")


def check_tasks(world: World) -> None:
    """A task for each run and one for the timers, which goes when the scheduler has closed."""
    if world.left:
        return
    alive = sum(not run.over for run in world.model.runs)
    timers = not (world.model.closed and not world.scheduler.sessions)
    if world.tasks != alive + timers:
        world.complain(f"{world.tasks} tasks for {alive} runs")


def check_end(world: World) -> None:
    """Nothing is left of anything."""
    for message in world.model.messages:
        if message.told != 1 or message.ticket is None or message.ticket.outcome is None:
            world.complain(f"{message} never ended: it is in {message.place}, {message.run}")
    for lane in world.scheduler.statistics().lanes:
        if lane.active or lane.parked or lane.waiting or lane.stuck:
            world.complain(f"at the end: {lane}")
    if world.scheduler.sessions or len(world.scheduler.timers):
        world.complain(f"at the end: {world.scheduler.sessions}, {len(world.scheduler.timers)} timers")
    if world.lingering:
        world.complain(f"{world.lingering} tasks still wait for a message")
