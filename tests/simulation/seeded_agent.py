"""An agent with seeded habits, good and bad: what it does follows from the seed and from what it is asked.

It tells the history when it executes, when it waits for helpers, and how it left, so that limits are counted on what
really happens and not on what the scheduler believes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from gateway.protocols import AgentReply
from scheduler.run import current_run
from tests.simulation.history import What
from tests.simulation.script import markers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from gateway.protocols import AgentContext, Turn
    from scheduler import Run
    from tests.simulation.world import Life, World

    Habits = dict[Callable[["Job"], Awaitable[None]], int]

DEEPEST = 3
LONGEST_DEAFNESS_S = 90.0


class AgentFailure(Exception):
    """What a failing agent raises."""


@dataclass(slots=True)
class Job:
    """One agent at work."""

    label: str
    run: Run
    context: AgentContext
    random: Random
    asking: int = 0
    """How many of its tasks wait for a helper."""
    added: list[str] = field(default_factory=list)
    """What the person has said meanwhile."""


class SeededAgent:
    def __init__(self, world: World, life: Life) -> None:
        self.can_steer = world.plan.can_steer
        self._world = world
        self._life = life
        self._habits = habits(self, world.plan.temper)
        self._seen: Counter[str] = Counter()

    async def run(self, turn: Turn, context: AgentContext) -> AgentReply:
        if turn.depth:
            await self._execute(self._job(turn.texts[0], context))
            return AgentReply(f"helped with {turn.texts[0]}")
        words = [word for text in turn.texts for word in markers(text)]
        job = self._job(" ".join(words), context)
        await self._execute(job)
        return AgentReply(" ".join(["answer to", *words, *(word for text in job.added for word in markers(text))]))

    def _job(self, label: str, context: AgentContext) -> Job:
        run = current_run.get()
        assert run is not None
        self._seen[label] += 1
        about = f"agent {self._life.number} {label} {self._seen[label]}"
        return Job(label, run, context, self._world.random(about))

    async def _execute(self, job: Job) -> None:
        run = job.run
        self._tell(What.IN, job, detail=run.lane)
        how = "raised"
        try:
            await self._behave(job)
            how = "returned"
        except trio.Cancelled:
            how = "cancelled"
            raise
        finally:
            self._tell(What.OUT, job, detail=f"{how}{' when cancelled' if run.cancelled else ''}")

    async def _behave(self, job: Job) -> None:
        names, weights = zip(*self._habits.items(), strict=True)
        await job.random.choices(names, weights)[0](job)

    # ── habits ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def answer_at_once(self, job: Job) -> None:
        if job.random.random() < 0.7:
            await trio.sleep(job.random.uniform(0, 0.3))

    async def work_in_steps(self, job: Job) -> None:
        for number in range(job.random.randint(1, 6)):
            job.context.show(f"{job.label} step {number}")
            await trio.sleep(job.random.uniform(0.1, 2.5))
            job.added += await job.context.steering()

    async def look_up_briefly(self, job: Job) -> None:
        """Asks for what was added, but will not wait long for the answer."""
        for _ in range(job.random.randint(1, 3)):
            await trio.sleep(job.random.uniform(0.5, 2.0))
            with trio.move_on_after(job.random.uniform(0, 0.5)):
                job.added += await job.context.steering()

    async def fail(self, job: Job) -> None:
        await trio.sleep(job.random.uniform(0, 1.5))
        raise AgentFailure(f"{job.label} was too hard")

    async def ask_helpers(self, job: Job) -> None:
        if job.run.depth >= DEEPEST:
            await self.work_in_steps(job)
            return
        tasks = [f"{job.label}>{number}" for number in range(1, job.random.randint(2, 4))]
        if job.random.random() < 0.5:
            async with trio.open_nursery() as nursery:
                for task in tasks:
                    nursery.start_soon(self._ask, job, task)
        else:
            for task in tasks:
                await self._ask(job, task)
                await trio.sleep(job.random.uniform(0, 0.5))

    async def ask_impatiently(self, job: Job) -> None:
        """Goes on without the helper, which goes on without it."""
        if job.run.depth < DEEPEST:
            with trio.move_on_after(job.random.uniform(0.05, 2.0)):
                await self._ask(job, f"{job.label}>1")
        await trio.sleep(job.random.uniform(0, 1.0))

    async def hang(self, job: Job) -> None:
        job.context.show(f"{job.label} hangs")
        await trio.sleep_forever()

    async def clean_up_slowly(self, job: Job) -> None:
        try:
            await trio.sleep(job.random.uniform(1, 10))
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(job.random.uniform(0.1, 9.0))
                job.context.show(f"{job.label} cleans up")

    async def hear_nothing(self, job: Job) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(job.random.uniform(20.0, LONGEST_DEAFNESS_S))
        job.context.show(f"{job.label} looks up")

    async def answer_regardless(self, job: Job) -> None:
        try:
            await trio.sleep(job.random.uniform(1.0, 8.0))
        except trio.Cancelled:
            job.context.show(f"{job.label} answers all the same")

    async def _ask(self, job: Job, task: str) -> None:
        forgiving = job.random.random() < 0.5
        if not await self._wait_for_help(job, task) and not forgiving:
            raise AgentFailure(f"nobody helped with {task}")

    async def _wait_for_help(self, job: Job, task: str) -> bool:
        """Whether there was an answer."""
        job.asking += 1
        if job.asking == 1:
            self._tell(What.ASKS, job)
        try:
            return (await job.context.call("spawn_subagent", {"task": task})).ok
        finally:
            job.asking -= 1
            if job.asking == 0:
                self._tell(What.BACK, job, detail="cancelled" if job.run.cancelled else "")

    def _tell(self, what: What, job: Job, detail: str = "") -> None:
        run = job.run
        self._world.tell(what, self._life, session=run.request.session, run=run.id, text=job.label, detail=detail)


def habits(agent: SeededAgent, temper: str) -> Habits:
    """How often it does what."""
    brisk: Habits = {agent.answer_at_once: 6, agent.work_in_steps: 4, agent.ask_helpers: 1, agent.fail: 1}
    mixed = {**brisk, agent.answer_at_once: 3, agent.work_in_steps: 6, agent.ask_helpers: 5, agent.fail: 2}
    mixed |= {agent.look_up_briefly: 2, agent.clean_up_slowly: 4, agent.answer_regardless: 3, agent.ask_impatiently: 2}
    wild = {**mixed, agent.answer_at_once: 1, agent.ask_helpers: 8}
    wild |= {agent.hang: 2, agent.hear_nothing: 3, agent.answer_regardless: 4, agent.ask_impatiently: 3}
    return {"brisk": brisk, "mixed": mixed, "wild": wild}[temper]
