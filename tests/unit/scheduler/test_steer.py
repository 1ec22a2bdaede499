"""Mode steer: what a person adds reaches the agent that is already at work, or runs right after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from scheduler import End, Mode, Policy, Reason, Request, open_scheduler
from tests.unit.scheduler.probe import QUICK, Ends, Probe, ends_of, quick

if TYPE_CHECKING:
    from trio.testing import MockClock

    from scheduler import Run

STEER = Policy(mode=Mode.STEER, debounce_s=0)


class Agent:
    """A steerable handler with a boundary every ``step_s`` seconds, four steps long."""

    def __init__(self, step_s: float = 1.0) -> None:
        self.step_s = step_s
        self.turns: list[list[Any]] = []

    async def __call__(self, run: Run) -> str:
        words = [request.payload for request in run.requests]
        self.turns.append(words)
        for _ in range(4):
            await trio.sleep(self.step_s)
            words += [request.payload for request in run.take_steering()]
        return " ".join(str(word) for word in words)


def steer(handler: Any, payload: Any, **rest: Any) -> Request:
    told: dict[str, Any] = {"policy": STEER, "steerable": True} | rest
    return quick(handler, payload, **told)


async def test_steering_reaches_the_running_agent_and_ends_with_it(autojump_clock: MockClock) -> None:
    """A message that comes in meanwhile is handed over at the next boundary and ends with that run's value."""
    agent, ends = Agent(), Ends()
    async with open_scheduler() as scheduler:
        tickets = [scheduler.schedule(steer(agent, "write", on_end=ends))]
        await trio.sleep(0.5)
        tickets.append(scheduler.schedule(steer(agent, "shorter", on_end=ends)))
        assert scheduler.session_statistics("dm").steering == 1
        await trio.sleep(1)
        assert scheduler.session_statistics("dm").steering == 0
        await scheduler.drain()
    assert agent.turns == [["write", "shorter"]]
    assert [ticket.outcome and ticket.outcome.value for ticket in tickets] == ["write shorter"] * 2
    assert ends.seen == [("write", End.DONE), ("shorter", End.DONE)]


async def test_untaken_steering_returns_to_the_head_in_order(autojump_clock: MockClock) -> None:
    """What came after the last boundary runs next, before later messages and in its order. (P2)"""
    probe = Probe(1)
    async with open_scheduler() as scheduler:
        scheduler.schedule(steer(probe, "running"))  # never takes anything
        scheduler.schedule(steer(probe, 1))
        scheduler.schedule(steer(probe, 2))
        scheduler.schedule(quick(probe, "later"))
        scheduler.schedule(quick(probe, "last"))
        await scheduler.drain()
    assert probe.order == ["running", 1, 2, "later", "last"]
    assert probe.most["dm"] == 1


@pytest.mark.parametrize(
    ("running", "newcomer"),
    [
        ({"steerable": False}, {}),
        ({"sender": "bob"}, {}),
        ({}, {"policy": QUICK}),
    ],
    ids=["agent cannot", "other sender", "mode queue"],
)
async def test_who_cannot_steer_waits(
    autojump_clock: MockClock, running: dict[str, Any], newcomer: dict[str, Any]
) -> None:
    """Only the sender's own run is steered, only if its agent can, only by a message that wants to."""
    agent = Agent()
    async with open_scheduler() as scheduler:
        scheduler.schedule(steer(agent, "first", **running))
        scheduler.schedule(steer(agent, "second", **newcomer))
        assert scheduler.session_statistics("dm").steering == 0
        await scheduler.drain()
    assert agent.turns == [["first"], ["second"]]


async def test_steering_does_not_overtake_who_waits(autojump_clock: MockClock) -> None:
    """With a message in the queue already, a later one goes behind it. (P2)"""
    agent = Agent()
    async with open_scheduler() as scheduler:
        scheduler.schedule(steer(agent, "running"))
        scheduler.schedule(steer(agent, "bob's", sender="bob"))
        scheduler.schedule(steer(agent, "mine"))
        await scheduler.drain()
    assert agent.turns == [["running"], ["bob's"], ["mine"]]


async def test_in_a_group_the_senders_own_newest_run_is_steered(autojump_clock: MockClock) -> None:
    """With several runs in one group, words go to a run of the same person, never to another's."""
    agent = Agent()
    group = Policy(mode=Mode.STEER, debounce_s=0, max_concurrent=3, shared=True)
    async with open_scheduler({"main": 3}) as scheduler:
        for sender in ("ann", "bob", "cid"):
            scheduler.schedule(steer(agent, sender, sender=sender, policy=group))
        await trio.sleep(0.5)
        scheduler.schedule(steer(agent, "more of bob", sender="bob", policy=group))
        await scheduler.drain()
    assert sorted(agent.turns) == [["ann"], ["bob", "more of bob"], ["cid"]]


async def test_a_stopped_or_sealed_run_is_not_steered(autojump_clock: MockClock) -> None:
    """A run that can do no more takes no more; the message runs after it."""
    seen: list[tuple[Any, ...]] = []

    async def sealing(run: Run) -> None:
        assert run.seal()
        await trio.sleep(1)
        seen.append(run.take_steering())

    async def stopped(run: Run) -> None:
        try:
            await trio.sleep(10)
        finally:
            seen.append(run.take_steering())

    probe = Probe()
    async with open_scheduler() as scheduler:
        scheduler.schedule(steer(sealing, None, session="sealed"))
        scheduler.schedule(steer(stopped, None, session="stopped"))
        await trio.sleep(0.5)
        scheduler.schedule(steer(probe, "before the stop", session="stopped"))
        scheduler.cancel_oldest("stopped")
        for session in ("sealed", "stopped"):
            scheduler.schedule(steer(probe, session, session=session))
        await scheduler.drain()
    assert seen == [(), ()]
    assert sorted(probe.order) == ["before the stop", "sealed", "stopped"]


async def test_taken_steering_shares_the_runs_failure(autojump_clock: MockClock) -> None:
    """A taken message settles with the run, however that ends; an untaken one does not."""

    async def failing(run: Run) -> None:
        if run.request.payload == "untaken":
            return
        await trio.sleep(1)
        assert run.take_steering()
        await trio.sleep(1)
        raise ValueError("broken")

    ends = Ends()
    async with open_scheduler() as scheduler:
        scheduler.schedule(steer(failing, "first", on_end=ends))
        await trio.sleep(0.5)
        scheduler.schedule(steer(failing, "taken", on_end=ends))
        await trio.sleep(1)
        scheduler.schedule(steer(failing, "untaken", on_end=ends))
        await scheduler.drain()
    assert ends.seen == [("first", End.FAILED), ("taken", End.FAILED), ("untaken", End.DONE)]


async def test_the_inbox_of_a_run_is_bounded_by_the_cap(autojump_clock: MockClock) -> None:
    """Only as many messages as the cap allows wait at a run; the others queue behind, all in order. (L7, P2)"""
    probe = Probe()
    policy = Policy(mode=Mode.STEER, debounce_s=0, cap=3)
    async with open_scheduler() as scheduler:
        scheduler.schedule(steer(probe, 0, policy=policy))
        tickets = [scheduler.schedule(steer(probe, number, policy=policy)) for number in range(1, 7)]
        statistics = scheduler.session_statistics("dm")
        assert (statistics.steering, statistics.waiting) == (3, 3)
        assert ends_of(*tickets) == [None] * 6
        await scheduler.drain()
    assert probe.order == list(range(7))


async def test_debounced_words_steer_together(autojump_clock: MockClock) -> None:
    """Quick messages join first and reach the run as one, in order. (L9)"""
    agent = Agent()
    policy = Policy(mode=Mode.STEER)
    async with open_scheduler() as scheduler:
        scheduler.schedule(steer(agent, "write"))
        tickets = [scheduler.schedule(steer(agent, word, policy=policy)) for word in ("a", "b")]
        await scheduler.drain()
    assert agent.turns == [["write", "a", "b"]]
    assert ends_of(*tickets) == [End.DONE] * 2


async def test_stopall_takes_steering_with_it(autojump_clock: MockClock) -> None:
    """Messages handed to a run but not taken yet are stopped and counted, taken ones end with the run. (lesson 18)"""
    agent, ends = Agent(), Ends()
    async with open_scheduler() as scheduler:
        scheduler.schedule(steer(agent, "first", on_end=ends))
        scheduler.schedule(steer(agent, "taken", on_end=ends))
        await trio.sleep(1.5)
        scheduler.schedule(steer(agent, "untaken", on_end=ends))
        stopped = scheduler.cancel_all("dm")
        assert (stopped.running, stopped.queued, stopped.left) == (1, 1, 0)
        await scheduler.drain()
    assert sorted(ends.seen) == [(word, End.CANCELLED) for word in ("first", "taken", "untaken")]
    assert agent.turns == [["first", "taken"]]


async def test_after_a_stop_untaken_steering_runs(autojump_clock: MockClock) -> None:
    """A stop ends the run; what was waiting at it is still waiting, is told so, and runs next. (L10, lesson 21)"""
    agent = Agent()
    async with open_scheduler() as scheduler:
        first = scheduler.schedule(steer(agent, "first"))
        second = scheduler.schedule(steer(agent, "second"))
        stopped = scheduler.cancel_oldest("dm")
        assert (stopped.running, stopped.left) == (1, 1)
        await scheduler.drain()
    assert first.outcome is not None
    assert (first.outcome.end, first.outcome.reason) == (End.CANCELLED, Reason.STOPPED)
    assert ends_of(second) == [End.DONE]


async def test_steering_that_returns_counts_as_waiting(autojump_clock: MockClock) -> None:
    """The lane's count of waiters stays right when steering comes back to the queue and is stopped there."""
    probe = Probe()
    async with open_scheduler({"main": 1}) as scheduler:
        scheduler.schedule(steer(probe, "running"))
        scheduler.schedule(steer(probe, 1))
        scheduler.schedule(steer(probe, 2))
        scheduler.schedule(quick(probe, "other", "other"))
        await trio.sleep(1.5)  # the other runs, both untaken ones wait
        assert scheduler.statistics().waiting == 2
        stopped = scheduler.cancel_all("dm")
        assert (stopped.waiting, stopped.queued) == (1, 1)
        assert scheduler.statistics().waiting == 0
        await scheduler.drain()
    assert probe.order == ["running", "other"]
