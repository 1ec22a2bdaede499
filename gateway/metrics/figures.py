"""What is counted as it happens, by the few things that it can be told apart by. Plain numbers, nothing that waits.

What can be read off something that lives (lanes, services, the outbox) is not counted here; `gateway.metrics.reading`
looks at it when it is asked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

from cron.outcome import ALREADY_RUNNING, MISSED, NO_WORK, SHUTDOWN, STOPPED, TENANT_DISABLED
from gateway.tools import CALLS
from store.jobs import RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cron.telling import Level, Tell
    from gateway.events import Event
    from gateway.traces import Trace
    from store.jobs import Claim
    from store.records import Incoming, Receipt

QUICK_S = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
"""Bounds for what should take milliseconds: the store, the API, the loop."""
LONG_S = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""Bounds for what takes as long as a model does."""
ANSWER_S = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""Bounds for the API, where an answer may wait for a run."""
LATE_S = (0.1, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0, 3600.0, 86_400.0)
"""Bounds for how late a job begins."""

REASONS = (MISSED, ALREADY_RUNNING, NO_WORK, TENANT_DISABLED, SHUTDOWN, STOPPED)
OTHER = "other"
ENDS = (*(state.value for state in RunState if state is not RunState.RUNNING), "given_back")


class Histogram:
    """How often something took how long."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Up to each bound, and beyond the last."""
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Spent:
    """How often something was done, and how long all of it took: what bounds would be too much for."""

    __slots__ = ("seconds", "times")

    def __init__(self) -> None:
        self.times = 0
        self.seconds = 0.0


class Histograms(dict[str, Histogram]):
    """One by each name, made when it is first needed."""

    def __init__(self, bounds: Sequence[float]) -> None:
        super().__init__()
        self.bounds = bounds

    def __missing__(self, name: str) -> Histogram:
        made = self[name] = Histogram(self.bounds)
        return made


class Figures:
    """The figures of one process, from its start."""

    def __init__(self) -> None:
        self.runs: Counter[tuple[str, str, str]] = Counter()
        """By agent, what it was a run of, and how it ended."""
        self.run_s = Histograms(LONG_S)
        self.answer_s = Histogram(LONG_S)
        self.tokens: Counter[tuple[str, str]] = Counter()
        self.model_requests: Counter[tuple[str, str]] = Counter()
        self.model_s = Histograms(LONG_S)
        self.tool_calls: Counter[tuple[str, str]] = Counter()
        self.taken_in: Counter[tuple[str, str]] = Counter()
        self.replies: Counter[tuple[str, str]] = Counter()
        self.retries: Counter[tuple[str, str]] = Counter()
        self.delivery_s = Histograms(LONG_S)
        self.cron_ends = Counter(dict.fromkeys(ENDS, 0))
        self.cron_late_s = Histogram(LATE_S)
        self.cron_skipped = Counter(dict.fromkeys((*REASONS, OTHER), 0))
        self.cron_retries = 0
        self.cron_trouble: Counter[str] = Counter()
        self.store_errors: Counter[tuple[str, str]] = Counter()
        self.store_s = Histogram(QUICK_S)
        self.verbs: dict[str, Spent] = {}
        self.requests: Counter[tuple[str, str, str]] = Counter()
        """By method, route and status."""
        self.response_s = Histograms(ANSWER_S)
        self.requests_open = 0
        self.lost_lines: dict[str, Callable[[], int]] = {}
        """By file: how many lines of it never came to the disk."""

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def run_ended(self, trace: Trace) -> None:
        """A run's trace was closed: how it went, what it asked of models and tools, what it spent."""
        took_s = trace.took_s or 0.0
        self.runs[trace.agent, trace.kind, trace.status] += 1
        self.run_s[trace.kind].add(took_s)
        for direction in ("in", "out"):
            spent = trace.facts.get(f"tokens_{direction}")
            if isinstance(spent, int) and spent:
                self.tokens[trace.agent, direction] += spent
        for span in trace.spans:
            if span.kind == "model":
                self.model_requests[span.name, span.status] += 1
                self.model_s[span.name].add(span.took_s or 0.0)
            elif span.kind == "tool":  # models ask for tools that there are not, too
                self.tool_calls[span.name if span.name in CALLS else OTHER, span.status] += 1
            elif span.kind == "queued" and trace.status == "done":
                self.answer_s.add(took_s - span.start_s)

    # ── channels ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def messages_came(self, batch: Sequence[Incoming], receipts: Sequence[Receipt]) -> None:
        """A channel has handed these in, and this became of them."""
        # By the channel itself: that of a session may be any word that somebody asks for.
        for incoming, receipt in zip(batch, receipts, strict=False):  # counting fails nobody
            self.taken_in[incoming.key.channel, "accepted" if receipt.fresh else "repeated"] += 1

    def heard(self, event: Event) -> None:
        """What the bus tells of replies."""
        about = event.data
        if event.kind in ("reply.delivered", "reply.failed"):
            channel, took_s = str(about["channel"]), about["took_s"]
            self.replies[channel, event.kind.removeprefix("reply.")] += 1
            if isinstance(took_s, float) and event.kind == "reply.delivered":
                self.delivery_s[channel].add(took_s)
        elif event.kind == "reply.resting":
            self.retries[str(about["channel"]), "rate_limited" if about["asked"] else "error"] += 1

    # ── cron ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def telling(self, tell: Tell) -> Tell:
        """The same listener, with everything that it is told counted on the way."""

        def told(event: str, *, level: Level = "info", claim: Claim | None = None, **facts: object) -> None:
            self.cron_told(event, level, facts)
            tell(event, level=level, claim=claim, **facts)

        return told

    def cron_told(self, event: str, level: Level, facts: Mapping[str, object]) -> None:
        if level in ("warning", "error"):
            self.cron_trouble[event] += 1
        elif event == "run_started":
            late_s = facts.get("lateness_s")
            if isinstance(late_s, float):
                self.cron_late_s.add(max(late_s, 0.0))
        elif event.startswith("run_"):
            self.cron_ends[event.removeprefix("run_")] += 1
        elif event == "trigger_given_back":
            self.cron_ends["given_back"] += 1
        skipped = facts.get("skipped")
        if isinstance(skipped, dict):
            for reason, count in skipped.items():
                self.cron_skipped[reason if reason in REASONS else OTHER] += count
        self.cron_retries += bool(facts.get("again_at"))
