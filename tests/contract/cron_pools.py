"""What the histories of jobs are made of: few jobs, agents and spans, and decisions that are only data."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from store.jobs import Bounds, JobStatus, NewJob, RunState, Timing, TriggerKind, TriggerState
from tests.contract.cron_rows import AT_NOON, HOUR, HOURLY, MINUTE, NOW, WEBHOOK, Plan, new
from tests.contract.pools import SESSIONS, texts

if TYPE_CHECKING:
    from store.records import SessionKey

TARGETS = {session.tenant: session for session in reversed(SESSIONS)}

job_tenants = st.sampled_from(["default", "default", "t", "t", "u"])
job_numbers = st.sampled_from([1, 1, 1, 2, 2, 3, 4])
agents = st.sampled_from(["main", "main", "other"])
timings = st.sampled_from([HOURLY, HOURLY, AT_NOON, WEBHOOK, Timing("every", every=timedelta(microseconds=7))])
bounds = st.sampled_from([*[Bounds()] * 4, Bounds(3, None), Bounds(None, 2), Bounds(0, 0)])
soon = st.sampled_from([NOW, NOW, timedelta(seconds=30), HOUR, timedelta(days=3)])
lease_spans = st.sampled_from([timedelta(seconds=30), HOUR, HOUR, timedelta(days=10)])
rooms = st.sampled_from([None, None, None, {}, {"main": 0}, {"main": 1, "other": 2}, {"other": -1}])
run_ends = st.sampled_from(
    [RunState.SUCCEEDED, RunState.SUCCEEDED, RunState.FAILED, RunState.TIMEOUT, RunState.CANCELLED]
)
outputs = st.sampled_from(["", "fine", "a\x00b", "🦀" * 1024, "x🦀" * 1024, "y" * 9000])
fire_keys = st.sampled_from([None, None, "k", "k", "\x00", ""])
fire_kinds = st.sampled_from([TriggerKind.MANUAL, TriggerKind.MANUAL, TriggerKind.WEBHOOK])
ended_names = st.sampled_from(["own", "own", "own", "own", "none", "unknown"])

usual_plans = st.builds(
    lambda after, end: Plan("n", after, end=end, note="answer", said="answer", news="run.completed"),
    soon,
    st.sampled_from([TriggerState.COMPLETED, TriggerState.COMPLETED, TriggerState.FAILED, TriggerState.SKIPPED]),
)
odd_plans = st.builds(
    Plan,
    next=st.sampled_from(["n", "n", ""]),
    after=soon,
    kind=st.sampled_from([TriggerKind.SCHEDULE, TriggerKind.SCHEDULE, TriggerKind.CATCH_UP]),
    end=st.sampled_from([None, TriggerState.COMPLETED, TriggerState.FAILED, TriggerState.SKIPPED]),
    again=st.sampled_from([None, None, NOW, MINUTE]),
    counts=st.booleans(),
    reason=texts,
    status=st.sampled_from([*[None] * 6, *JobStatus]),
    agent=st.sampled_from(["", "", "", "main", "other"]),
    withdraw=st.booleans(),
    drop_others=st.sampled_from(["", "", "", "enough"]),
    stretch=st.sampled_from(["", "", "s"]),
    note=st.sampled_from(["", "", "answer"]),
    said=st.sampled_from(["", "", "a\x00b"]),
    news=st.sampled_from([None, "run.failed", "run.skipped"]),
    remove=st.sampled_from([False] * 12 + [True]),
    nothing=st.sampled_from([False] * 6 + [True]),
)
plans = usual_plans | odd_plans
retries = st.builds(
    lambda again, counts: Plan(end=TriggerState.PENDING, again=again, counts=counts), soon, st.booleans()
)


def target(tenant: str, wanted: bool) -> SessionKey | None:
    return TARGETS[tenant] if wanted else None


def wish(uid: str, tenant: str, agent: str, timing: Timing, message: str, answers: bool) -> NewJob:
    return replace(
        new(uid, tenant=tenant, agent=agent, timing=timing, message=message), deliver_to=target(tenant, answers)
    )


wishes = st.builds(
    wish,
    st.sampled_from([*"abcdefgh"]),
    job_tenants,
    agents,
    timings,
    st.sampled_from(["look", "look", "a\x00b", "🦀 \ue000\ue002", ""]),
    st.booleans(),
)
