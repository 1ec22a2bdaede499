"""The tools of agents, carried out. Whatever is wrong with a call becomes a result that the model can read.

A helper has a session of its own, runs on its lane, and goes when the run that asked for it goes. What a job may be is
checked by the cron room; that an agent touches only its own jobs, and uses only its own tools, is checked here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from cron import report
from cron.durations import parse_duration
from cron.errors import CronError, JobNotFound
from cron.jobs import Wish
from cron.phrases import parse_phrase
from gateway.agent_run import AgentRun
from gateway.agents.workspace import WorkspaceError
from gateway.persist import persist
from gateway.plain import one_line
from gateway.protocols import ToolResult, Turn
from gateway.tools import (
    CALLS,
    MOST_RUNS,
    BadCall,
    Call,
    Delegate,
    ReadFile,
    Schedule,
    ScheduleHint,
    ScheduleHistory,
    SpawnSubagent,
    WriteFile,
    described,
    read_call,
)
from scheduler import End, Policy, Request, WaitRefused
from store.jobs import RunState
from store.protocols import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime

    from gateway.agent_run import Errand
    from gateway.agents.workspace import Workspace
    from gateway.crew import Crew, Member
    from gateway.protocols import Tool
    from gateway.timetable import Timetable
    from gateway.tracing import Tracer
    from scheduler import Outcome, Run
    from store.jobs import Job

    Act = Callable[["Toolbox", AgentRun, Any], Awaitable[str]]

LONGEST_HISTORY = 60_000
HELPERS_WAITING = 1_000


class Toolbox:
    def __init__(self, crew: Crew, traces: Tracer, run_timeout_s: float, redact: Callable[[str], str] = str) -> None:
        self.crew = crew
        self.traces = traces
        self.redact = redact
        """Takes secrets out of what is told about failures, to people and models."""
        self.timetable: Timetable | None = None
        """Put in once it is there: its runs use these tools too."""
        self._run_timeout_s = run_timeout_s

    def offered(self, member: Member, depth: int, errand: Errand) -> tuple[Tool, ...]:
        """The tools that this agent may call here."""
        return tuple(described(name) for name in CALLS if self._why_not(name, member, depth) is None)

    async def call(self, run: AgentRun, name: str, arguments: Mapping[str, object]) -> ToolResult:
        try:
            call = read_call(name, arguments)
            if (reason := self._why_not(name, run.member, run.run.depth)) is not None:
                raise BadCall(reason)
            return ToolResult(await ACTS[type(call)](self, run, call))
        except (BadCall, WorkspaceError, CronError, StoreError, WaitRefused) as error:
            return ToolResult(self.redact(str(error)), ok=False)

    def _why_not(self, name: str, member: Member, depth: int) -> str | None:
        if member.tools is not None and name not in member.tools:
            return f"the agent {member.name} may not use {name}"
        if name in (SpawnSubagent.tool, Delegate.tool) and depth >= member.depth:
            return f"helpers may not have helpers more than {member.depth} deep: do it yourself"
        if name == Delegate.tool and not self.others(member):
            return "there is no other agent to hand work to"
        if name in (Schedule.tool, ScheduleHint.tool, ScheduleHistory.tool) and self.timetable is None:
            return "nothing can be scheduled here: this gateway runs without cron"
        if name in (ReadFile.tool, WriteFile.tool) and member.workspace is None:
            return "there is no workspace here"
        return None

    def others(self, member: Member) -> tuple[str, ...]:
        """The agents that this one may hand work to."""
        return tuple(
            name
            for name in self.crew.names
            if name != member.name and (member.delegates is None or name in member.delegates)
        )

    # ── helpers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def spawn(self, run: AgentRun, call: SpawnSubagent) -> str:
        return await self._help(run, run.member, call.task, lane="subagent")

    async def delegate(self, run: AgentRun, call: Delegate) -> str:
        if call.agent not in self.others(run.member):
            raise BadCall(
                f"{run.member.name} cannot hand work to {call.agent!r}, only to {', '.join(self.others(run.member))}"
            )
        return await self._help(run, self.crew.member(call.agent), call.task, lane="delegate")

    async def _help(self, asking: AgentRun, member: Member, task: str, lane: str) -> str:
        errand = asking.errand
        errand.helpers += 1
        key = f"sub:{asking.run.id}:{errand.helpers}"
        timeout_s = member.run_timeout_s or self._run_timeout_s

        async def work(run: Run) -> str:
            with self.traces.tracing(key, member.name, lane, parent=asking.trace, run=run) as trace:
                context = AgentRun(self, run, member, errand, trace)
                place = replace(errand.session, agent=member.name)
                turn = Turn(place, (task,), environ=errand.environ, depth=run.depth)
                return (await member.agent.run(turn, context)).text

        policy = Policy(debounce_s=0, cap=HELPERS_WAITING, timeout_s=timeout_s)
        request = Request(key, work, lane=lane, tenant=errand.session.tenant, sender=asking.run.owner, policy=policy)
        ticket = asking.run.schedule(request)
        try:
            outcome = await ticket.wait()
        finally:
            ticket.cancel()  # if nobody waits for it any more, it need not go on
        if outcome.end is End.DONE:
            return str(outcome.value)
        raise BadCall(f"the helper gave no answer: {why(outcome, timeout_s)}")

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def schedule(self, run: AgentRun, call: Schedule) -> str:
        job = await self.make_job(run.errand, run.member, call.when, call.message, call.name)
        return report.created(job, self._cron.now())

    async def make_job(self, errand: Errand, member: Member, when: str, message: str, name: str = "") -> Job:
        """A job that an agent asks for; asked for again after a crash, it is the same job."""
        errand.made += 1
        return await self._cron.jobs.create(
            Wish(
                tenant=errand.session.tenant,
                agent=member.name,
                message=message,
                when=when,
                name=name,
                zone=await self._cron.zone_of(errand.answers_in),
                deliver_to=errand.answers_in,
                owner=errand.owner,
                made_by_agent=True,
                inside_run=errand.job is not None,
                uid=str(uuid5(NAMESPACE_URL, repr(("goclaw", errand.uid, errand.made, when, message)))),
            )
        )

    async def hint(self, run: AgentRun, call: ScheduleHint) -> str:
        job = await self.own_job(run.errand, run.member, call.job)
        if call.interval is None and call.next_run is None and call.pause is None:
            raise BadCall("say at least one of interval, next_run and pause")
        jobs = self._cron.jobs
        if call.interval is not None or call.next_run is not None:
            job = await jobs.hint(
                job.tenant,
                job.id,
                interval=None if call.interval is None else parse_duration(call.interval),
                next_at=None if call.next_run is None else self._moment(call.next_run, job),
                lasts=parse_duration(call.lasts),
                reason=call.reason,
            )
        if call.pause is not None:
            job = await jobs.pause(job.tenant, job.id, call.reason, until=self._moment(call.pause, job))
        return f"Noted for job #{job.id}; it counts for its next run."

    async def history(self, run: AgentRun, call: ScheduleHistory) -> str:
        job = await self.own_job(run.errand, run.member, call.job)
        cron = self._cron.store.cron
        lines, room = [], LONGEST_HISTORY
        runs = await persist(partial(cron.runs, job.tenant, job=job.id, limit=call.limit + MOST_RUNS))
        ended = [one for one in runs if one.state is not RunState.RUNNING]
        for one in ended[: call.limit]:
            said = await persist(partial(cron.output, job.tenant, one.id)) or one.summary or one.error or "(nothing)"
            lines.append(
                f"## {one.started_at:%Y-%m-%d %H:%M:%S} UTC, {one.state}, attempt {one.attempt}\n{said[:room]}"
            )
            room -= len(said)
            if room <= 0:
                lines.append("(older runs are left out: this is as much as fits)")
                break
        return "\n\n".join(lines) or f"Job #{job.id} has not run yet."

    async def own_job(self, errand: Errand, member: Member, number: int | None) -> Job:
        """Another agent's job is not there, and neither is another tenant's."""
        if number is None and errand.job is None:
            raise BadCall("say which job: this is not a run of one")
        wanted = number if number is not None else errand.job.id if errand.job is not None else 0
        job = await self._cron.jobs.get(errand.session.tenant, wanted)
        if job.spec.agent != member.name:
            raise JobNotFound(job.tenant, wanted)
        return job

    @property
    def _cron(self) -> Timetable:
        if self.timetable is None:
            raise BadCall("nothing can be scheduled here: this gateway runs without cron")
        return self.timetable

    def _moment(self, phrase: str, job: Job) -> datetime:
        now = self._cron.now()
        moment = parse_phrase(phrase, now=now, zone=job.spec.timing.zone).next_after(now)
        if moment is None:
            raise BadCall(f"{phrase!r} never comes")
        return moment

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def read_file(self, run: AgentRun, call: ReadFile) -> str:
        return await self._workspace(run).read_file(call.path)

    async def write_file(self, run: AgentRun, call: WriteFile) -> str:
        size = await self._workspace(run).write_file(call.path, call.content)
        return f"Wrote {size} bytes to {call.path}."

    def _workspace(self, run: AgentRun) -> Workspace:
        if run.member.workspace is None:
            raise BadCall("there is no workspace here")
        return run.member.workspace.of(run.errand.session.tenant)


ACTS: dict[type[Call], Act] = {
    SpawnSubagent: Toolbox.spawn,
    Delegate: Toolbox.delegate,
    Schedule: Toolbox.schedule,
    ScheduleHint: Toolbox.hint,
    ScheduleHistory: Toolbox.history,
    ReadFile: Toolbox.read_file,
    WriteFile: Toolbox.write_file,
}


def why(outcome: Outcome, timeout_s: float) -> str:
    """Why a helper has not answered."""
    if outcome.end is End.TIMED_OUT:
        return f"it took longer than {timeout_s:g} s"
    if outcome.end is End.FAILED:
        return one_line(outcome.error)
    return f"it was {outcome.end}"
