"""An edit with a pause or a resume in it: one decision, so that half of it is never kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cron.errors import JobEnded
from cron.plans import Turn, edited, planned
from store.jobs import Change, Job, JobStatus, NewJob, Timing, Trigger, TriggerKind, TriggerState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=3)
SPEC = NewJob("uid", "default", "main", "look", Timing("every", every=timedelta(hours=1)))
PENDING = Trigger("t", "default", 1, "main", TriggerKind.SCHEDULE, NOW + timedelta(minutes=30), NOW, NOW)


def job(status: JobStatus = JobStatus.ACTIVE, until: datetime | None = None) -> Job:
    return Job(1, SPEC, NOW, NOW, status, paused_until=until)


def new_id() -> str:
    return "new"


def decided(before: Job, turn: Turn | None, **changes: object) -> Change:
    decide = edited(lambda spec: replace(spec, **changes), new_id, turn)  # type: ignore[arg-type]  # by their names
    trigger = PENDING if before.status is JobStatus.ACTIVE else None
    found = decide(before, trigger, NOW)
    assert found is not None
    return found


@pytest.mark.parametrize("until", [None, LATER])
def test_an_edit_and_a_pause_are_one(until: datetime | None) -> None:
    """The planned trigger goes, and the next one is where the pause says, or nowhere."""
    change = decided(job(), Turn(active=False, until=until, reason="quiet"), message="other")
    assert (change.job.spec.message, change.job.reason, change.withdraw) == ("other", "quiet", True)
    assert change.job.status is (JobStatus.PAUSED if until is None else JobStatus.ACTIVE)
    assert (None if change.next is None else change.next.due_at) == until


def test_a_resume_plans_by_what_is_edited() -> None:
    """With the new interval, from now on."""
    change = decided(job(JobStatus.PAUSED), Turn(active=True), timing=Timing("every", every=timedelta(hours=2)))
    assert (change.job.status, change.job.reason, change.job.paused_until) == (JobStatus.ACTIVE, "", None)
    assert change.next is not None
    assert change.next.due_at == NOW + timedelta(hours=2)


def test_a_turn_that_turns_nothing_leaves_the_place_in_time() -> None:
    """To resume what runs, or to pause what is paused, moves nothing."""
    goes_on, rests = job(), job(JobStatus.PAUSED)
    for before, turn in ((goes_on, Turn(active=True)), (rests, Turn(active=False, reason="now why"))):
        change = decided(before, turn, name="x")
        assert (change.next, change.withdraw, change.fate, change.job.status) == (None, False, None, before.status)
    assert decided(rests, Turn(active=False, reason="now why")).job.reason == "now why"


@pytest.mark.parametrize("status", [JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED])
@pytest.mark.parametrize("turn", [Turn(active=True), Turn(active=False), Turn(active=False, until=LATER)])
def test_what_has_ended_cannot_be_turned(status: JobStatus, turn: Turn) -> None:
    """The edit that came with it is not kept either."""
    with pytest.raises(JobEnded, match=rf"#1 has ended \({status}\)"):
        decided(job(status), turn, message="other")


@pytest.mark.parametrize("turn", [None, Turn(active=True)])
def test_with_a_new_time_it_lives_again(turn: Turn | None) -> None:
    """A job that was completed and gets a time to come."""
    change = decided(job(JobStatus.COMPLETED), turn, timing=Timing("at", at=LATER))
    assert change.job.status is JobStatus.ACTIVE
    assert change.next is not None
    assert change.next.due_at == LATER


def test_a_due_trigger_ends_with_the_reason() -> None:
    """It is not quietly moved away."""
    due = replace(PENDING, slot=NOW - timedelta(seconds=1), due_at=NOW - timedelta(seconds=1))
    change = edited(lambda spec: spec, new_id, Turn(active=False))(job(), due, NOW)
    assert change is not None
    assert change.fate is not None
    assert (change.fate.state, change.fate.reason) == (TriggerState.SKIPPED, "paused")
    assert planned(change.job, NOW, new_id) is None
