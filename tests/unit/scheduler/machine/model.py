"""Where every message of every session must be, worked out from what was asked and what the handlers saw.

The model never looks into the scheduler. It is told of each request before the scheduler is, of each start, of each
handler's first and last step, and of the few things that happen by the clock. From that it knows every session's
window, queue, runs and inboxes, and what the next turn, the next count and each message's end have to be.

    accept ─▶ WINDOW ─▶ QUEUE ─▶ RUN ─▶ OVER         what differs is a complaint; complaints fail the example
                 └────▶ INBOX ──┘ │
                          ▲       ▼
                          └─ back to QUEUE, in its old place

One rule decides the hard cases: a verb first changes everything it has to change and only then tells anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from scheduler import Drop, End, Mode, Reason

if TYPE_CHECKING:
    import trio

    from scheduler import Ticket
    from tests.unit.scheduler.machine.plans import Plan

TOLD_AFTER_S = 10.0
FENCED_AFTER_S = 60.0
WINDOW_MESSAGES = 20
WINDOW_STRETCH = 5


class Place(Enum):
    NEW = "new"
    WINDOW = "window"
    QUEUE = "queue"
    INBOX = "inbox"
    RUN = "run"
    OVER = "over"


@dataclass(eq=False, slots=True)
class Message:
    number: int
    plan: Plan
    key: str
    lane: str
    parent: Running | None
    keeper: Running | Talk | None = None  # who has it among their open children
    place: Place = Place.NEW
    run: Running | None = None  # the run it is part of, or steers
    due: tuple[End, Reason | None] | None = None  # how it has to end, once that is decided
    told: int = 0
    ticket: Ticket | None = None

    @property
    def owner(self) -> str:
        return self.plan.sender if self.parent is None else self.parent.owner

    @property
    def ended(self) -> bool:
        return self.ticket is not None and self.ticket.outcome is not None

    def owned_by(self, sender: str | None) -> bool:
        return sender is None or self.owner == sender

    def __repr__(self) -> str:
        return f"#{self.number}"


@dataclass(eq=False, slots=True)
class Turn:
    """Messages that will run together."""

    messages: list[Message]
    after: set[Running] = field(default_factory=set)  # what an interrupt has to outlast

    @property
    def leader(self) -> Message:
        return self.messages[0]

    @property
    def plan(self) -> Plan:
        return self.leader.plan


@dataclass(eq=False, slots=True)
class Window:
    turn: Turn
    closes_at: float
    last_call: float


@dataclass(eq=False, slots=True)
class Wait:
    """One task of a run inside `Ticket.wait`, perhaps with a time limit of its own."""

    message: Message
    patience: trio.CancelScope | None = None

    @property
    def broken_off(self) -> bool:
        return self.patience is not None and self.patience.cancel_called


@dataclass(eq=False, slots=True)
class Running:
    """A run, from its slot to the last step of its handler."""

    number: int
    talk: Talk
    messages: list[Message]
    started_at: float
    size: int  # how many messages started together
    inbox: list[Turn] = field(default_factory=list)
    children: dict[Message, None] = field(default_factory=dict)  # open ones
    waits: list[Wait] = field(default_factory=list)
    begun: bool = False
    over: bool = False
    raised: bool = False
    reason: Reason | None = None
    watched_at: float | None = None  # since when it is expected to end
    sealed: bool = False
    stuck_at: float | None = None  # when it was told of
    fenced: bool = False
    slot: bool = True
    parked: bool = False
    slot_unsure: bool = False  # cancelled while it had lent its slot: it may clean up without one

    @property
    def leader(self) -> Message:
        return self.messages[0]

    @property
    def owner(self) -> str:
        return self.leader.owner

    @property
    def lane(self) -> str:
        return self.leader.lane

    @property
    def key(self) -> str:
        return self.talk.key

    @property
    def ghost(self) -> bool:
        """Cancelled before its first step: it will end without one, at a moment that nobody sees."""
        return self.reason is not None and not self.begun and not self.over

    @property
    def executing(self) -> bool:
        return self.begun and not self.over and not self.waits and not self.slot_unsure

    def overdue(self, now: float) -> bool:
        """It should have ended, been told of or been fenced by now."""
        if self.over or self.fenced or self.reason is None or self.watched_at is None:
            return False
        if self.stuck_at is None:
            return self.watched_at + TOLD_AFTER_S < now
        return self.stuck_at + FENCED_AFTER_S - TOLD_AFTER_S < now

    @property
    def cancellable(self) -> bool:
        return self.reason is None and not self.sealed

    @property
    def returning(self) -> bool:
        """What it waited for has ended, and it wants its slot back."""
        return self.parked and self.reason is None and all(wait.message.ended for wait in self.waits)

    @property
    def in_line(self) -> bool:
        """With all tasks blocked: it wants its slot back, because its waits have ended or were broken off."""
        return self.parked and all(wait.message.ended or wait.broken_off for wait in self.waits)

    def __repr__(self) -> str:
        return f"run {self.number} of {self.messages} in {self.key!r} on {self.lane!r}"


@dataclass(eq=False, slots=True)
class Talk:
    """A session."""

    key: str
    window: Window | None = None
    queue: list[Turn] = field(default_factory=list)
    runs: list[Running] = field(default_factory=list)
    children: dict[Message, None] = field(default_factory=dict)  # open ones, of runs that are over
    limit: int = 1
    throttled: bool = False
    steps: list[Callable[[], None]] = field(default_factory=list)  # what is left of an arrival

    @property
    def busy(self) -> bool:
        return bool(self.window or self.queue or self.runs or self.children)

    @property
    def ready(self) -> bool:
        """Its head needs nothing but a slot."""
        if not self.queue or len(self.runs) >= self.limit:
            return False
        return all(run.over or run.fenced for run in self.queue[0].after)

    def heed(self, plan: Plan) -> None:
        if plan.context_used >= 0.6:
            self.throttled = True
        elif plan.context_used < 0.5:
            self.throttled = False
        self.limit = 1 if self.throttled else plan.policy.max_concurrent

    def full(self, plan: Plan) -> bool:
        return len(self.queue) >= plan.policy.cap and not plan.resumed

    @property
    def buffered(self) -> int:
        return len(self.window.turn.messages) if self.window else 0

    @property
    def waiting(self) -> int:
        return sum(len(turn.messages) for turn in self.queue)

    @property
    def steering(self) -> int:
        return sum(len(turn.messages) for run in self.runs for turn in run.inbox)


@dataclass(slots=True)
class Counts:
    """What a cancel must say it found."""

    buffered: int = 0
    queued: int = 0
    waiting: int = 0
    cancelled: int = 0  # runs, and messages and runs below them
    stopping: int = 0
    finishing: int = 0
    left: int = 0
    taken: list[Message] = field(default_factory=list)
    ending: list[Message] = field(default_factory=list)  # those of the runs that were asked to end


def together(one: Message, other: Message) -> bool:
    return (
        one.plan.sender == other.plan.sender
        and one.lane == other.lane
        and one.plan.thread == other.plan.thread
        and one.parent is other.parent
    )


class Model:
    def __init__(self, limits: dict[str, int], complain: Callable[[str], None]) -> None:
        self.complain = complain
        self.limits = dict(limits)
        self.allowed = dict(limits)  # more than the limit while a lane that was made smaller empties
        self.talks: dict[str, Talk] = {}
        self.messages: list[Message] = []
        self.runs: list[Running] = []
        self.closing = False
        self.closed = False
        self._numbers = count(1)

    def message(self, plan: Plan, parent: Running | None) -> Message:
        number = next(self._numbers)
        lane = plan.lane if plan.lane in self.limits else "main"
        message = Message(number, plan, plan.session or f"own-{number}", lane, parent)
        self.messages.append(message)
        return message

    def talk(self, key: str) -> Talk:
        return self.talks.setdefault(key, Talk(key))

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
            self.end(talk.queue.pop(0).messages, End.DROPPED, None)
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
        if run.over or run.watched_at is None or now < run.watched_at + TOLD_AFTER_S:
            self.complain(f"{run} was called stuck, expected to end since {run.watched_at}, now {now}")
        run.stuck_at = now

    def fence(self, run: Running, now: float) -> None:
        if run.over or run.fenced or run.watched_at is None or now < run.watched_at + FENCED_AFTER_S:
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

    # ── cancelling ───────────────────────────────────────────────────────────────────────────────────────────────

    def cancel_all(self, talk: Talk, sender: str | None, now: float) -> Counts:
        return self._cancel(talk, sender, Reason.STOPPED, now, lambda message: True)

    def _cancel(
        self, talk: Talk, sender: str | None, reason: Reason, now: float, meant: Callable[[Message], bool]
    ) -> Counts:
        counts = Counts()
        self._take_waiting(talk, counts, lambda message: message.owned_by(sender) and meant(message))
        runs = [run for run in talk.runs if sender is None or run.owner == sender]
        self._cancel_runs(runs, counts, reason, now)
        below = [child for run in runs for child in run.children]
        below += [child for child in talk.children if child.owned_by(sender)]
        self._cancel_tree(below, counts, reason, now)
        return self._done(talk, counts, reason)

    def cancel_oldest(self, talk: Talk, sender: str | None, now: float) -> Counts:
        counts, reason = Counts(), Reason.STOPPED
        runs = [run for run in talk.runs if sender is None or run.owner == sender]
        orphans = sorted((child for child in talk.children if child.owned_by(sender)), key=lambda child: child.number)
        alive = [run for run in runs if run.cancellable]
        open_orphans = [child for child in orphans if child.run is None or child.run.cancellable]
        if alive:
            self._cancel_runs(alive[:1], counts, reason, now)
            self._cancel_tree(list(alive[0].children), counts, reason, now)
        elif open_orphans:
            self._cancel_tree(open_orphans[:1], counts, reason, now)
        elif runs or orphans:
            self._count_dying({*runs, *(child.run for child in orphans if child.run is not None)}, counts)
        else:
            self._take_waiting(talk, counts, lambda message: message.owned_by(sender))
        return self._done(talk, counts, reason)

    def time_out(self, run: Running, now: float) -> None:
        counts = Counts()
        self._cancel_runs([run], counts, Reason.TIMEOUT, now)
        self._cancel_tree(list(run.children), counts, Reason.PARENT, now)
        self._done(run.talk, counts, Reason.PARENT)

    def _interrupt(self, talk: Talk, plan: Plan, now: float) -> set[Running]:
        """End the sender's work, or everybody's; but the sender's own window is part of what is being said now."""
        sender = plan.sender if plan.policy.shared else None
        window = talk.window.turn if talk.window is not None and talk.window.turn.plan.sender == plan.sender else None
        spared = window.messages if window is not None else []
        dying = {run for run in talk.runs if sender is None or run.owner == sender}
        self._cancel(talk, sender, Reason.INTERRUPTED, now, lambda message: message not in spared)
        return dying

    def _take_waiting(self, talk: Talk, counts: Counts, mine: Callable[[Message], bool]) -> None:
        if talk.window is not None and mine(talk.window.turn.leader):
            counts.buffered += len(talk.window.turn.messages)
            counts.taken += talk.window.turn.messages
            talk.window = None
        for run in talk.runs:
            gone = [turn for turn in run.inbox if mine(turn.leader)]
            run.inbox = [turn for turn in run.inbox if turn not in gone]
            counts.queued += self._take(gone, counts)
        head = talk.queue[0] if talk.ready else None
        gone = [turn for turn in talk.queue if mine(turn.leader)]
        talk.queue = [turn for turn in talk.queue if turn not in gone]
        counts.waiting += self._take([turn for turn in gone if turn is head], counts)
        counts.queued += self._take([turn for turn in gone if turn is not head], counts)

    @staticmethod
    def _take(turns: list[Turn], counts: Counts) -> int:
        taken = [message for turn in turns for message in turn.messages]
        counts.taken += taken
        return len(taken)

    def _cancel_runs(self, runs: list[Running], counts: Counts, reason: Reason, now: float) -> None:
        self._count_dying({run for run in runs if not run.cancellable}, counts)
        for run in runs:
            if run.cancellable:
                self._ask_to_end(run, counts, reason, now)

    @staticmethod
    def _ask_to_end(run: Running, counts: Counts, reason: Reason, now: float) -> None:
        counts.cancelled += 1
        counts.ending += run.messages
        run.reason, run.watched_at = reason, now

    @staticmethod
    def _count_dying(runs: Iterable[Running], counts: Counts) -> None:
        for run in runs:
            counts.finishing += run.sealed
            counts.stopping += not run.sealed

    def _cancel_tree(self, below: list[Message], counts: Counts, reason: Reason, now: float) -> None:
        """All that ``below`` began or would begin, whatever state the generations in between are in."""
        while below:
            child = below.pop()
            if child in counts.taken:
                continue
            if child.place is Place.RUN and child.run is not None:
                if child.run.cancellable:
                    self._ask_to_end(child.run, counts, reason, now)
                below += child.run.children
            else:
                counts.cancelled += self._take_child(child, counts)

    def _take_child(self, child: Message, counts: Counts) -> int:
        talk = self.talk(child.key)
        if talk.window is not None and child in talk.window.turn.messages:
            talk.window.turn.messages.remove(child)
            if not talk.window.turn.messages:
                talk.window = None
            counts.taken.append(child)
            return 1
        for turn in talk.queue:
            if turn.leader is child:
                talk.queue.remove(turn)
                return self._take([turn], counts)
            if child in turn.messages:
                turn.messages.remove(child)
                counts.taken.append(child)
                return 1
        self.complain(f"{child} is nowhere in {talk.key!r}")
        return 0

    def _done(self, talk: Talk, counts: Counts, reason: Reason) -> Counts:
        counts.left = talk.buffered + talk.waiting + talk.steering
        self.end(counts.taken, End.CANCELLED, reason)
        return counts

    # ── closing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def begin_closing(self) -> int:
        self.closing = True
        return self._end_waiting(lambda message: message.parent is None)

    def close(self, now: float) -> tuple[int, int]:
        """Nothing starts any more. Returns how many messages never started and how many runs had to be cancelled."""
        self.closing = self.closed = True
        unstarted = self._end_waiting(lambda message: True)
        counts = Counts()
        for talk in self.talks.values():
            self._cancel_runs([run for run in talk.runs if run.cancellable], counts, Reason.CLOSING, now)
            for run in talk.runs:
                if run.watched_at is None:
                    run.watched_at = now
        return unstarted, counts.cancelled

    def _end_waiting(self, mine: Callable[[Message], bool]) -> int:
        counts = Counts()
        for talk in self.talks.values():
            self._take_waiting(talk, counts, mine)
        self.end(counts.taken, End.CLOSED, Reason.CLOSING)
        return len(counts.taken)

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def end(self, messages: list[Message], end: End, reason: Reason | None) -> None:
        """Decide how these end; the scheduler has to tell the same."""
        for message in messages:
            if message.due is not None:
                self.complain(f"{message} ends a second time: {message.due}, now {end}")
            message.due = (end, reason)
            if message.place is not Place.RUN:
                message.run = None
            message.place = Place.OVER
            if message.keeper is not None:
                del message.keeper.children[message]
                message.keeper = None
