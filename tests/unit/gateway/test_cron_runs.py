"""Runs of jobs on the scheduler's lane: how much room there is, and which end of a run becomes which error."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from cron.errors import AgentMissing, RunStopped, RunTimedOut
from cron.run import Answer, Work
from gateway.crew import Crew
from gateway.cron_runs import LaneRunner
from gateway.protocols import AgentReply
from gateway.toolbox import Toolbox
from gateway.tracing import Tracer
from scheduler import Mode, Policy, Request, Scheduler, open_scheduler
from store.jobs import Job, NewJob, Run, Timing, TriggerKind
from store.memory import MemoryStore
from store.records import SessionKey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from gateway.protocols import AgentContext, Turn

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
CHAT = SessionKey("default", "main", "terminal", "", "local")


@dataclass
class Told:
    """An agent that does as it is told."""

    act: Callable[[AgentContext], Awaitable[str]]
    can_steer: bool = False
    turns: list[Turn] = field(default_factory=list)

    async def run(self, turn: Turn, context: AgentContext) -> AgentReply:
        if turn.depth:
            await trio.sleep(1)
            return AgentReply(f"helped with {turn.texts[0]}")
        self.turns.append(turn)
        return AgentReply(await self.act(context))


async def at_once(context: AgentContext) -> str:
    return "done"


async def for_a_minute(context: AgentContext) -> str:
    await trio.sleep(60)
    return "done"


def work(number: str = "r1", *, agent: str = "main", session: str = "", place: SessionKey | None = None) -> Work:
    spec = NewJob("u1", "default", agent, "do it", Timing("every", every=timedelta(hours=1)))
    run = Run(number, "default", 1, "t1", 1, agent, TriggerKind.SCHEDULE, None, "w", "trace-1", NOW, timedelta(0))
    return Work(
        job=Job(1, spec, NOW, NOW),
        run=run,
        prompt="do it",
        session=session or f"cron:default:1:{number}",
        place=place,
        timeout=timedelta(seconds=600),
        environ={"GOCLAW_TRACE_ID": "trace-1"},
    )


@asynccontextmanager
async def opened(
    act: Callable[[AgentContext], Awaitable[str]], **limits: int
) -> AsyncIterator[tuple[LaneRunner, Scheduler, Told]]:
    agent = Told(act)
    async with open_scheduler({"main": 1, "cron": 1, "subagent": 1} | limits) as scheduler:
        toolbox = Toolbox(Crew.of({"main": agent}), Tracer(lambda: NOW), 600)
        yield LaneRunner(scheduler, toolbox, MemoryStore(lambda: NOW)), scheduler, agent


async def test_the_answer_and_what_the_agent_is_told(autojump_clock: MockClock) -> None:
    """The agent gets the prompt in a conversation of its own, and the trace in its environment. (G19)"""
    async with opened(at_once) as (runner, _, agent):
        assert await runner.run(work()) == Answer("done")
        (turn,) = agent.turns
        assert (turn.texts, turn.environ["GOCLAW_TRACE_ID"]) == (("do it",), "trace-1")
        assert (turn.session.tenant, turn.session.channel) == ("default", "cron")
        await runner.run(work(place=CHAT, session=str(CHAT)))
        assert agent.turns[-1].session == CHAT


async def test_room_is_what_the_lane_has_left(autojump_clock: MockClock) -> None:
    """Running and waiting take room, and a closing scheduler has none."""
    async with opened(for_a_minute, cron=3) as (runner, scheduler, _), trio.open_nursery() as nursery:
        assert runner.room() == 3
        nursery.start_soon(runner.run, work("r1"))
        nursery.start_soon(runner.run, work("r2"))
        await wait_all_tasks_blocked()
        assert runner.room() == 1
        nursery.start_soon(runner.run, work("r3", session="cron:default:1:r1"))  # behind the first
        await wait_all_tasks_blocked()
        assert (scheduler.lanes["cron"].waiting, runner.room()) == (1, 0)
        scheduler.lanes.resize("cron", 1)
        assert runner.room() == 0
        await trio.sleep(121)
        assert runner.room() == 1


async def test_an_unknown_agent_is_missing(autojump_clock: MockClock) -> None:
    """Nothing is scheduled for it. (A23)"""
    async with opened(at_once) as (runner, scheduler, _):
        with pytest.raises(AgentMissing):
            await runner.run(work(agent="nobody"))
        assert not scheduler.sessions


async def test_a_run_that_takes_too_long(autojump_clock: MockClock) -> None:
    """Its time counts from its slot, not from when it was asked for. (3)"""
    async with opened(for_a_minute) as (runner, _, agent), trio.open_nursery() as nursery:
        nursery.start_soon(runner.run, work("r1"))
        await wait_all_tasks_blocked()
        await runner.run(replace(work("r2"), timeout=timedelta(seconds=61)))
        assert trio.current_time() == 120
        with pytest.raises(RunTimedOut, match="longer than 5 s"):
            await runner.run(replace(work("r3"), timeout=timedelta(seconds=5)))
        assert len(agent.turns) == 3


async def test_a_run_that_a_person_stops(autojump_clock: MockClock) -> None:
    """By its session, which is the chat's own text: then it is stopped, not failed."""
    async with opened(for_a_minute) as (runner, scheduler, _), trio.open_nursery() as nursery:

        async def run() -> None:
            with pytest.raises(RunStopped, match="somebody stopped it"):
                await runner.run(work(session=str(CHAT), place=CHAT))

        nursery.start_soon(run)
        await wait_all_tasks_blocked()
        assert scheduler.cancel_oldest(str(CHAT)).running == 1


async def test_a_run_that_a_newer_message_interrupts(autojump_clock: MockClock) -> None:
    """Where messages interrupt, they interrupt a job in the same conversation too, and it is told why."""

    async def hello(run: object) -> str:
        await trio.lowlevel.checkpoint()
        return "hello"

    async with opened(for_a_minute) as (runner, scheduler, _), trio.open_nursery() as nursery:

        async def run() -> None:
            with pytest.raises(RunStopped, match="newer message"):
                await runner.run(work(session=str(CHAT), place=CHAT))

        nursery.start_soon(run)
        await wait_all_tasks_blocked()
        policy = Policy(mode=Mode.INTERRUPT, debounce_s=0)
        assert await scheduler.schedule(Request(str(CHAT), hello, policy=policy)).result() == "hello"


async def test_what_the_agent_raises_is_what_cron_sees(autojump_clock: MockClock) -> None:
    """Also from inside a nursery: the error, not the group that it came in."""

    async def fail(context: AgentContext) -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broken)
        return ""

    async def broken() -> None:
        await trio.lowlevel.checkpoint()
        raise KeyError("the cause")

    async with opened(fail) as (runner, _, _):
        with pytest.raises(KeyError, match="the cause"):
            await runner.run(work())


async def test_a_cancelled_run_has_really_ended(autojump_clock: MockClock) -> None:
    """Whoever gives a run up goes on only when nothing of it works any more. (11)"""
    ended = []

    async def lets_go_slowly(context: AgentContext) -> str:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3)
                ended.append(trio.current_time())
        return ""

    async with opened(lets_go_slowly) as (runner, scheduler, _):
        with trio.move_on_after(10):
            await runner.run(work())
        assert ended == [13]
        assert trio.current_time() == 13
        assert not scheduler.sessions


async def test_a_scheduler_that_closes_leaves_the_run_to_be_given_back(autojump_clock: MockClock) -> None:
    """Nothing failed and nobody stopped it: it waits to be told that the process ends."""
    async with opened(for_a_minute) as (runner, scheduler, _):
        with trio.move_on_after(100) as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(runner.run, work("r1"))
                nursery.start_soon(runner.run, work("r2"))
                await wait_all_tasks_blocked()
                await scheduler.close(5)
                nursery.start_soon(runner.run, work("r3"))
        assert scope.cancelled_caught
        assert trio.current_time() == 100


async def test_helpers_of_a_job_run_on_their_own_lane(autojump_clock: MockClock) -> None:
    """A job on a lane of one can ask helpers: its slot is lent meanwhile. (1)"""

    async def ask(context: AgentContext) -> str:
        context.show("nobody sees this")
        assert await context.steering() == ()
        return (await context.call("spawn_subagent", {"task": "tea"})).text

    async with opened(ask) as (runner, scheduler, _):
        assert await runner.run(work()) == Answer("helped with tea")
        assert scheduler.lanes["subagent"].started == 1


async def test_a_chat_is_treated_as_before(autojump_clock: MockClock) -> None:
    """A job in a busy group leaves the group's limits and figure alone, and no message gives way to it."""

    async def talk(run: object) -> str:
        await trio.sleep(10)
        return ""

    group = Policy(debounce_s=0, max_concurrent=3, cap=1, shared=True)
    async with opened(at_once, main=3) as (runner, scheduler, _), trio.open_nursery() as nursery:
        tickets = [scheduler.schedule(Request(str(CHAT), talk, policy=group, context_used=0.3)) for _ in range(4)]
        nursery.start_soon(runner.run, work(session=str(CHAT), place=CHAT))
        await wait_all_tasks_blocked()
        session = scheduler.sessions[str(CHAT)]
        assert (session.limit, session.context_used) == (3, 0.3)
        for ticket in tickets:
            await ticket.result()
