"""Where every message of every session must be, worked out from what was asked and what the handlers saw.

The model is told of each request before the scheduler is, of each turn that got a slot, of each handler's first and
last step, and of the few things that happen by the clock. From that it knows every session's window, queue, runs and
inboxes, and what the next turn, the next count and each message's end have to be.

    accept ─▶ WINDOW ─▶ QUEUE ─▶ RUN ─▶ OVER         what differs is a complaint; complaints fail the example
                 └────▶ INBOX ──┘ │
                          ▲       ▼
                          └─ back to QUEUE, in its old place

One rule decides the hard cases: a verb first changes everything it has to change and only then tells anybody.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from scheduler import Drop, End, Mode, Reason
from tests.unit.scheduler.machine.parts import (
    FENCED_AFTER_S,
    HAIR_S,
    TOLD_AFTER_S,
    Message,
    Place,
    Running,
    Talk,
    Turn,
    Wait,
    Window,
    together,
)
from tests.unit.scheduler.machine.stops import Stops

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW_MESSAGES = 20
WINDOW_STRETCH = 5


class Model(Stops):
    """The whole of it: arrivals, runs and their waits."""

    # ── arrival ──────────────────────────────────────────────────────────────────────────────────────────────────

    def accept(self, message: Message, now: float) -> None:
        plan, parent = message.plan, message.parent
        if parent is not None and (parent.reason is not None or parent.over):
            self.end([message], End.CANCELLED, parent.reason or Reason.STOPPED)
            return
        if self.closed or (self.closing and parent is None):
            self.end([message], End.CLOSED, None)
            return
        talk = self.talk(message.key)
        talk.heed(plan)
        turn = Turn([message])
        if plan.policy.mode is Mode.INTERRUPT:
            turn.after = self._interrupt(talk, plan, now)
            if not talk.busy:  # drained to nothing and forgotten
                talk.throttled = False
                talk.heed(plan)
        if parent is not None:
            parent.children[message] = None
            message.keeper = parent
        quick = plan.policy.debounce_s > 0 and not plan.resumed
        if talk.window is not None and not (quick and together(talk.window.turn.leader, message)):
            talk.steps.append(partial(self.close_window, talk))
        talk.steps.append(partial(self._buffer, talk, turn, now) if quick else partial(self._admit, talk, turn))

    def follow(self, talk: Talk, started: Callable[[Turn], bool], now: float) -> None:
        """Catch up with the scheduler: turns that have started, and what is left of an arrival, in that order.

        A turn that starts in the middle of an arrival makes room for what comes after it.
        """
        for run in talk.runs:
            if run.ghost and run.leader.ended:
                self.finish(run)
        while True:
            if talk.queue and started(talk.queue[0]):
                self._start(talk, now)
            elif talk.steps:
                talk.steps.pop(0)()
            else:
                return

    def _buffer(self, talk: Talk, turn: Turn, now: float) -> None:
        message, policy = turn.leader, turn.plan.policy
        if talk.window is None:
            if talk.full(turn.plan) and policy.drop is Drop.NEW:
                self._admit(talk, turn)
                return
            message.place = Place.WINDOW
            talk.window = Window(turn, now + policy.debounce_s, now + WINDOW_STRETCH * policy.debounce_s)
            return
        window = talk.window
        message.place = Place.WINDOW
        window.turn.messages.append(message)
        window.turn.after |= turn.after
        window.closes_at = min(now + policy.debounce_s, window.last_call)
        if len(window.turn.messages) >= WINDOW_MESSAGES:
            self.close_window(talk)

    def close_window(self, talk: Talk) -> None:
        window, talk.window = talk.window, None
        if window is not None:
            self._admit(talk, window.turn)

    def _admit(self, talk: Talk, turn: Turn) -> None:
        run = self._steered(talk, turn)
        if run is not None:
            run.inbox.append(turn)
            for message in turn.messages:
                message.place, message.run = Place.INBOX, run
            return
        if talk.full(turn.plan) and turn.plan.policy.drop is Drop.NEW:
            self.end(turn.messages, End.REFUSED, None)
            return
        while talk.full(turn.plan):
            oldest = next(waiting for waiting in talk.queue if not waiting.plan.resumed)
            talk.queue.remove(oldest)
            self.end(oldest.messages, End.DROPPED, None)
        talk.queue.append(turn)
        for message in turn.messages:
            message.place = Place.QUEUE

    def _steered(self, talk: Talk, turn: Turn) -> Running | None:
        leader = turn.leader
        if turn.plan.policy.mode is not Mode.STEER or talk.queue or leader.parent is not None:
            return None
        for run in reversed(talk.runs):
            if run.owner == leader.plan.sender and run.leader.plan.steerable and run.cancellable:
                return run if len(run.inbox) < turn.plan.policy.cap else None
        return None

    # ── a run ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, talk: Talk, now: float) -> None:
        """The head of the queue got its slot: there must have been room for it."""
        leader = talk.queue[0].leader
        if self.closed:
            self.complain(f"{leader} got a slot after the scheduler had closed")
        if not talk.ready:
            self.complain(f"{leader} got a slot, but {talk.runs} run in {talk.key!r} with a limit of {talk.limit}")
        self._check_slot(leader.lane)
        messages = self._next_turn(talk)
        run = Running(len(self.runs) + 1, talk, messages, now, len(messages))
        self.runs.append(run)
        talk.runs.append(run)
        for message in messages:
            message.place, message.run = Place.RUN, run

    def _next_turn(self, talk: Talk) -> list[Message]:
        turn = talk.queue.pop(0)
        messages = list(turn.messages)
        if turn.plan.policy.mode is Mode.COLLECT:
            while talk.queue:
                other = talk.queue[0]
                if other.plan.policy.mode is not Mode.COLLECT or not together(turn.leader, other.leader):
                    break
                messages += talk.queue.pop(0).messages
        return messages

    def _check_slot(self, lane: str) -> None:
        here = [run for run in self.runs if run.lane == lane and not run.over]
        held = [run for run in here if run.slot and not run.ghost]
        returning = [run for run in here if run.returning]
        if len(held) + len(returning) >= self.limits[lane]:
            self.complain(f"a slot of {lane!r} was given away, but {held} have and {returning} are next in line for it")

    def begin(self, run: Running, messages: list[Message]) -> None:
        """Its handler takes its first step, with these messages in hand."""
        if run.begun or run.over:
            self.complain(f"{run} began a second time")
        if run.reason is not None:
            self.complain(f"{run} began although it had been cancelled before")
        if messages != run.messages:
            self.complain(f"{run} got {messages}")
        run.begun = True
        self.check_lane(run.lane)
        alive = [other for other in run.talk.runs if other.begun and not other.over]
        if len(alive) > 1 and run.leader.plan.policy.max_concurrent == 1 and run.key != "room":
            self.complain(f"two handlers alive in {run.key!r}: {alive}")

    def check_lane(self, lane: str) -> None:
        executing = [run for run in self.runs if run.lane == lane and run.executing]
        if len(executing) > self.allowed[lane]:
            self.complain(f"{len(executing)} handlers at work on {lane!r}, allowed {self.allowed[lane]}: {executing}")

    def resize(self, lane: str, limit: int) -> None:
        self.limits[lane] = limit
        self.allowed[lane] = max(self.allowed[lane], limit)

    def settle(self) -> None:
        """All that had a slot has begun: a lane that was made smaller holds no more than what still runs."""
        for lane, limit in self.limits.items():
            executing = sum(run.lane == lane and run.executing for run in self.runs)
            self.allowed[lane] = max(limit, executing)

    def steer(self, run: Running) -> list[Message]:
        """What the run finds in its inbox at a boundary."""
        if not run.cancellable:
            return []
        taken = [message for turn in run.inbox for message in turn.messages]
        run.inbox = []
        run.messages = run.messages + taken
        for message in taken:
            message.place = Place.RUN
        return taken

    def finish(self, run: Running) -> None:
        """The last step of its handler."""
        run.over = True
        run.slot = run.parked = run.slot_unsure = False
        if not run.fenced:
            self._release(run)
            self.end(run.messages, *self._verdict(run))

    def get_stuck(self, run: Running, now: float) -> None:
        """It has been told of: it was cancelled, or its time is up while its result is being written."""
        if run.stuck_at is not None:
            self.complain(f"{run} was told of as stuck a second time")
        if run.watched_at is None and run.sealed and run.leader.plan.policy.timeout_s is not None:
            run.watched_at = run.started_at + run.leader.plan.policy.timeout_s
        if run.over or run.watched_at is None or now < run.watched_at + TOLD_AFTER_S - HAIR_S:
            self.complain(f"{run} was called stuck, expected to end since {run.watched_at}, now {now}")
        run.stuck_at = now

    def fence(self, run: Running, now: float) -> None:
        if run.over or run.fenced or run.watched_at is None or now < run.watched_at + FENCED_AFTER_S - HAIR_S:
            self.complain(f"{run} was fenced, expected to end since {run.watched_at}, now {now}")
        run.fenced = True
        run.reason = run.reason or Reason.TIMEOUT
        self._release(run)
        self.end(run.messages, *self._verdict(run))

    def _release(self, run: Running) -> None:
        talk = run.talk
        talk.runs.remove(run)
        for turn in run.inbox:
            for message in turn.messages:
                message.place, message.run = Place.QUEUE, None
        talk.queue = sorted([*run.inbox, *talk.queue], key=lambda turn: turn.leader.number)
        run.inbox = []
        keeper = run.leader.keeper or talk  # a living parent looks after its grandchildren
        for child in run.children:
            child.keeper = keeper
        keeper.children |= run.children
        run.children = {}

    @staticmethod
    def _verdict(run: Running) -> tuple[End, Reason | None]:
        if run.reason is Reason.TIMEOUT:
            return End.TIMED_OUT, run.reason
        if run.reason is not None:
            return End.CANCELLED, run.reason
        return (End.FAILED if run.raised else End.DONE), None

    # ── waiting inside a run ─────────────────────────────────────────────────────────────────────────────────────

    def waits_in_circle(self, run: Running, message: Message, *, broken_off: bool) -> bool:
        """Whether ``message`` could never end while ``run`` waits for it.

        With ``broken_off`` waits count whose time limit is over: their tasks may not have noticed yet.
        """
        seen: set[Message] = set()
        pending = [message]
        while pending:
            awaited = pending.pop()
            if awaited.key == run.key:
                return True
            if awaited in seen:
                continue
            seen.add(awaited)
            before = self.talk(awaited.key).runs if awaited.run is None else [awaited.run]
            waits = [wait for other in before for wait in other.waits if broken_off or not wait.broken_off]
            pending += [wait.message for wait in waits if wait.message.due is None]
        return False

    def lend(self, run: Running, wait: Wait) -> None:
        run.waits.append(wait)
        if run.slot:
            run.slot, run.parked = False, True

    def take_back(self, run: Running, wait: Wait) -> None:
        """The wait was refused: the run never lent its slot."""
        run.waits.remove(wait)
        if not run.waits and run.parked:
            run.slot, run.parked = True, False

    def regain(self, run: Running, wait: Wait) -> None:
        run.waits.remove(wait)
        if run.over or run.waits or not run.parked:
            return
        run.parked = False
        if run.reason is not None:
            run.slot_unsure = True
        else:
            run.slot = True
            self.check_lane(run.lane)
