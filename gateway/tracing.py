"""Traces of runs: opened with the run, closed however it ends, and found again when its answer is delivered.

with tracer.tracing(...) as trace:      queued (how long it waited), slot (how long it ran), model and tool inside
    …                                   cancelled, timed out, failed: closed with that, without waiting for anything
tracer.delivered(reply, …)              the answer has reached people

Whoever listens to the bus hears of each of these as it happens: run.started, run.ended, reply.delivered, reply.failed,
reply.resting.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gateway.plain import one_line
from gateway.protocols import ChannelError
from gateway.traces import Span, Trace, current_trace, new_id
from scheduler import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from gateway.events import Bus
    from gateway.traces import SpanStatus, Traces
    from scheduler import Run
    from store.records import Reply

ANSWERED = 10_000
"""So many messages whose answers are on their way are remembered with their traces."""


class Tracer:
    """Without ``traces`` nothing is kept: runs have ids all the same. Without a ``bus`` nobody is told.

    ``ended`` hears of every trace that is closed; it must be quick, and must not fail.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        traces: Traces | None = None,
        bus: Bus | None = None,
        ended: Callable[[Trace], None] = lambda trace: None,
        *,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._now = now
        self._redact = redact
        self.traces = traces
        self._bus = bus
        self._ended = ended
        self._answering: dict[int, tuple[str, str]] = {}

    @contextmanager
    def tracing(
        self,
        session: str,
        agent: str,
        kind: str,
        *,
        run: Run,
        id: str = "",
        since: datetime | None = None,
        parent: Trace | None = None,
    ) -> Iterator[Trace]:
        """Around a run on its slot. ``since`` is when it was asked for, ``parent`` the run that asked."""
        if self.traces is None:
            trace = Trace(id or new_id(), session, agent, kind, self._now())
        else:
            trace = self.traces.start(session, agent, kind, id=id)
        trace.facts["lane"] = run.lane
        if parent is not None:
            trace.facts["parent"] = parent.id
        if since is not None:
            waited(trace, (self._now() - since).total_seconds())
        slot = trace.span("slot", run.lane)
        before = current_trace.set(trace)
        self._tell("run.started", run, trace)
        try:
            yield trace
        except BaseException as error:
            status = status_of(run)
            slot.end("failed" if status == "failed" else "cancelled")
            trace.close(status, "" if status == "cancelled" else self._redact(one_line(error)))
            raise
        else:
            slot.end()
            trace.close("done" if run.reason is None else status_of(run))
        finally:
            current_trace.reset(before)
            self._ended(trace)
            self._tell("run.ended", run, trace, status=trace.status, error=trace.error, took_s=trace.took_s)

    def _tell(self, kind: str, run: Run, trace: Trace, **data: object) -> None:
        if self._bus is not None:
            about = {"agent": trace.agent, "of": trace.kind, "lane": run.lane, **data}
            tenant = run.request.tenant
            self._bus.publish(kind, tenant=tenant, session=trace.session, run=str(run.id), trace=trace.id, data=about)

    def answering(self, messages: Sequence[int], turn: str, trace: Trace) -> None:
        """What is said about these messages belongs to that turn and trace."""
        for message in messages:
            self._answering[message] = (turn, trace.id)
        while len(self._answering) > ANSWERED:
            del self._answering[next(iter(self._answering))]

    def turn_of(self, answers: Sequence[int]) -> str:
        return self._answering[answers[0]][0] if answers and answers[0] in self._answering else ""

    def delivered(self, reply: Reply, receipt: str, took_s: float) -> None:
        self._told("reply.delivered", reply, "ok", took_s, receipt=receipt)

    def failed(self, reply: Reply, why: str, took_s: float) -> None:
        self._told("reply.failed", reply, "failed", took_s, error=why)

    def resting(self, reply: Reply, error: Exception, rest_s: float) -> None:
        """It could not go now; ``asked`` tells whether the channel has said how long it wants to be left alone."""
        if self._bus is not None:
            to, asked = reply.note.session, isinstance(error, ChannelError) and error.retry_after_s is not None
            about = {"reply": reply.id, "channel": to.channel, "rest_s": rest_s, "asked": asked}
            self._bus.publish("reply.resting", tenant=to.tenant, session=str(to), data=about)

    def _told(self, kind: str, reply: Reply, status: SpanStatus, took_s: float, **facts: str) -> None:
        known = [self._answering.pop(message) for message in reply.answers if message in self._answering]
        to, trace = reply.note.session, known[0][1] if known else ""
        if trace and self.traces is not None:
            self.traces.delivered(trace, status=status, took_s=took_s, channel=to.channel, reply=reply.id, **facts)
        if self._bus is not None:
            about = {"reply": reply.id, "channel": to.channel, "took_s": took_s, **facts}
            self._bus.publish(kind, tenant=to.tenant, session=str(to), trace=trace, data=about)


def waited(trace: Trace, seconds: float) -> None:
    """The time before the trace began, as its first span."""
    span = Span(trace, "queued", "", -max(seconds, 0.0))
    span.end()
    trace.spans.append(span)


def status_of(run: Run) -> str:
    if run.reason is None:
        return "failed"
    return "timeout" if run.reason is Reason.TIMEOUT else "cancelled"
