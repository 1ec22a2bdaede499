"""The loads that the lanes are put under, and the scheduler under them. Every function opens a scheduler of its own."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

import trio
from trio.testing import wait_all_tasks_blocked

from bench.measure import tracing
from scheduler import DEFAULT_LIMITS, End, Policy, Request, open_scheduler

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from scheduler import Event, Run, Scheduler, Ticket

    Handler = Callable[[Run], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Load:
    """``count`` messages, the sessions in turn: the worst order for whoever keeps something per session."""

    count: int
    sessions: int
    limit: int
    keys: tuple[str, ...] = field(init=False, repr=False)
    policy: Policy = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(f"session-{number}" for number in range(self.sessions)))
        object.__setattr__(self, "policy", Policy(debounce_s=0.0, cap=self.count))

    def messages(self) -> Iterator[tuple[int, str]]:
        return ((number, self.keys[number % self.sessions]) for number in range(self.count))


@dataclass(slots=True)
class Watcher:
    """The observer of the measured runs: proves that it was told everything."""

    events: int = 0

    def see(self, event: Event) -> None:
        self.events += 1


async def noop(_: object) -> None:
    pass


async def checkpoint(_: object) -> None:
    await trio.lowlevel.checkpoint()


async def until_cancelled(_: object) -> None:
    await trio.sleep_forever()


def on_lanes(load: Load, handler: Handler) -> float:
    """Seconds from the first message to the end of the last one, requests and one observer included."""

    async def main() -> float:
        async with open_scheduler({"main": load.limit}) as scheduler:
            watcher = Watcher()
            scheduler.observe(watcher.see)
            started = perf_counter()
            for number, session in load.messages():
                scheduler.schedule(Request(session, handler, number, policy=load.policy))
            await scheduler.drain()
            took = perf_counter() - started
            (lane,) = scheduler.statistics().lanes
            assert lane.ends[End.DONE.value] == load.count
            assert watcher.events == 3 * load.count
            return took

    return trio.run(main)


def schedule_costs(load: Load) -> tuple[list[float], list[float]]:
    """Seconds of each `schedule` call behind a full lane: of the call alone, then with the making of its request."""
    alone: list[float] = []
    with_request: list[float] = []

    async def main() -> None:
        async with open_scheduler({"main": load.limit}) as scheduler:
            scheduler.observe(Watcher().see)
            occupy(scheduler, {"main": load.limit}, load.policy)
            await wait_all_tasks_blocked()
            for number, session in load.messages():
                begun = perf_counter()
                request = Request(session, noop, number, policy=load.policy)
                made = perf_counter()
                scheduler.schedule(request)
                done = perf_counter()
                alone.append(done - made)
                with_request.append(done - begun)

    trio.run(main)
    return alone, with_request


def start_delays(count: int, limit: int = 100) -> list[float]:
    """Seconds from before `schedule` to the handler's first line, with about half of the lane's slots in use.

    A new message of a new session comes in bursts of one to four; then the sender sleeps 2 ms, so about 1,200 come in
    a second, and each stays for 40 ms. Nobody waits for a slot: what is measured is the way into one.
    """
    delays: list[float] = []
    policy = Policy(debounce_s=0.0)
    bursts = random.Random(1)

    async def handle(run: Run) -> None:
        delays.append(perf_counter() - run.request.payload)
        await trio.sleep(0.04)

    async def main() -> None:
        async with open_scheduler({"main": limit}) as scheduler:
            scheduler.observe(Watcher().see)
            sent = 0
            while sent < count:
                for _ in range(bursts.randint(1, 4)):
                    scheduler.schedule(Request(f"session-{sent}", handle, perf_counter(), policy=policy))
                    sent += 1
                await trio.sleep(0.002)
            await scheduler.drain()

    trio.run(main)
    return delays


def cancel_delays(sessions: int, cancels: int) -> list[float]:
    """Seconds from a cancel to the end of its run, with every lane full and ``sessions`` more sessions in line.

    Each cancelled run makes room for the next in line, which also stays until cancelled: the lanes are full all along.
    """
    delays: list[float] = []
    policy = Policy(debounce_s=0.0)

    async def main() -> None:
        async with open_scheduler(DEFAULT_LIMITS) as scheduler:
            scheduler.observe(Watcher().see)
            running = occupy(scheduler, DEFAULT_LIMITS, policy)
            lanes = tuple(DEFAULT_LIMITS)
            for number in range(sessions):
                lane = lanes[number % len(lanes)]
                scheduler.schedule(Request(f"waiting-{number}", until_cancelled, lane=lane, policy=policy))
            await wait_all_tasks_blocked()
            for number, ticket in zip(range(cancels), running, strict=False):
                assert all(lane.active == lane.limit for lane in scheduler.lanes)
                cancel = scheduler.cancel_oldest if number % 2 else scheduler.cancel_all
                asked = perf_counter()
                assert cancel(ticket.request.session).running == 1
                outcome = await ticket.wait()
                delays.append(perf_counter() - asked)
                assert outcome.end is End.CANCELLED

    trio.run(main)
    return delays


def memory(load: Load) -> tuple[float, float, int]:
    """Bytes per message that waits (with its request), bytes and sessions left when all have ended.

    The first round warms up, so that what Python itself keeps is not counted.
    """
    per_message = left = 0.0
    sessions_left = 0

    async def main() -> None:
        nonlocal per_message, left, sessions_left
        async with open_scheduler({"main": load.limit}) as scheduler:
            scheduler.observe(Watcher().see)
            for _ in range(2):
                before = alive()
                running = occupy(scheduler, {"main": load.limit}, load.policy)
                occupied = alive()
                for _, session in load.messages():
                    scheduler.schedule(Request(session, noop, policy=load.policy))
                per_message = (alive() - occupied) / load.count
                for ticket in running:
                    scheduler.cancel_all(ticket.request.session)
                del running, ticket
                await scheduler.drain()
                sessions_left = len(scheduler.sessions)
                left = (alive() - before) / load.sessions

    with tracing() as alive:
        trio.run(main)
    return per_message, left, sessions_left


def occupy(scheduler: Scheduler, limits: dict[str, int], policy: Policy) -> list[Ticket]:
    """Fill these lanes with runs that stay until they are cancelled, the largest lane first."""
    names = sorted(limits, key=lambda name: -limits[name])
    return [
        scheduler.schedule(Request(f"{name}-{number}", until_cancelled, lane=name, policy=policy))
        for name in names
        for number in range(limits[name])
    ]
