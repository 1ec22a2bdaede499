"""A runner that does to each attempt what the seed says, and writes down what it saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from cron.errors import AgentMissing, PermanentFailure, RunStopped, RunTimedOut
from cron.run import Answer
from tests.simulation.cron.world import Seen

if TYPE_CHECKING:
    from random import Random

    from cron.run import Work
    from tests.simulation.cron.world import Life, World

TEMPERS = {
    "brisk": {"quick": 30, "long": 1, "fails": 2},
    "mixed": {"quick": 12, "long": 4, "fails": 4, "hangs": 1, "permanent": 1, "odd": 1, "stopped": 1},
    "wild": {"quick": 4, "long": 4, "fails": 5, "hangs": 2, "permanent": 2, "odd": 2, "stopped": 1, "no agent": 1},
}
ODD = (
    KeyError("x"),
    ValueError(""),
    OSError(28, "full"),
    UnicodeError("\udc80"),
    ExceptionGroup("two", [ValueError()]),
)


class SeededRunner:
    def __init__(self, world: World, life: Life) -> None:
        self._world = world
        self._life = life
        self._active = 0

    def room(self) -> int:
        return self._world.plan.lane - self._active

    async def run(self, work: Work) -> Answer:
        run, world = work.run, self._world
        if run.id in world.seen:
            world.report("P4", f"run {run.id} was carried out twice")
        seen = Seen(run.id, run.trigger, work.job.key, trio.current_time(), None, "")
        world.seen[run.id] = seen
        world.going_on[run.id] = work.job.key
        world.tell(self._life.name, "in", f"{run.tenant} #{run.job} {run.id} attempt {run.attempt}")
        self._active += 1
        how = "cancelled"
        try:
            with trio.move_on_after(work.timeout.total_seconds()) as scope:
                await self._act(work)
                how = "returned"
            if scope.cancelled_caught:
                how = "timed out"
                raise RunTimedOut("it took longer than it may")
            return Answer(f"done {run.id}", 3, 5)
        except Exception as error:
            how = how if how == "timed out" else f"raised {type(error).__name__}"
            raise
        finally:
            self._active -= 1
            del world.going_on[run.id]
            world.seen[run.id] = seen._replace(ended=trio.current_time(), how=how)
            world.tell(self._life.name, "out", f"{run.tenant} #{run.job} {run.id} {how}")

    async def _act(self, work: Work) -> None:
        run = work.run
        random = self._world.random(f"run {run.tenant} {run.job} {run.started_at} {run.attempt}")
        if self._world.quiet:
            await trio.sleep(random.uniform(0.1, 2))
            return
        weights = TEMPERS[self._world.plan.temper]
        (what,) = random.choices(list(weights), list(weights.values()))
        await trio.sleep(self._lasts(what, random))
        if what == "hangs":
            await trio.sleep_forever()
        if what == "fails":
            raise RuntimeError("it did not work")
        if what == "permanent":
            raise PermanentFailure("it will never work")
        if what == "stopped":
            raise RunStopped("somebody stopped it")
        if what == "no agent":
            raise AgentMissing("there is no such agent")
        if what == "odd":
            raise random.choice(ODD)

    def _lasts(self, what: str, random: Random) -> float:
        return random.uniform(30, self._world.plan.longest_s) if what == "long" else random.uniform(0.05, 8)
