"""Values that cannot be meant are refused where they come in, and what is already queued does not notice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
import trio

from scheduler import Drop, End, InvalidRequest, Mode, Policy, SchedulerError, open_scheduler
from tests.unit.scheduler.probe import Probe, ends_of, quick

if TYPE_CHECKING:
    from trio.testing import MockClock

NOT_A_LIMIT: list[Any] = [0, -1, True, False, 1.0, 2.5, math.inf, math.nan, "2", None]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("cap", value) for value in NOT_A_LIMIT),
        *(("max_concurrent", value) for value in NOT_A_LIMIT),
        *(("debounce_s", value) for value in (-0.1, -math.inf, math.nan, math.inf, True, "1", None)),
        *(("timeout_s", value) for value in (0, 0.0, -1, math.nan, True, "1")),
        ("mode", "que"),
        ("mode", ""),
        ("drop", "oldest"),
    ],
)
def test_a_policy_that_cannot_be_followed_is_refused(field: str, value: Any) -> None:
    """The error is a ValueError of this room that repeats the value and names the field. (L8)"""
    with pytest.raises(InvalidRequest) as caught:
        Policy(**{field: value})
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, SchedulerError)
    assert repr(value) in str(caught.value)
    assert field.removesuffix("_s") in str(caught.value)
    assert "expected" in str(caught.value)
    assert caught.value.fields["value"] is value


def test_choices_are_listed() -> None:
    """Who misspells a mode is told the modes. (L6, L7)"""
    with pytest.raises(InvalidRequest, match="queue, followup, collect, steer, interrupt"):
        Policy(mode="steering")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="old, new"):
        Policy(drop="both")  # type: ignore[arg-type]


def test_choices_may_be_given_as_text() -> None:
    """Settings are text: the words of the documentation are enough. (L8)"""
    policy = Policy(mode="steer", drop="new")  # type: ignore[arg-type]
    assert policy.mode is Mode.STEER
    assert policy.drop is Drop.NEW


@pytest.mark.parametrize("value", NOT_A_LIMIT)
async def test_a_scheduler_with_a_bad_limit_does_not_open(value: Any) -> None:
    """The error names the lane and the value. (L1)"""
    with pytest.RaisesGroup(InvalidRequest) as caught:
        async with open_scheduler({"main": 2, "cron": value}):
            pass
    assert "'cron'" in str(caught.value.exceptions[0])
    assert repr(value) in str(caught.value.exceptions[0])


@pytest.mark.parametrize("value", NOT_A_LIMIT)
async def test_a_bad_new_limit_changes_nothing(autojump_clock: MockClock, value: Any) -> None:
    """The lane keeps its limit, its runs and its queue. (L1, P3)"""
    probe = Probe()
    async with open_scheduler({"main": 2}) as scheduler:
        tickets = [scheduler.schedule(quick(probe, number, f"dm {number}")) for number in range(6)]
        await trio.sleep(0.5)
        with pytest.raises(InvalidRequest, match="'main'"):
            scheduler.lanes.resize("main", value)
        with pytest.raises(InvalidRequest, match="'new'"):
            scheduler.lanes.get_or_create("new", value)
        assert scheduler.lanes["new"] is scheduler.lanes["main"]
        assert scheduler.lanes["main"].limit == 2
        await scheduler.drain()
    assert ends_of(*tickets) == [End.DONE] * 6
    assert probe.most["all"] == 2


async def test_only_a_lane_that_exists_is_resized(autojump_clock: MockClock) -> None:
    """A misspelt lane is not main: the error names it and the lanes there are. (L2)"""
    async with open_scheduler({"main": 2, "cron": 1}) as scheduler:
        with pytest.raises(InvalidRequest, match=r"'corn'.*main, cron") as caught:
            scheduler.lanes.resize("corn", 5)
        assert caught.value.fields == {"value": "corn"}
        assert [lane.limit for lane in scheduler.lanes] == [2, 1]


@pytest.mark.parametrize("grace_s", [-1, math.nan])
async def test_a_bad_grace_is_refused_before_anything_ends(autojump_clock: MockClock, grace_s: float) -> None:
    """A shutdown that cannot be meant is not begun: what waits still waits and new work is taken in. (Q9)"""
    probe = Probe()
    async with open_scheduler() as scheduler:
        tickets = [scheduler.schedule(quick(probe, number)) for number in range(2)]
        with pytest.raises(InvalidRequest, match=repr(grace_s)):
            await scheduler.close(grace_s)
        tickets.append(scheduler.schedule(quick(probe, 2)))
        await scheduler.drain()
    assert ends_of(*tickets) == [End.DONE] * 3
