"""What became of each run, step by step: one trace per run, one line per trace in `logs/traces.jsonl`.

    {"trace": …, "kind": "chat", "session": …, "agent": …, "at": …, "status": "done", "took_s": …, "spans": [
        {"kind": "queued" | "slot" | "model" | "tool", "name": …, "start_s": …, "took_s": …, "status": "ok"}, …]}
    {"trace": …, "kind": "deliver", "at": …, "status": "ok" | "failed", "took_s": …, more facts}

Closing is synchronous, so that a run which is cancelled closes its trace like any other; the lines are made and written
in a thread, many at once, the last ones at shutdown. A disk that is full loses traces, which is said once.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal

import orjson
import trio
from uuid_utils import uuid7

from gateway.private_file import PrivateFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path
    from types import TracebackType
    from typing import Self

SpanKind = Literal["queued", "slot", "model", "tool", "deliver"]
SpanStatus = Literal["ok", "failed", "cancelled"]

KEPT = 1_000
WAITING = 10_000
"""So many closed traces wait for the disk; what comes then is lost."""
SPANS = 500
AT_ONCE = 200
GATHER_S = 0.5
LAST_WRITE_S = 2.0


class Span:
    """One step of a run, from its making to the end of its block, or to `end`.

    It does not know its trace: two that know each other are freed by the garbage collector only, and what has been
    around for as long as a trace is beyond its reach (`gateway.collector`).
    """

    __slots__ = ("_began", "_clock", "kind", "name", "start_s", "status", "took_s")

    def __init__(self, trace: Trace, kind: SpanKind, name: str, start_s: float) -> None:
        self._clock = trace.clock
        self._began = trace.began
        self.kind = kind
        self.name = name
        self.start_s = start_s
        self.took_s: float | None = None
        self.status: SpanStatus = "ok"

    def end(self, status: SpanStatus = "ok") -> None:
        """Only the first end counts."""
        if self.took_s is None:
            self.took_s = self._clock() - self._began - self.start_s
            self.status = status

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end(ended_by(error))

    def facts(self) -> dict[str, object]:
        took_s = None if self.took_s is None else round(self.took_s, 6)
        start_s = round(self.start_s, 6)
        return {"kind": self.kind, "name": self.name, "start_s": start_s, "took_s": took_s, "status": self.status}


class Trace:
    """A run as it goes. ``facts`` are whatever else is to be known of it when it is closed."""

    __slots__ = (
        "_closed",
        "agent",
        "at",
        "began",
        "clock",
        "error",
        "facts",
        "id",
        "kind",
        "left_out",
        "session",
        "spans",
        "status",
        "took_s",
    )

    def __init__(
        self,
        id: str,
        session: str,
        agent: str,
        kind: str,
        at: datetime,
        *,
        clock: Callable[[], float] = trio.current_time,
        closed: Callable[[Trace], None] | None = None,
    ) -> None:
        self.id = id
        self.session = session
        self.agent = agent
        self.kind = kind
        self.at = at
        self.clock = clock
        self.began = clock()
        self.spans: list[Span] = []
        self.left_out = 0
        self.facts: dict[str, object] = {}
        self.status = ""
        """How it ended: done, failed, cancelled, timeout, dropped and the like; empty while it goes on."""
        self.error = ""
        self.took_s: float | None = None
        self._closed = closed

    def span(self, kind: SpanKind, name: str = "") -> Span:
        """A step begins now."""
        span = Span(self, kind, name, self.clock() - self.began)
        if self.status or len(self.spans) >= SPANS:
            self.left_out += 1
        else:
            self.spans.append(span)
        return span

    def close(self, status: str, error: str = "") -> None:
        """The run has ended; only the first time counts. Steps that have no end yet end with it."""
        if self.status:
            return
        self.status = status
        self.error = error
        self.took_s = self.clock() - self.began
        for span in self.spans:
            span.end("ok" if status == "done" else "cancelled")
        if self._closed is not None:
            self._closed(self)

    def line(self) -> dict[str, object]:
        more: dict[str, object] = {**self.facts}
        if self.error:
            more["error"] = self.error
        if self.left_out:
            more["left_out"] = self.left_out
        return {
            "trace": self.id,
            "kind": self.kind,
            "session": self.session,
            "agent": self.agent,
            "at": self.at,
            "status": self.status,
            "took_s": None if self.took_s is None else round(self.took_s, 6),
            **more,
            "spans": [span.facts() for span in self.spans],
        }


current_trace: ContextVar[Trace | None] = ContextVar("current_trace", default=None)
"""The run that this task works for; log lines carry its id."""


class Traces:
    """The closed traces: the last ones in memory, all of them in the file."""

    def __init__(
        self,
        directory: Path,
        now: Callable[[], datetime],
        *,
        clock: Callable[[], float] = trio.current_time,
        redact: Callable[[str], str] = str,
        kept: int = KEPT,
        gather_s: float = GATHER_S,
    ) -> None:
        self._file = PrivateFile(directory / "traces.jsonl")
        self._now = now
        self._clock = clock
        self._redact = redact
        self._kept = kept
        self._gather_s = gather_s
        self._recent: dict[str, Trace] = {}
        self._unwritten: deque[Trace | dict[str, object]] = deque()
        self._something = trio.Event()
        self._disk = threading.Lock()
        self.lost = 0
        """How many lines never came to the disk."""

    def start(self, session: str, agent: str, kind: str, *, id: str = "") -> Trace:
        return Trace(id or new_id(), session, agent, kind, self._now(), clock=self._clock, closed=self._take)

    def delivered(self, trace: str, *, status: SpanStatus = "ok", took_s: float = 0.0, **facts: object) -> None:
        """What the run said has reached people, or never will. The run's trace is closed by then."""
        known = self._recent.get(trace)
        if known is not None:
            span = Span(known, "deliver", str(facts.get("channel", "")), known.clock() - known.began - took_s)
            span.end(status)
            known.spans = [*known.spans, span]  # the old list may be on its way to the disk
        line = {"trace": trace, "kind": "deliver", "at": self._now(), "status": status, "took_s": round(took_s, 6)}
        self._write_soon({**line, **facts})

    def recent(self) -> Iterator[Trace]:
        """The newest first."""
        return reversed(tuple(self._recent.values()))

    def get(self, id: str) -> Trace | None:
        return self._recent.get(id)

    async def run(self) -> None:
        """Write, for ever; at the end what is left, within a moment."""
        try:
            while True:
                await self._something.wait()
                await trio.sleep(self._gather_s)
                self._something = trio.Event()
                while self._unwritten:
                    await self._write()
        finally:
            with trio.move_on_after(LAST_WRITE_S, shield=True):
                while self._unwritten:
                    await self._write()
                await trio.to_thread.run_sync(self._end, abandon_on_cancel=True)

    def _take(self, trace: Trace) -> None:
        self._recent[trace.id] = trace
        if len(self._recent) > self._kept:
            del self._recent[next(iter(self._recent))]
        self._write_soon(trace)

    def _write_soon(self, line: Trace | dict[str, object]) -> None:
        if len(self._unwritten) >= WAITING:
            self.lost += 1
            return
        self._unwritten.append(line)
        self._something.set()

    async def _write(self) -> None:
        # A disk that does not answer holds up no shutdown.
        await trio.to_thread.run_sync(self._put, abandon_on_cancel=True)

    def _put(self) -> None:
        with self._disk:  # taken out inside, so that what an abandoned thread holds comes first
            lines = [self._unwritten.popleft() for _ in range(min(AT_ONCE, len(self._unwritten)))]
            texts = [self._redact(as_json(line if isinstance(line, dict) else line.line())) for line in lines]
            dropped = self._file.dropped
            if texts:
                self._file.write("\n".join(texts))
            if self._file.dropped > dropped:
                self.lost += len(texts)

    def _end(self) -> None:
        with self._disk:
            self._file.close()


def as_json(line: dict[str, object]) -> str:
    try:
        return orjson.dumps(line, default=str, option=orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # half a character somewhere
        return json.dumps(line, default=str)


def ended_by(error: BaseException | None) -> SpanStatus:
    if error is None:
        return "ok"
    if isinstance(error, BaseExceptionGroup):
        return "failed" if error.split(trio.Cancelled)[1] else "cancelled"
    return "cancelled" if isinstance(error, trio.Cancelled) else "failed"


def new_id() -> str:
    return uuid7().hex
