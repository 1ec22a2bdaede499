"""The governor: when a job runs next, and why then."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cron.governor import FAR, Decision, after_run, clear_hints, plan, replan
from store.jobs import Hints, Job, NewJob, Rules, Source, Timing

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "governor.json").read_bytes()
)
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SECOND = timedelta(seconds=1)
SOURCES = get_args(Source)


def instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def span(milliseconds: int | None) -> timedelta | None:
    return None if milliseconds is None else timedelta(milliseconds=milliseconds)


def every(interval: timedelta, **rules: Any) -> Job:
    return job(Timing("every", every=interval), **rules)


def cron(expression: str, zone: str = "UTC", **rules: Any) -> Job:
    return job(Timing("cron", zone=zone, cron=expression), **rules)


def job(timing: Timing, **rules: Any) -> Job:
    spec = NewJob("uid", "default", "main", "hello", timing, rules=Rules(**rules))
    return Job(1, spec, created_at=NOW, updated_at=NOW)


def hinted(job: Job, interval: timedelta | None = None, next_at: datetime | None = None) -> Job:
    return replace(job, hints=Hints(interval, next_at, expires_at=NOW + 24 * HOUR, reason="busy"))


def told_hints(row: dict[str, Any]) -> Hints:
    return Hints(span(row["intervalMs"]), instant(row["nextRunAt"]), instant(row["expiresAt"]))


def told_job(row: dict[str, Any]) -> Job:
    base = row["baseline"]
    timing = Timing("cron", cron=base["cron"]) if "cron" in base else Timing("every", every=span(base["intervalMs"]))
    made = job(timing, min_interval=span(row.get("minIntervalMs")), max_interval=span(row.get("maxIntervalMs")))
    return replace(
        made,
        failures=row["failureCount"],
        last_run_at=instant(row.get("lastRunAt")),
        paused_until=instant(row.get("pausedUntil")),
        hints=told_hints(row["aiHint"]) if "aiHint" in row else Hints(),
    )


# ── what the reference says ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("row", VECTORS["plan"], ids=lambda row: row["id"])
def test_the_plan_is_that_of_the_reference(row: dict[str, Any]) -> None:
    """Each row gives the same moment and the same source. (C9 to C16)"""
    expected = Decision(datetime.fromisoformat(row["expect"]["nextRunAt"]), row["expect"]["source"])
    assert plan(datetime.fromisoformat(row["now"]), told_job(row)) == expected


@pytest.mark.parametrize("row", VECTORS["after_run"], ids=lambda row: row["id"])
def test_a_run_ends_as_in_the_reference(row: dict[str, Any]) -> None:
    """Last run, next run and failures are those of each row. (C17, C18)"""
    started = datetime.fromisoformat(row["startedAt"])
    ended = started + timedelta(milliseconds=row["durationMs"])
    after = after_run(told_job(row), started, ended, row["result"] == "success")
    expect = row["expect"]
    assert after.failures == expect["failureCount"]
    assert after.last_run_at == instant(expect.get("lastRunAt", row["startedAt"]))
    if "nextRunAt" in expect:
        assert after.next_at == instant(expect["nextRunAt"])


@pytest.mark.parametrize("row", VECTORS["hint_clearing"], ids=lambda row: row["id"])
def test_hints_are_cleared_as_in_the_reference(row: dict[str, Any]) -> None:
    """What is over goes, what still counts stays. (C17)"""
    before = replace(every(MINUTE), hints=told_hints(row["aiHint"]))
    assert clear_hints(before, datetime.fromisoformat(row["now"])).hints == told_hints(row["expect"])


# ── baselines ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("failures", "factor"), [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 32), (10**9, 32)]
)
def test_an_interval_grows_with_failures_up_to_a_limit(failures: int, factor: int) -> None:
    """Twice as long after each failure, and 32 times at most. (C10)"""
    failing = replace(every(MINUTE), failures=failures)
    assert plan(NOW, failing) == Decision(NOW + MINUTE * factor, "baseline-interval")


def test_cron_does_not_back_off() -> None:
    """A calendar time is kept however often it failed. (C9)"""
    assert plan(NOW, replace(cron("*/5 * * * *"), failures=9)) == Decision(NOW + 5 * MINUTE, "baseline-cron")


def test_cron_goes_by_the_job_s_own_zone() -> None:
    """Nine in the morning is that of the job, on every plan. (T10)"""
    berlin = cron("0 9 * * *", "Europe/Berlin")
    assert plan(NOW, berlin).at == datetime(2026, 1, 2, 8, tzinfo=UTC)


@pytest.mark.parametrize(("offset", "at"), [(HOUR, NOW + HOUR), (timedelta(0), NOW), (-HOUR, NOW)])
def test_a_one_shot_job_runs_at_its_moment_or_at_once(offset: timedelta, at: datetime) -> None:
    """A moment that has passed is now, not never. (C14, lesson 26)"""
    assert plan(NOW, job(Timing("at", at=NOW + offset))) == Decision(at, "baseline-cron")


def test_a_webhook_job_is_not_planned() -> None:
    """Nothing but a call fires it, and asking is a mistake that is said. (H5)"""
    with pytest.raises(ValueError, match="only a call fires it"):
        plan(NOW, job(Timing("webhook")))
    with pytest.raises(ValueError, match="only a call fires it"):
        plan(NOW, replace(job(Timing("webhook")), paused_until=NOW + HOUR))


def test_a_webhook_job_with_a_hint_is_planned_by_it() -> None:
    """An agent may ask for a look on its own. (C11, C12)"""
    webhook = job(Timing("webhook"))
    assert plan(NOW, hinted(webhook, interval=HOUR)) == Decision(NOW + HOUR, "ai-interval")
    assert plan(NOW, hinted(webhook, next_at=NOW + MINUTE)) == Decision(NOW + MINUTE, "ai-oneshot")


def test_an_interval_without_end_is_the_last_date() -> None:
    """A sum that no date can hold is far away, not an error. (C10)"""
    assert plan(NOW, replace(every(timedelta.max), failures=5)).at == FAR


# ── hints, limits, pause ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_longer_interval_hint_relaxes_the_job() -> None:
    """It replaces the baseline instead of racing it. (C13)"""
    assert plan(NOW, hinted(every(MINUTE), interval=HOUR)) == Decision(NOW + HOUR, "ai-interval")
    assert plan(NOW, hinted(cron("* * * * *"), interval=HOUR)) == Decision(NOW + HOUR, "ai-interval")


def test_failures_do_not_stretch_a_hint() -> None:
    """The agent knew of them when it proposed the time. (C11)"""
    failing = replace(hinted(every(MINUTE), interval=HOUR), failures=4)
    assert plan(NOW, failing) == Decision(NOW + HOUR, "ai-interval")


def test_a_later_one_shot_hint_leaves_the_baseline() -> None:
    """One-shots bring a run forward, they never put it off. (C13)"""
    assert plan(NOW, hinted(every(MINUTE), next_at=NOW + HOUR)) == Decision(NOW + MINUTE, "baseline-interval")


def test_both_hints_leave_out_the_baseline() -> None:
    """Even where it would be the first of the three. (C13)"""
    both = hinted(every(SECOND), interval=HOUR, next_at=NOW + MINUTE)
    assert plan(NOW, both) == Decision(NOW + MINUTE, "ai-oneshot")


def test_the_steady_hint_gives_its_name_to_a_tie() -> None:
    """Both hints at the same moment: the interval, as a baseline would be. (C13)"""
    both = hinted(every(SECOND), interval=HOUR, next_at=NOW + HOUR)
    assert plan(NOW, both) == Decision(NOW + HOUR, "ai-interval")


def test_a_one_shot_hint_in_the_past_means_now() -> None:
    """It was asked for and has not been served. (C14)"""
    assert plan(NOW, hinted(every(HOUR), next_at=NOW - MINUTE)) == Decision(NOW, "ai-oneshot")


@pytest.mark.parametrize("left", [timedelta(0), -SECOND])
def test_a_hint_ends_at_the_moment_of_its_expiry(left: timedelta) -> None:
    """Exactly then it no longer counts. (C11)"""
    stale = replace(every(MINUTE), hints=Hints(HOUR, NOW + SECOND, NOW + left))
    assert plan(NOW, stale) == Decision(NOW + MINUTE, "baseline-interval")


def test_limits_hold_against_hints() -> None:
    """Too soon becomes the minimum and too late the maximum. (C15)"""
    limited = every(10 * MINUTE, min_interval=MINUTE, max_interval=HOUR)
    assert plan(NOW, hinted(limited, interval=SECOND)) == Decision(NOW + MINUTE, "clamped-min")
    assert plan(NOW, hinted(limited, next_at=NOW)) == Decision(NOW + MINUTE, "clamped-min")
    assert plan(NOW, hinted(limited, interval=2 * HOUR)) == Decision(NOW + HOUR, "clamped-max")


def test_exactly_at_a_limit_nothing_is_clamped() -> None:
    """A source says what decided, and the limit did not. (C15, C20)"""
    exact = every(MINUTE, min_interval=MINUTE, max_interval=MINUTE)
    assert plan(NOW, exact) == Decision(NOW + MINUTE, "baseline-interval")


def test_the_maximum_is_applied_last() -> None:
    """A back-off may not outgrow it. (C15)"""
    failing = replace(every(HOUR, max_interval=2 * HOUR), failures=5)
    assert plan(NOW, failing) == Decision(NOW + 2 * HOUR, "clamped-max")


def test_a_pause_wins_over_everything() -> None:
    """Hints and limits wait until it is over. (C16)"""
    resting = replace(hinted(every(MINUTE, max_interval=MINUTE), next_at=NOW), paused_until=NOW + 9 * HOUR)
    assert plan(NOW, resting) == Decision(NOW + 9 * HOUR, "paused")


def test_the_hour_that_comes_twice_does_not_confuse_the_plan() -> None:
    """Moments are compared as moments, in whatever zone they are handed in. (D1)"""
    berlin = ZoneInfo("Europe/Berlin")
    second = datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=1)
    assert plan(second, every(MINUTE)).at == datetime(2026, 10, 25, 1, 31, tzinfo=UTC)
    assert plan(second, cron("0 3 * * *", "Europe/Berlin")).at == datetime(2026, 10, 25, 2, tzinfo=UTC)


# ── after a run ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_failure_doubles_the_distance() -> None:
    """The outcome counts before the plan is made. (T3)"""
    failed = after_run(every(MINUTE), NOW, NOW + SECOND, ok=False)
    assert (failed.failures, failed.next_at) == (1, NOW + 2 * MINUTE)
    again = after_run(failed, NOW, NOW + SECOND, ok=False)
    assert (again.failures, again.next_at) == (2, NOW + 4 * MINUTE)


def test_a_success_ends_the_back_off() -> None:
    """The next distance is the plain one. (C17)"""
    well = after_run(replace(every(MINUTE), failures=7), NOW, NOW + SECOND, ok=True)
    assert (well.failures, well.next_at, well.runs) == (0, NOW + MINUTE, 1)


def test_a_used_hint_does_not_fire_again() -> None:
    """The one-shot that led to this run is gone before the plan is made. (T4)"""
    after = after_run(hinted(every(HOUR), next_at=NOW), NOW, NOW + SECOND, ok=True)
    assert after.hints.next_at is None
    assert (after.next_at, after.next_source) == (NOW + HOUR, "baseline-interval")


def test_a_hint_used_by_a_clock_that_is_behind_is_used_all_the_same() -> None:
    """The slot tells which moment was served, whatever the worker's clock says. (T4)"""
    before = hinted(every(HOUR), next_at=NOW)
    after = after_run(before, NOW - SECOND, NOW, ok=True, not_before=NOW)
    assert (after.hints.next_at, after.next_source) == (None, "baseline-interval")


def test_a_hint_written_during_the_run_counts() -> None:
    """What the agent proposed while it ran decides about the next run. (C21)"""
    during = hinted(every(HOUR), next_at=NOW + 10 * MINUTE)
    after = after_run(during, NOW, NOW + MINUTE, ok=True)
    assert (after.next_at, after.next_source) == (NOW + 10 * MINUTE, "ai-oneshot")
    assert after.hints == during.hints


def test_an_interval_hint_survives_runs_until_it_expires() -> None:
    """It is a rhythm, not one run. (C17)"""
    before = hinted(every(HOUR), interval=MINUTE, next_at=NOW - SECOND)
    after = after_run(before, NOW, NOW + SECOND, ok=True)
    assert after.hints == replace(before.hints, next_at=None)
    late = NOW + 25 * HOUR
    assert after_run(before, late, late + SECOND, ok=True).hints == Hints()


def test_the_length_of_runs_does_not_move_the_rhythm() -> None:
    """Start to start, however long each run takes. (C18, lesson 31)"""
    steady, at = every(MINUTE), NOW
    for seconds in (1, 59, 30, 5):
        steady = after_run(steady, at, at + seconds * SECOND, ok=True)
        assert steady.next_at == at + MINUTE
        at = steady.next_at


@pytest.mark.parametrize(
    ("seconds", "next_s"),
    [(59.999, 60), (60, 60), (60.001, 120.001), (90, 150), (3600, 3660)],
)
def test_a_run_longer_than_its_interval_keeps_the_distance_from_its_end(seconds: float, next_s: float) -> None:
    """Neither at once nor never: the job goes on. (C18, lesson 28)"""
    after = after_run(every(MINUTE), NOW, NOW + timedelta(seconds=seconds), ok=True)
    assert (after.next_at, after.next_source) == (NOW + timedelta(seconds=next_s), "baseline-interval")


def test_the_shortest_distance_from_an_end_is_a_second() -> None:
    """A tiny interval does not spin. (C18, lesson 30)"""
    tiny = every(timedelta(milliseconds=1))
    assert after_run(tiny, NOW, NOW + MINUTE, ok=True).next_at == NOW + MINUTE + SECOND


def test_the_back_off_is_part_of_the_distance() -> None:
    """A slow failure waits as long as a quick one. (C10, C18)"""
    after = after_run(every(MINUTE), NOW, NOW + 10 * MINUTE, ok=False)
    assert after.next_at == NOW + 12 * MINUTE


def test_a_slow_cron_run_goes_on_with_the_next_occurrence() -> None:
    """Times of the calendar stay where they are. (C9, lesson 28)"""
    after = after_run(cron("*/5 * * * *"), NOW, NOW + 12 * MINUTE, ok=True)
    assert (after.next_at, after.next_source) == (NOW + 15 * MINUTE, "baseline-cron")


def test_limits_hold_from_the_end_of_a_slow_cron_run() -> None:
    """The next occurrence may be too soon after it. (C15, C18)"""
    limited = cron("*/5 * * * *", min_interval=4 * MINUTE)
    after = after_run(limited, NOW, NOW + 12 * MINUTE, ok=True)
    assert (after.next_at, after.next_source) == (NOW + 16 * MINUTE, "clamped-min")


def test_a_pause_that_ended_during_the_run_is_over() -> None:
    """The job goes on as if it had not been paused. (C16, C18)"""
    resting = replace(cron("*/5 * * * *"), paused_until=NOW + MINUTE)
    after = after_run(resting, NOW, NOW + 2 * MINUTE, ok=True)
    assert (after.next_at, after.next_source) == (NOW + 5 * MINUTE, "baseline-cron")


def test_a_pause_that_outlasts_the_run_holds() -> None:
    """It was set for the time after the run. (C16)"""
    resting = replace(every(MINUTE), paused_until=NOW + 9 * HOUR)
    after = after_run(resting, NOW, NOW + HOUR, ok=True)
    assert (after.next_at, after.next_source) == (NOW + 9 * HOUR, "paused")


def test_a_job_anchored_at_completion_counts_from_the_end() -> None:
    """The distance is one of rest between runs. (H6)"""
    anchored = every(MINUTE, anchor="completion")
    assert after_run(anchored, NOW, NOW + 30 * SECOND, ok=True).next_at == NOW + 90 * SECOND
    assert after_run(anchored, NOW, NOW + HOUR, ok=True).next_at == NOW + HOUR + MINUTE
    assert after_run(anchored, NOW, NOW + HOUR, ok=True).last_run_at == NOW


def test_a_one_shot_job_has_no_run_after_its_run() -> None:
    """Whether it is done or failed for good is told by its status. (A3)"""
    once = replace(job(Timing("at", at=NOW)), next_at=NOW, next_source="baseline-cron")
    for ok in (True, False):
        after = after_run(once, NOW, NOW + SECOND, ok)
        assert (after.next_at, after.next_source, after.failures) == (None, None, 0 if ok else 1)
    assert replan(hinted(once, interval=HOUR), NOW, NOW + SECOND) is None


def test_a_webhook_job_goes_on_only_with_a_hint() -> None:
    """Without one it waits for the next call. (H5)"""
    webhook = job(Timing("webhook"))
    assert after_run(webhook, NOW, NOW + SECOND, ok=True).next_at is None
    assert after_run(hinted(webhook, interval=HOUR), NOW, NOW + SECOND, ok=True).next_at == NOW + HOUR


def test_a_clock_that_went_back_brings_no_slot_twice() -> None:
    """Cron goes on after the slot that was used. (P4)"""
    daily = cron("0 12 * * *")
    back = NOW - 5 * MINUTE
    assert plan(back, daily).at == NOW
    assert plan(back, daily, not_before=NOW).at == NOW + 24 * HOUR
    assert after_run(daily, back, back + SECOND, ok=True, not_before=NOW).next_at == NOW + 24 * HOUR
    slow = after_run(daily, back, NOW + SECOND, ok=True, not_before=NOW)
    assert slow.next_at == NOW + 24 * HOUR


def test_a_clock_set_back_during_a_run_does_not_put_the_job_off() -> None:
    """An interval is counted from the clock as it is now. (P9)"""
    after = after_run(every(MINUTE), NOW, NOW - 24 * HOUR, ok=True)
    assert after.next_at == NOW - 24 * HOUR + MINUTE


def test_nothing_else_of_the_job_changes() -> None:
    """Its wording, rules and pause are not the governor's. (C17)"""
    before = replace(every(MINUTE), paused_until=NOW - HOUR, reason="x", last_run="r")
    after = after_run(before, NOW, NOW + SECOND, ok=True)
    same = replace(after, last_run_at=before.last_run_at, runs=0, next_at=None, next_source=None)
    assert same == before


# ── promises ─────────────────────────────────────────────────────────────────────────────────────────────────────────

moments = st.datetimes(datetime(2024, 1, 1), datetime(2031, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - bounds
spans = st.timedeltas(min_value=timedelta(milliseconds=1), max_value=timedelta(days=400))
timings = st.one_of(
    st.builds(Timing, st.just("every"), every=spans),
    st.builds(
        Timing,
        st.just("cron"),
        zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
        cron=st.sampled_from(["* * * * *", "*/7 3 * * *", "30 2 * * *", "0 9 * * 1-5", "0 0 29 2 *"]),
    ),
    st.builds(Timing, st.just("at"), at=moments),
)
hints = st.builds(Hints, st.none() | spans, st.none() | moments, st.none() | moments)
limits = st.lists(spans, min_size=2, max_size=2).map(sorted)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    least, most = draw(limits)
    made = job(
        draw(timings),
        min_interval=draw(st.sampled_from([None, least])),
        max_interval=draw(st.sampled_from([None, most])),
        anchor=draw(st.sampled_from(["start", "completion"])),
    )
    return replace(
        made,
        failures=draw(st.integers(min_value=0, max_value=100)),
        hints=draw(hints),
        paused_until=draw(st.none() | moments),
    )


@given(moments, jobs())
def test_a_plan_keeps_its_promises(now: datetime, job: Job) -> None:
    """Same question, same answer, never before now, within the limits, and a pause wins. (C8 to C20)"""
    decision = plan(now, job)
    assert plan(now, job) == decision
    assert decision.source in SOURCES
    assert decision.at >= now
    assert decision.at > now or decision.source == "ai-oneshot" or job.spec.timing.kind == "at"
    if job.paused_until is not None and job.paused_until > now:
        least = max(job.paused_until, job.spec.timing.at or now)
        assert decision == (least, "paused")
        return
    assert decision.source != "paused"
    if job.spec.timing.at is not None:  # a moment that somebody named stays what it is
        assert decision == (max(job.spec.timing.at, now), "baseline-cron")
        return
    rules = job.spec.rules
    assert rules.min_interval is None or decision.at >= now + rules.min_interval
    assert rules.max_interval is None or decision.at <= now + rules.max_interval


@given(moments, st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=3)), jobs(), st.booleans())
def test_a_run_leaves_a_job_that_goes_on(started: datetime, length: timedelta, job: Job, ok: bool) -> None:
    """A recurring job has a next time, not before the end of its run, and counts what happened. (C17, C18, P9)"""
    ended = started + length
    after = after_run(job, started, ended, ok)
    assert after == after_run(job, started, ended, ok)
    assert after.failures == (0 if ok else job.failures + 1)
    assert after.last_run_at == started
    if not job.recurring:
        assert after.next_at is None
        return
    assert after.next_at is not None
    assert after.next_at >= ended
    assert after.next_source in SOURCES
    counted = clear_hints(replace(job, failures=after.failures), started)
    assert replan(counted, started, ended) == (after.next_at, after.next_source)


@given(moments, jobs())
def test_used_hints_are_gone_and_the_others_stay(now: datetime, job: Job) -> None:
    """Clearing twice is clearing once, and the plan of a moment does not need what was cleared. (C17, T4)"""
    cleared = clear_hints(job, now)
    assert clear_hints(cleared, now) == cleared
    assert cleared.hints.next_at is None or cleared.hints.next_at > now
    assert cleared.hints.expires_at is None or cleared.hints.expires_at > now
    assert replace(cleared, hints=job.hints) == job
