"""Steps: what a decision about a job means for its rows, worked out without a store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.cron_steps import (
    TRUNCATED,
    carry_out,
    check_change,
    conclude_run,
    fated,
    is_current,
    is_own,
    leased,
    new_job,
    settle_one,
    shortened,
    started,
    wants_trigger,
)
from store.jobs import (
    Change,
    Claim,
    Delivery,
    Ended,
    Fate,
    Hints,
    Job,
    JobStatus,
    NewJob,
    News,
    Next,
    RunState,
    Start,
    Stretch,
    Timing,
    Trigger,
    TriggerKind,
    TriggerState,
)
from store.protocols import RuleBroken
from store.records import Note, Role, Said, SessionKey

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
HERE = SessionKey("default", "main", "fake", "bot", "here")
HALF = "\ud83d"
SPEC = NewJob("u", "default", "main", "look", Timing("every", every=HOUR))
JOB = new_job(1, SPEC, NOW - HOUR)
PLAN = Next("n", NOW + HOUR, NOW + HOUR, "baseline-interval")

states = st.sampled_from([TriggerState.PENDING, TriggerState.EXECUTING])
kinds = st.sampled_from(TriggerKind)
ends = st.sampled_from([TriggerState.COMPLETED, TriggerState.FAILED, TriggerState.SKIPPED])
fates = st.none() | st.builds(Fate, ends, st.just("why"), st.none() | st.just(NOW + HOUR), st.booleans())


def open_trigger(
    name: str, kind: TriggerKind = TriggerKind.SCHEDULE, state: TriggerState = TriggerState.PENDING
) -> Trigger:
    until = NOW + HOUR if state is TriggerState.EXECUTING else None
    return Trigger(name, "default", 1, "main", kind, NOW, NOW, NOW, state, leased_until=until, attempt=1)


EXECUTING = open_trigger("e", state=TriggerState.EXECUTING)


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Trigger], Trigger | None]:
    """The open triggers that a job can have: one planned at most, one executing at most."""
    planned = draw(st.booleans())
    others = draw(st.integers(min_value=0, max_value=3))
    found = [open_trigger("planned")] if planned else []
    found += [open_trigger(f"f{number}", TriggerKind.MANUAL) for number in range(others)]
    if not found or not draw(st.booleans()):
        return found, None
    place = draw(st.integers(min_value=0, max_value=len(found) - 1))
    found[place] = leased(found[place], "w", NOW + HOUR)
    return found, found[place]


changes = st.builds(
    Change,
    st.just(JOB) | st.just(replace(JOB, spec=replace(SPEC, agent="other"))),
    fate=fates,
    withdraw=st.booleans(),
    drop_others=st.sampled_from(["", "enough"]),
    next=st.none() | st.just(PLAN),
    stretches=st.just(()) | st.just((Stretch("s", NOW - HOUR, NOW, 2, "missed"),)),
)


@given(situations(), changes, st.booleans())
def test_there_is_never_more_than_one_open_plan(
    situation: tuple[list[Trigger], Trigger | None], change: Change, settling: bool
) -> None:
    """Whatever is decided, the job has one open planned trigger at most, and its next time is that one's. (P9)"""
    open_, executing = situation
    rows = carry_out(change, open_, executing if settling else None, NOW)
    after = {one.id: one for one in open_}
    after |= {one.id: one for one in rows.triggers}
    for one in rows.withdrawn:
        assert after.pop(one.id).state is TriggerState.PENDING
    planned = [one for one in after.values() if one.kind.planned and one.state.open]
    assert len(planned) <= 1
    (job,) = rows.jobs
    assert (job.next_at, job.next_source) == ((planned[0].due_at, planned[0].source) if planned else (None, None))
    assert job.updated_at == NOW
    assert all(one.agent == change.job.spec.agent for one in after.values() if one.state.open)


@given(situations(), changes)
def test_what_executes_ends_only_by_its_own_claim(
    situation: tuple[list[Trigger], Trigger | None], change: Change
) -> None:
    """A change of the job leaves it executing under its token. (P4)"""
    open_, executing = situation
    rows = carry_out(change, open_, None, NOW)
    changed = {one.id: one for one in rows.triggers}
    assert executing not in rows.withdrawn
    if executing is not None:
        found = changed.get(executing.id, executing)
        assert replace(found, agent="main") == executing


@given(situations(), changes)
def test_what_ends_is_written_before_what_opens(
    situation: tuple[list[Trigger], Trigger | None], change: Change
) -> None:
    """So that a store that looks at each row never sees two open plans."""
    open_, executing = situation
    order = [one.state.open for one in carry_out(change, open_, executing, NOW).triggers]
    assert order == sorted(order)


@given(situations(), changes)
def test_only_what_changed_is_written(situation: tuple[list[Trigger], Trigger | None], change: Change) -> None:
    """Every row once, and none that stayed as it was."""
    open_, executing = situation
    rows = carry_out(change, open_, executing, NOW)
    names = [one.id for one in (*rows.triggers, *rows.withdrawn)]
    assert len(names) == len(set(names))
    assert not [one for one in rows.triggers if one in open_]


def test_a_change_of_nothing_writes_only_the_job() -> None:
    """No trigger moves."""
    rows = carry_out(Change(JOB), [open_trigger("a")], None, NOW)
    assert (rows.triggers, rows.withdrawn) == ([], [])
    assert rows.jobs == [replace(JOB, next_at=NOW, updated_at=NOW)]


def test_a_fate_goes_before_a_withdrawal() -> None:
    """What has a fate ends with a reason; it is not withdrawn without a trace. (P5)"""
    fate = Fate(TriggerState.SKIPPED, "missed")
    rows = carry_out(Change(JOB, fate=fate, withdraw=True), [open_trigger("a")], None, NOW)
    assert rows.withdrawn == []
    assert [(one.state, one.reason) for one in rows.triggers] == [(TriggerState.SKIPPED, "missed")]


def test_a_removed_job_writes_no_triggers() -> None:
    """It goes with all of them; what is told of it is told."""
    news = News("run.completed", "default", 1, "r")
    rows = carry_out(Change(JOB, remove=True, next=PLAN, news=(news,)), [EXECUTING], EXECUTING, NOW)
    assert (rows.removed, rows.jobs, rows.triggers, rows.news) == ([("default", 1)], [], [], [news])


def test_words_go_to_the_session_of_the_job() -> None:
    """And nowhere without one. (37)"""
    said = (Said(Role.ASSISTANT, "hi"),)
    there = replace(JOB, spec=replace(SPEC, deliver_to=HERE))
    assert carry_out(Change(JOB, said=said), [], None, NOW).said == []
    assert carry_out(Change(there, said=said), [], None, NOW).said == [(HERE, said)]


# ── single rows ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("attempt", "counts", "left"), [(2, True, 2), (2, False, 1), (0, False, 0)])
def test_an_attempt_counts_or_not(attempt: int, counts: bool, left: int) -> None:
    """Ended or waiting; there are never fewer than none."""
    trigger = replace(EXECUTING, attempt=attempt)
    for again in (None, NOW):
        fate = Fate(TriggerState.FAILED, again_at=again, counts=counts)
        assert fated(trigger, fate, NOW).attempt == left


def test_what_waits_again_has_no_owner() -> None:
    """Its lease is over, its token stays: the next claim has a higher one."""
    again = fated(leased(EXECUTING, "w", NOW + HOUR), Fate(TriggerState.FAILED, "x", NOW + HOUR), NOW)
    assert (again.state, again.owner, again.leased_until, again.token) == (TriggerState.PENDING, "", None, 1)
    assert (again.claim_at, again.ended_at, again.slot) == (NOW + HOUR, None, NOW)
    assert leased(again, "w", NOW).token == 2


def test_a_start_is_never_early() -> None:
    """However the clocks of two machines differ, nothing was late by less than nothing."""
    trigger = replace(EXECUTING, due_at=NOW + HOUR, owner="w")
    claim = Claim(trigger, JOB, NOW)
    again, run, news = started(Start(claim, "r"), trigger, NOW)
    assert (again.attempt, run.attempt, run.lateness) == (2, 2, timedelta(0))
    assert (news.kind, news.run) == ("run.started", "r")


@pytest.mark.parametrize("state", TriggerState)
def test_whose_claim_it_is(state: TriggerState) -> None:
    """The token decides; settled it is still its own, but no longer current. (T19)"""
    claim = Claim(EXECUTING, JOB, NOW)
    found = replace(EXECUTING, state=state)
    assert is_own(claim, found)
    assert is_current(claim, found) == (state is TriggerState.EXECUTING)
    for other in (None, replace(found, token=found.token + 1)):
        assert not is_own(claim, other)
        assert not is_current(claim, other)


@pytest.mark.parametrize("status", JobStatus)
@pytest.mark.parametrize("kind", ["at", "every", "cron", "webhook"])
def test_who_wants_a_trigger(status: JobStatus, kind: str) -> None:
    """Active jobs that fire by themselves. (P9)"""
    timing = Timing(kind)  # type: ignore[arg-type]
    job = replace(JOB, status=status, spec=replace(SPEC, timing=timing))
    assert wants_trigger(job) == (status is JobStatus.ACTIVE and kind != "webhook")


@given(st.text(max_size=60), st.integers(min_value=len(TRUNCATED.encode()), max_value=80))
def test_a_shortened_text_has_whole_characters(text: str, most: int) -> None:
    """Within so many bytes, the beginning of what was said, marked if something is missing. (A21)"""
    short = shortened(text, most)
    assert len(short.encode()) <= most
    assert (short == text) == (len(text.encode()) <= most)
    if short != text:
        assert short.endswith(TRUNCATED)
        assert text.startswith(short.removesuffix(TRUNCATED))
        assert len(short.encode()) > most - 4


def test_a_run_waits_for_its_own_note() -> None:
    """Not for a note that another run or nobody says. (37)"""
    _, run, _ = started(Start(Claim(EXECUTING, JOB, NOW), "r"), EXECUTING, NOW)
    ended = Ended(Claim(EXECUTING, JOB, NOW), "r", state=RunState.SUCCEEDED, output="x" * 5000)
    for name, expected in (("r", Delivery.WAITING), ("", Delivery.NONE), ("other", Delivery.NONE)):
        final, output = conclude_run(run, ended, Change(JOB, notes=(Note(HERE, "a", run=name),)), NOW)
        assert (final.delivery, output) == (expected, "x" * 5000)


def test_an_ended_run_is_not_ended_again() -> None:
    """Whatever a second settle says of it. (P4)"""
    _, run, _ = started(Start(Claim(EXECUTING, JOB, NOW), "r"), EXECUTING, NOW)
    ended = Ended(Claim(EXECUTING, JOB, NOW), "r", state=RunState.SUCCEEDED)
    over = replace(run, state=RunState.FAILED, ended_at=NOW)
    assert settle_one(ended, Change(JOB), [EXECUTING], EXECUTING, over, NOW).runs == []
    assert settle_one(ended, Change(JOB), [EXECUTING], EXECUTING, None, NOW).runs == []
    assert len(settle_one(ended, Change(JOB), [EXECUTING], EXECUTING, run, NOW).runs) == 1


# ── rules ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def spec(job: Job, **fields: object) -> Job:
    return replace(job, spec=replace(job.spec, **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        Change(spec(JOB, message="")),
        Change(spec(JOB, agent=HALF)),
        Change(spec(JOB, deliver_to=replace(HERE, tenant="t"))),
        Change(replace(JOB, reason=HALF)),
        Change(replace(JOB, last_run=HALF)),
        Change(replace(JOB, hints=Hints(reason=HALF))),
        Change(JOB, fate=Fate(TriggerState.SKIPPED, HALF)),
        Change(JOB, drop_others=HALF),
        Change(JOB, next=replace(PLAN, id=HALF)),
        Change(JOB, next=replace(PLAN, trace=HALF)),
        Change(JOB, stretches=(Stretch(HALF, NOW, NOW, 1, ""),)),
        Change(JOB, stretches=(Stretch("s", NOW, NOW, 1, HALF),)),
        Change(JOB, notes=(Note(HERE, HALF),)),
        Change(JOB, notes=(Note(HERE, "", run=HALF),)),
        Change(JOB, notes=(Note(replace(HERE, chat=HALF), ""),)),
        Change(JOB, notes=(Note(replace(HERE, tenant="t"), ""),)),
        Change(JOB, said=(Said(Role.USER, HALF),)),
        Change(JOB, said=(Said(Role.USER, "", {"x": float("nan")}),)),
        Change(JOB, said=(Said(Role.USER, "", {"x": HALF}),)),
        Change(JOB, news=(News("run.failed", "default", 1, HALF),)),
        Change(JOB, news=(News("run.failed", "default", 1, "", {"x": {1}}),)),
    ],
)
def test_what_no_store_can_keep_is_refused_first(change: Change) -> None:
    """All of a decision is looked at before any of it is written, so that no store is left with a half."""
    with pytest.raises(RuleBroken):
        check_change(change)
    with pytest.raises(RuleBroken):
        carry_out(change, [], None, NOW)
