"""Promises P2, P3, P8 and P13 of the scheduler, held against random histories.

P2 order inside a session, P3 lane and session limits never exceeded, P8 no deadlock at any lane size, P13 idle costs
nothing; and with them: every message ends exactly once, and the counts of a cancel are true. Each example is one live
scheduler. Its handlers nest, steer, seal, fail, unwind slowly and ignore cancellation as hypothesis pleases, and after
every step the scheduler is compared with a model that was told of the same requests.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from trio.testing import wait_all_tasks_blocked

from scheduler import Mode, Policy
from tests.unit.scheduler.machine import inspection, nesting
from tests.unit.scheduler.machine.loop import Loop
from tests.unit.scheduler.machine.plans import (
    CONTEXT,
    DEBOUNCE,
    LANE,
    LIMITS,
    SENDER,
    SENDERS,
    SESSIONS,
    Fail,
    Plan,
    Seal,
    Sleep,
    Steer,
    Step,
    Twins,
    plans,
)
from tests.unit.scheduler.machine.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_DEADLINES = 2_000

USUAL = settings(
    max_examples=100,
    stateful_step_count=35,
    deadline=None,
    derandomize=True,  # the same histories every time; `make soak` looks for new ones
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
LONG = settings(USUAL, max_examples=10_000, stateful_step_count=60, derandomize=False)

GROUP = Policy(debounce_s=0, max_concurrent=3)
STEERED: list[tuple[Step, ...]] = [
    (Sleep(10.0),),
    (Sleep(1.0), Steer(), Sleep(1.0)),
    (Sleep(0.1), Seal(), Sleep(1.0)),
    (Sleep(1.0), Fail()),
]


class SchedulerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = Loop()
        self.world = self.loop.run(self._open)
        self.ending = "drain"
        self.ended = False

    async def _open(self) -> World:
        world = World(self.loop.nursery)
        await world.open()
        return world

    def act(self, call: Callable[[], object]) -> None:
        """Do something inside trio, without letting any other task run."""

        async def do() -> None:
            call()

        self.loop.run(do)

    # ── what may happen ──────────────────────────────────────────────────────────────────────────────────────────

    @initialize(ending=st.sampled_from(["drain", "close", "leave"]))
    def choose_ending(self, ending: str) -> None:
        self.ending = ending

    @rule(plan=plans())
    def schedule(self, plan: Plan) -> None:
        self.act(lambda: self.world.schedule(plan))

    @rule(plan=plans(depth=1), copies=st.integers(2, 4))
    def flood(self, plan: Plan, copies: int) -> None:
        for _ in range(copies):
            self.act(lambda: self.world.schedule(plan))

    @rule(sender=SENDER, lane=LANE, script=st.sampled_from(STEERED))
    def run_that_can_be_steered(self, sender: str, lane: str, script: tuple[Step, ...]) -> None:
        plan = Plan("room", lane, sender, policy=GROUP, steerable=True, script=script)
        self.act(lambda: self.world.schedule(plan))

    @rule(sender=SENDER, context_used=CONTEXT, debounce_s=DEBOUNCE)
    def steer(self, sender: str, context_used: float, debounce_s: float) -> None:
        policy = replace(GROUP, mode=Mode.STEER, debounce_s=debounce_s)
        self.act(lambda: self.world.schedule(Plan("room", "wide", sender, policy=policy, context_used=context_used)))

    @rule(lane=LANE, first=plans(0, nested=True), second=plans(0, nested=True), newcomer=plans(0, nested=True))
    def crowd(self, lane: str, first: Plan, second: Plan, newcomer: Plan) -> None:
        """A run waits for two children, and somebody wants its slot meanwhile."""
        parent = Plan(lane=lane, script=(Twins(first, second, lag_s=0.1),))
        self.act(lambda: self.world.schedule(parent))
        self.act(lambda: self.world.schedule(replace(newcomer, lane=lane, script=(Sleep(1.0), *newcomer.script))))

    @rule(plan=plans(depth=1), copies=st.integers(2, 8), gap_s=st.sampled_from([0.4, 1.9]))
    def trickle(self, plan: Plan, copies: int, gap_s: float) -> None:
        """Somebody writes on and on, always just before the window would have closed."""
        for _ in range(copies):
            self.act(lambda: self.world.schedule(plan))
            self.advance(gap_s)

    @rule(key=st.sampled_from(SESSIONS), sender=st.none() | st.sampled_from(SENDERS))
    def cancel_oldest(self, key: str, sender: str | None) -> None:
        self.act(lambda: self.world.cancel(key, sender, everything=False))

    @rule(key=st.sampled_from(SESSIONS), sender=st.none() | st.sampled_from(SENDERS))
    def cancel_all(self, key: str, sender: str | None) -> None:
        self.act(lambda: self.world.cancel(key, sender, everything=True))

    @rule(lane=st.sampled_from(list(LIMITS)), limit=st.integers(1, 4))
    def resize(self, lane: str, limit: int) -> None:
        self.act(lambda: self.world.resize(lane, limit))

    @rule(key=st.sampled_from(SESSIONS))
    def flush(self, key: str) -> None:
        self.act(lambda: self.world.flush(key))

    @rule(rounds=st.integers(1, 4))
    def let_run(self, rounds: int) -> None:
        async def wait() -> None:
            for _ in range(rounds):
                await trio.lowlevel.checkpoint()

        self.loop.run(wait)

    @rule()
    def let_settle(self) -> None:
        self.loop.run(self._settle)

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 5.0, 30.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Time passes, one deadline after the other."""

        async def pass_time() -> None:
            until = trio.current_time() + seconds
            while True:
                await self._settle()
                wait_s = min(self._next_deadline_s(), until - trio.current_time())
                if wait_s <= 0:
                    return
                self.loop.clock.jump(wait_s)

        self.loop.run(pass_time)

    @rule(seconds=st.sampled_from([0.5, 2.0, 11.0, 100.0]))
    def leap(self, seconds: float) -> None:
        """The process was asleep: everything that was due meanwhile is due at once."""

        async def jump() -> None:
            self.loop.clock.jump(seconds)
            await self._settle()

        self.loop.run(jump)

    @precondition(lambda self: self.ending == "close" and not self.ended)
    @rule(grace_s=st.sampled_from([0.0, 1.0, 20.0]))
    def close(self, grace_s: float) -> None:
        self.ended = True
        self.act(lambda: self.world.close(grace_s))

    @precondition(lambda self: self.ending == "leave" and not self.ended)
    @rule()
    def leave(self) -> None:
        self.ended = True
        self.act(self.world.leave)

    # ── what must hold ───────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def agrees_with_the_model(self) -> None:
        self.loop.run(self._check)

    def teardown(self) -> None:
        """Let time run: everything ends, and nothing is left behind."""
        try:
            if not self.world.complaints:
                self.loop.run(self._run_out)
        finally:
            self.loop.end()

    async def _run_out(self) -> None:
        for _ in range(MOST_DEADLINES):
            await self._settle()
            await self._check()
            if self.world.quiet:
                break
            wait_s = self._next_deadline_s()
            if wait_s == float("inf"):
                self.world.complain("a deadlock: messages are open and no task will ever wake up")
                break
            self.loop.clock.jump(wait_s)
        inspection.check_end(self.world)
        await self._check()

    async def _check(self) -> None:
        await inspection.check(self.world)

    async def _settle(self) -> None:
        await wait_all_tasks_blocked()
        self.world.settled = True

    @staticmethod
    def _next_deadline_s() -> float:
        return trio.lowlevel.current_statistics().seconds_to_next_deadline


def test_random_histories_keep_the_promises() -> None:
    """P2, P3, P8, P13: whatever is asked in whatever order, the scheduler does what the model expects."""
    run_state_machine_as_test(SchedulerMachine, settings=USUAL)


@pytest.mark.soak
def test_many_long_random_histories_keep_the_promises() -> None:
    """P2, P3, P8, P13: the same for longer histories and more of them."""
    run_state_machine_as_test(SchedulerMachine, settings=LONG)


@settings(max_examples=100, deadline=None, print_blob=True)
@given(roots=st.lists(nesting.trees(), min_size=1, max_size=4))
def test_nested_work_on_lanes_of_one_never_hangs(roots: list[nesting.Tree]) -> None:
    """P8: two lanes of one, children three deep in either lane, awaited in turn or at once."""
    assert nesting.count_runs(roots) == sum(root.size() for root in roots)
