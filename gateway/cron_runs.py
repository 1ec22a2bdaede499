"""Runs of jobs, carried out on the lane `cron` of the scheduler.

work ──▶ request on lane `cron` ──▶ agent ──▶ Answer
             │ cancelled by cron (lease lost, shutdown): the run is cancelled, and waited for until it has ended
             └── every other end becomes one of cron's own errors, here and nowhere else
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import trio

from cron.errors import AgentMissing, PermanentFailure, RunStopped, RunTimedOut
from cron.run import Answer
from gateway import schedule_lines
from gateway.agent_run import AgentRun, Errand
from gateway.crew import Purse
from gateway.history import recall
from gateway.protocols import AgentError, Turn
from scheduler import End, Mode, Policy, Reason, Request
from store.records import SessionKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from cron.run import Work
    from gateway.crew import Member
    from gateway.toolbox import Toolbox
    from scheduler import Outcome, Run, Scheduler
    from store.protocols import SessionStore

CRON_LANE = "cron"


class LaneRunner:
    def __init__(self, scheduler: Scheduler, toolbox: Toolbox, sessions: SessionStore) -> None:
        self._scheduler = scheduler
        self._toolbox = toolbox
        self._sessions = sessions

    def room(self) -> int:
        lane = self._scheduler.lanes[CRON_LANE]
        return 0 if self._scheduler.closing else max(lane.limit - lane.active - lane.waiting, 0)

    async def run(self, work: Work) -> Answer:
        member = self._toolbox.crew.find(work.job.spec.agent)
        if member is None:
            raise AgentMissing(work.job.spec.agent)
        ticket = self._scheduler.schedule(self._request(work, member))
        try:
            outcome = await ticket.wait()
        except trio.Cancelled:
            ticket.cancel()
            with trio.CancelScope(shield=True):  # ends with the run, or with the scheduler's fence
                await ticket.wait()
            raise
        if outcome.end is End.DONE:
            answer: Answer = outcome.value
            return answer
        if outcome.end is End.CLOSED or outcome.reason is Reason.CLOSING:
            await trio.sleep_forever()  # the process ends: cron is about to be stopped, and gives this back at no cost
        raise without_secrets(error_of(outcome, work), self._toolbox.redact)

    def _request(self, work: Work, member: Member) -> Request:
        async def handle(run: Run) -> Answer:
            return await self._work(run, work, member)

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

    async def _work(self, run: Run, work: Work, member: Member) -> Answer:
        spec, place = work.job.spec, work.place or alone(work)
        with self._toolbox.traces.tracing(str(place), member.name, "job", run=run, id=work.run.trace) as trace:
            errand = Errand(
                session=place,
                owner=spec.owner,
                uid=f"run {work.run.id}",
                purse=Purse(member.tokens),
                environ=work.environ,
                answers_in=spec.deliver_to,
                job=work.job,
            )
            context = AgentRun(self._toolbox, run, member, errand, trace)
            history = () if work.place is None else await recall(self._sessions, place, member.window)
            reply = await member.agent.run(Turn(place, (work.prompt,), history, work.environ), context)
            text = await schedule_lines.carried_out(self._toolbox, context, reply.text)
            return Answer(text, errand.purse.spent.tokens_in, errand.purse.spent.tokens_out)


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
    if isinstance(error, AgentError) and not error.retriable:
        return PermanentFailure(str(error), **error.fields)
    if isinstance(error, Exception):
        return error
    return RuntimeError(f"the run was {outcome.end}: {error!r}")


def without_secrets(error: Exception, redact: Callable[[str], str]) -> Exception:
    """What is kept of the run and told in the chat; an error that names no secret is left as it is."""
    text = redact(str(error))
    if text == str(error):
        return error
    return PermanentFailure(text) if isinstance(error, PermanentFailure) else RuntimeError(text)


def alone(work: Work) -> SessionKey:
    """A conversation that nobody else is in."""
    return SessionKey(work.job.tenant, work.job.spec.agent, "cron", "", str(work.job.id), work.run.id)
