"""Runs of jobs, carried out on the lane `cron` of the scheduler.

work ──▶ request on lane `cron` ──▶ agent ──▶ Answer
             │ cancelled by cron (lease lost, shutdown): the run is cancelled, and waited for until it has ended
             └── every other end becomes one of cron's own errors, here and nowhere else
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import trio

from cron.errors import AgentMissing, RunStopped, RunTimedOut
from cron.run import Answer
from gateway.protocols import Turn
from gateway.turn import ask_helper
from scheduler import End, Mode, Policy, Reason, Request
from store.records import SessionKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cron.run import Work
    from gateway.protocols import Agent
    from scheduler import Outcome, Run, Scheduler

CRON_LANE = "cron"


class LaneRunner:
    def __init__(self, scheduler: Scheduler, agents: Mapping[str, Agent]) -> None:
        self._scheduler = scheduler
        self._agents = agents

    def room(self) -> int:
        lane = self._scheduler.lanes[CRON_LANE]
        return 0 if self._scheduler.closing else max(lane.limit - lane.active - lane.waiting, 0)

    async def run(self, work: Work) -> Answer:
        agent = self._agents.get(work.job.spec.agent)
        if agent is None:
            raise AgentMissing(work.job.spec.agent)
        ticket = self._scheduler.schedule(self._request(work, agent))
        try:
            outcome = await ticket.wait()
        except trio.Cancelled:
            ticket.cancel()
            with trio.CancelScope(shield=True):  # ends with the run, or with the scheduler's fence
                await ticket.wait()
            raise
        if outcome.end is End.DONE:
            return Answer(outcome.value)
        if outcome.end is End.CLOSED or outcome.reason is Reason.CLOSING:
            await trio.sleep_forever()  # the process ends: cron is about to be stopped, and gives this back at no cost
        raise error_of(outcome, work)

    def _request(self, work: Work, agent: Agent) -> Request:
        async def handle(run: Run) -> str:
            turn = Turn(work.place or alone(work), (work.prompt,), work.environ)
            return await agent.run(turn, CronContext(run, agent))

        # In a chat's own session nothing of how that chat is treated changes by this.
        here = self._scheduler.sessions.get(work.session)
        usual = Policy() if here is None or here.policy is None else here.policy
        policy = replace(usual, mode=Mode.QUEUE, debounce_s=0, timeout_s=work.timeout.total_seconds())
        return Request(
            session=work.session,
            handler=handle,
            lane=CRON_LANE,
            tenant=work.job.tenant,
            policy=policy,
            context_used=0.0 if here is None else here.context_used,
            resumed=True,  # no cap: nobody's message gives way to it, and it gives way to none
        )


def error_of(outcome: Outcome, work: Work) -> Exception:
    """The one place where an end of the scheduler becomes an error of cron."""
    if outcome.end is End.TIMED_OUT:
        return RunTimedOut(f"it took longer than {work.timeout.total_seconds():g} s, the longest a run may take")
    if outcome.reason is Reason.INTERRUPTED:
        return RunStopped("a newer message took its place")
    if outcome.end is End.CANCELLED:
        return RunStopped("somebody stopped it")
    error = outcome.error
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, Exception):
        return error
    return RuntimeError(f"the run was {outcome.end}: {error!r}")


def alone(work: Work) -> SessionKey:
    """A conversation that nobody else is in."""
    return SessionKey(work.job.tenant, work.job.spec.agent, "cron", "", str(work.job.id), work.run.id)


class CronContext:
    """What an agent may do while it works for a job: nobody watches or steers it."""

    def __init__(self, run: Run, agent: Agent) -> None:
        self._run = run
        self._agent = agent
        self.helpers = 0

    def show(self, text: str) -> None:
        """Nobody sees it: people get the answer."""

    async def ask_helper(self, task: str) -> str:
        return await ask_helper(self._run, self._agent, self, task)

    async def steering(self) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        return ()
