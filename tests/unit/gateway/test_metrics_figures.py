"""What is counted as it happens: into which bounds, under which names, and that names stay few."""

from __future__ import annotations

import pytest
import trio

from gateway.clock import utc_now
from gateway.events import Bus
from gateway.metrics.figures import OTHER, QUICK_S, Figures, Histogram
from gateway.metrics.measured import measured
from gateway.protocols import ChannelError, Usage
from gateway.traces import Trace
from gateway.tracing import Tracer
from store.memory import MemoryStore
from store.protocols import RuleBroken, StoreUnavailable
from store.records import DEFAULT_TENANT, Note, Reply, SessionKey, Tenant

HERE = SessionKey("default", "main", "telegram", "bot", "a secret chat")


def test_a_value_counts_up_to_the_first_bound_that_holds_it() -> None:
    """A bound holds what is equal to it; what is beyond the last one counts all the same."""
    some = Histogram((0.1, 1.0))
    for value in (0.0, 0.1, 0.11, 1.0, 7.0):
        some.add(value)
    assert some.counts == [2, 2, 1]
    assert some.total == pytest.approx(8.21)


def trace_of(now: float = 0.0) -> Trace:
    return Trace("t", "default:main", "main", "message", utc_now(), clock=lambda: now)


def test_a_run_is_counted_with_all_that_it_did() -> None:
    """How it ended, tokens, models, tools, and how long its person waited; a tool that is not there has no name."""
    figures, trace = Figures(), trace_of()
    with trace.span("model", "large"), trace.span("tool", "delegate"):
        pass
    with trace.span("tool", "rm -rf / and other words of a model"):
        pass
    trace.facts.update(tokens_in=120, tokens_out=8)
    trace.close("done")
    figures.run_ended(trace)
    assert figures.runs == {("main", "message", "done"): 1}
    assert figures.tokens == {("main", "in"): 120, ("main", "out"): 8}
    assert figures.model_requests == {("large", "ok"): 1}
    assert figures.tool_calls == {("delegate", "ok"): 1, (OTHER, "ok"): 1}
    assert sum(figures.run_s["message"].counts) == 1


def reply() -> Reply:
    return Reply(1, Note(HERE, "a secret text"), ())


def test_replies_are_counted_by_channel() -> None:
    """Delivered, failed, resting because the channel asked for it or because of an error."""
    figures, bus = Figures(), Bus(utc_now)
    bus.watch(figures.heard)
    tracer = Tracer(utc_now, bus=bus)
    tracer.delivered(reply(), "receipt", 0.2)
    tracer.failed(reply(), "gone", 0.1)
    tracer.resting(reply(), ChannelError("slow down", retry_after_s=3), 3)
    tracer.resting(reply(), ChannelError("not now"), 1)
    tracer.resting(reply(), ValueError("a mistake"), 1)
    assert figures.replies == {("telegram", "delivered"): 1, ("telegram", "failed"): 1}
    assert figures.retries == {("telegram", "rate_limited"): 1, ("telegram", "error"): 2}
    assert sum(figures.delivery_s["telegram"].counts) == 1


def test_cron_is_counted_and_told_on() -> None:
    """Whoever listened hears everything; reasons that nobody knows are one."""
    figures, heard = Figures(), list[str]()

    def listen(event: str, **facts: object) -> None:
        heard.append(event)

    tell = figures.telling(listen)
    tell("run_started", lateness_s=0.3)
    tell("run_failed", again_at="2030-01-01T00:00:00Z")
    tell("run_succeeded", skipped={"already_running": 3})
    tell("trigger_skipped", skipped={"missed": 2, "a new reason": 1})
    tell("lease_lost", level="warning")
    assert heard == ["run_started", "run_failed", "run_succeeded", "trigger_skipped", "lease_lost"]
    assert +figures.cron_ends == {"failed": 1, "succeeded": 1}
    assert +figures.cron_skipped == {"already_running": 3, "missed": 2, OTHER: 1}
    assert figures.cron_retries == 1
    assert figures.cron_trouble == {"lease_lost": 1}
    assert sum(figures.cron_late_s.counts) == 1


class Troubled(MemoryStore):
    async def tenant(self, tenant: str) -> Tenant | None:
        raise StoreUnavailable("not now")


async def test_the_store_is_the_same_but_measured(autojump_clock: object) -> None:
    """Answers and errors pass unchanged, and every verb of every view is counted, its failures too."""
    figures, inner = Figures(), Troubled(utc_now)
    store = measured(inner, figures)
    assert await store.workers() == ()
    with pytest.raises(StoreUnavailable, match="not now"):
        await store.tenant(DEFAULT_TENANT)
    with pytest.raises(RuleBroken):
        await store.delete_tenant(DEFAULT_TENANT)
    assert (await store.cron.counts(DEFAULT_TENANT)).active == 0
    assert await store.messages(None).accept([]) == ()
    async with store.listen() as words:
        assert await anext(words) == "poll"
    assert {verb for verb, spent in figures.verbs.items() if spent.times} == {
        "workers",
        "tenant",
        "delete_tenant",
        "counts",
        "accept",
    }
    assert sum(figures.store_s.counts) == 5
    assert figures.store_errors == {("tenant", "store-unavailable"): 1, ("delete_tenant", "rule-broken"): 1}


async def test_a_verb_that_is_cancelled_is_counted_and_ends(autojump_clock: object) -> None:
    """Measuring holds nobody up."""

    class Slow(MemoryStore):
        async def tenant(self, tenant: str) -> Tenant | None:
            await trio.sleep_forever()
            return None

    figures = Figures()
    with trio.move_on_after(3) as scope:
        await measured(Slow(utc_now), figures).tenant(DEFAULT_TENANT)
    assert scope.cancelled_caught
    assert figures.verbs["tenant"].seconds == pytest.approx(3)
    assert QUICK_S[-1] > 3


def test_tokens_that_nobody_counted_are_none() -> None:
    """A run without a model adds no series."""
    figures, trace = Figures(), trace_of()
    trace.close("failed", "it broke")
    figures.run_ended(trace)
    assert figures.tokens == {}
    assert Usage().total == 0
