"""Bugs that somebody could have written into the scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import trio

from scheduler import Lane, LaneManager, Run, Scheduler, Ticket, lending, slots, working
from scheduler.cancelling import Sweep
from scheduler.session import Session
from tests.simulation.planting import planted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# ── slots ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@planted
def keeps_the_slot_of_what_raised() -> Iterator[Any]:
    """A handler that raises takes its lane slot with it."""
    real = working.finish

    def finish(scheduler: Scheduler, run: Run, value: Any, error: Exception | None) -> Run | None:
        if error is not None:
            run._slot = False
        return real(scheduler, run, value, error)

    yield patch.object(working, "finish", finish)


@planted
def serves_the_newest_first() -> Iterator[Any]:
    """The next turn is taken from the wrong end of the session's queue."""
    real = Lane.next_session

    def next_session(lane: Lane) -> Session:
        session = real(lane)
        session.queue.rotate(1)
        return session

    yield patch.object(Lane, "next_session", next_session)


@planted
def starts_beside_a_dying_run() -> Iterator[Any]:
    """A cancelled run loses its place in the session at once, while it still cleans up."""
    real = Session.ready

    def ready(session: Session) -> bool:
        running, session.running = session.running, [run for run in session.running if run.reason is None]
        try:
            return real(session)
        finally:
            session.running = running

    yield patch.object(Session, "ready", ready)


@planted
def works_on_without_a_slot() -> Iterator[Any]:
    """A run that waited for a helper goes on without getting a slot back."""
    real = lending.take_slot

    def take_slot(scheduler: Scheduler, run: Run, now: float) -> None:
        real(scheduler, run, now)
        run._lane.active -= 1

    yield patch.object(lending, "take_slot", take_slot)


@planted
def never_lends() -> Iterator[Any]:
    """A run keeps its slot while it waits for a helper, who may need that very slot."""

    async def wait_for(_: Scheduler, ticket: Ticket) -> None:
        ticket._event = ticket._event or trio.Event()
        await ticket._event.wait()

    yield patch.object(lending, "wait_for", wait_for)


@planted
def one_too_many_after_a_resize() -> Iterator[Any]:
    """In a lane that was resized the limit is checked with the wrong comparison."""
    real_resize, real_next, resized = LaneManager.resize, slots.next_run, set[int]()

    def resize(lanes: LaneManager, name: str, limit: int) -> None:
        resized.add(id(lanes[name]))
        real_resize(lanes, name, limit)

    def next_run(scheduler: Scheduler, lane: Lane, now: float) -> Run | None:
        slack = 1 if id(lane) in resized else 0
        lane.limit += slack
        try:
            return real_next(scheduler, lane, now)
        finally:
            lane.limit -= slack

    yield patch.object(LaneManager, "resize", resize)
    yield patch.object(slots, "next_run", next_run)


# ── from the window to the run ───────────────────────────────────────────────────────────────────────────────────────


@planted
def forgets_the_window() -> Iterator[Any]:
    """A stop does not look into the debounce window."""
    real = Sweep.take_waiting

    def take_waiting(sweep: Sweep, session: Session, mine: Callable[[Ticket], bool]) -> None:
        window, session.window = session.window, None
        real(sweep, session, mine)
        session.window = window

    yield patch.object(Sweep, "take_waiting", take_waiting)


@planted
def never_closes_a_moved_window() -> Iterator[Any]:
    """A window that a later message has moved is not looked at again."""
    real = Scheduler._window_due

    def window_due(scheduler: Scheduler, session: Session, window: Any) -> None:
        if window.closes_at <= trio.current_time():
            real(scheduler, session, window)

    yield patch.object(Scheduler, "_window_due", window_due)


@planted
def loses_what_was_not_taken() -> Iterator[Any]:
    """Messages that steer a run, and that it never took, go down with it."""
    real = working.leave_behind

    def leave_behind(run: Run, session: Session) -> None:
        run._inbox = ()
        real(run, session)

    yield patch.object(working, "leave_behind", leave_behind)


@planted
def leaves_helpers_alone() -> Iterator[Any]:
    """A stop cancels a run and not the helpers that work for it."""
    yield patch.object(Sweep, "cancel_children", lambda *_: None)


@planted
def answers_although_stopped() -> Iterator[Any]:
    """A run may write its answer although it was cancelled."""

    def seal(run: Run) -> bool:
        run.sealed = True
        return True

    yield patch.object(Run, "seal", seal)
