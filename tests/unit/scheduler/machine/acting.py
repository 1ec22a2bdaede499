"""The handlers: they act out their plans and report what they see to the model.

A handler reports its first step, its last step and each wait in between. Its last report comes at its very end, so
that nothing can happen between that and the end of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from scheduler import Run, WaitRefused
from tests.unit.scheduler.machine import plans
from tests.unit.scheduler.machine.parts import Message, Running, Wait

if TYPE_CHECKING:
    from tests.unit.scheduler.machine.plans import Plan, Step
    from tests.unit.scheduler.machine.world import World


class Mishap(Exception):
    """What a handler raises that is told to fail."""


class Actor:
    def __init__(self, world: World) -> None:
        self.world = world

    async def handle(self, live: Run) -> int:
        if self.world.complaints:
            return 0
        self.world.sync()
        leader: Message = live.request.payload
        run = leader.run
        if run is None:
            self.world.complain(f"{leader} began without a slot")
            return 0
        self.world.note(f"{run} begins")
        self.world.model.begin(run, [request.payload for request in live.requests])
        try:
            await self._act(run, live)
        except Exception:
            run.raised = True
            raise
        finally:
            self.world.sync()
            self.world.note(f"{run} is over")
            self.world.model.finish(run)
        return run.number

    async def _act(self, run: Running, live: Run) -> None:
        plan = run.leader.plan
        try:
            for step in () if self.world.complaints else plan.script:
                await self._do(step, run, live)
        except trio.Cancelled:
            if plan.unwind_s:
                with trio.CancelScope(shield=True):
                    await trio.sleep(plan.unwind_s)
            raise

    async def _do(self, step: Step, run: Running, live: Run) -> None:
        match step:
            case plans.Pause(checkpoints):
                for _ in range(checkpoints):
                    await trio.lowlevel.checkpoint()
            case plans.Sleep(seconds):
                await trio.sleep(seconds)
            case plans.Deaf(seconds):
                with trio.CancelScope(shield=True):
                    await trio.sleep(seconds)
            case plans.Fail():
                raise Mishap
            case plans.Steer():
                self._take_steering(run, live)
            case plans.Seal():
                self._seal(run, live)
            case plans.Stop():
                self.world.stop(step, run.key)
            case plans.Await(back):
                await self._wait(run, self.world.model.messages[-1 - back % len(self.world.model.messages)])
            case _:
                await self._nest(step, run, live)

    async def _nest(self, step: Step, run: Running, live: Run) -> None:
        match step:
            case plans.Nest(child):
                await self._wait(run, self.world.schedule(child, (run, live)))
            case plans.Hurry(child, patience_s):
                with trio.move_on_after(patience_s) as patience:
                    await self._wait(run, self.world.schedule(child, (run, live)), patience)
            case plans.Detach(child):
                self.world.schedule(child, (run, live))
            case plans.Linger(child):
                self.world.lingering += 1
                self.world.nursery.start_soon(self._linger, child, run, live)
            case plans.Twins(first, second, lag_s):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._later, 0.0, first, run, live)
                    nursery.start_soon(self._later, lag_s, second, run, live)

    async def _later(self, lag_s: float, child: Plan, run: Running, live: Run) -> None:
        await trio.sleep(lag_s)
        await self._wait(run, self.world.schedule(child, (run, live)))

    async def _linger(self, child: Plan, run: Running, live: Run) -> None:
        try:
            await self._wait(run, self.world.schedule(child, (run, live)))
            self.world.schedule(child, (run, live))
        finally:
            self.world.lingering -= 1

    def _take_steering(self, run: Running, live: Run) -> None:
        self.world.sync()
        expected = self.world.model.steer(run)
        taken = [request.payload for request in live.take_steering()]
        self.world.note(f"{run} takes {taken}")
        if taken != expected:
            self.world.complain(f"{run} took {taken}, expected {expected}")

    def _seal(self, run: Running, live: Run) -> None:
        self.world.sync()
        run.sealed = run.reason is None or run.sealed
        self.world.note(f"{run} seals")
        if live.seal() is not run.sealed:
            self.world.complain(f"{run} sealed: {live.sealed}, expected {run.sealed}")

    async def _wait(self, run: Running, message: Message, patience: trio.CancelScope | None = None) -> None:
        """Wait for a message as this run. Refused exactly where the wait could not end."""
        self.world.sync()
        if message.ticket is None:
            self.world.complain(f"{message} has no ticket")
            return
        if message.ticket.outcome is not None or run.over:
            await message.ticket.wait()
            return
        wait = Wait(message, patience)
        certain = self.world.model.waits_in_circle(run, message, broken_off=False)
        possible = self.world.model.waits_in_circle(run, message, broken_off=True)
        self.world.note(f"{run} waits for {message}{', to be refused' if certain else ''}")
        self.world.model.lend(run, wait)
        try:
            await message.ticket.wait()
        except WaitRefused:
            self.world.model.take_back(run, wait)
            if not possible:
                self.world.complain(f"{run} may not wait for {message}")
        except BaseException:
            self._go_on(run, wait)
            raise
        else:
            self._go_on(run, wait)
            if certain:
                self.world.complain(f"{run} was let wait for {message}, which waits for it")

    def _go_on(self, run: Running, wait: Wait) -> None:
        self.world.sync()
        self.world.note(f"{run} has waited for {wait.message}")
        self.world.model.regain(run, wait)
