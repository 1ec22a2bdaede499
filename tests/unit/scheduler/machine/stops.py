"""What stops, interrupts, time limits and a shutdown must do: whom they reach, what they count, what is left.

Written from the promises, not from the scheduler: every message and every run is counted once, where it was when the
verb began; a stop goes down the whole tree of children, whatever state the generations in between are in.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from scheduler import End, Reason
from tests.unit.scheduler.machine.parts import Counts, Message, Place, Running, Talk, Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.scheduler.machine.plans import Plan


class Stops:
    """The state of the model, and everything that ends a message before its handler does."""

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

    # ── cancelling ───────────────────────────────────────────────────────────────────────────────────────────────

    def cancel_all(self, talk: Talk, sender: str | None, now: float) -> Counts:
        return self._cancel(talk, sender, Reason.STOPPED, now, lambda message: True)

    def _cancel(
        self, talk: Talk, sender: str | None, reason: Reason, now: float, meant: Callable[[Message], bool]
    ) -> Counts:
        counts = Counts()
        self._take_waiting(talk, counts, lambda message: message.owned_by(sender) and meant(message))
        runs = [run for run in talk.runs if sender is None or run.owner == sender]
        for run in runs:
            self._ask_to_end(run, counts, reason, now)
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
            self._ask_to_end(alive[0], counts, reason, now)
            self._cancel_tree(list(alive[0].children), counts, reason, now)
        elif open_orphans:
            self._cancel_tree(open_orphans[:1], counts, reason, now)
        elif runs or orphans:
            for run in (*runs, *(child.run for child in orphans if child.run is not None)):
                self._ask_to_end(run, counts, reason, now)
        else:
            self._take_waiting(talk, counts, lambda message: message.owned_by(sender))
        return self._done(talk, counts, reason)

    def time_out(self, run: Running, now: float) -> None:
        counts = Counts()
        self._ask_to_end(run, counts, Reason.TIMEOUT, now)
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

    def _cancel_tree(self, below: list[Message], counts: Counts, reason: Reason, now: float) -> None:
        """All that ``below`` began or would begin, whatever state the generations in between are in."""
        while below:
            child = below.pop()
            if child in counts.taken:
                continue
            if child.place is Place.RUN and child.run is not None:
                self._ask_to_end(child.run, counts, reason, now)
                below += child.run.children
            else:
                counts.cancelled += self._take_child(child, counts)

    @staticmethod
    def _ask_to_end(run: Running, counts: Counts, reason: Reason, now: float) -> None:
        if run in counts.met:
            return
        counts.met.add(run)
        if run.sealed:
            counts.finishing += 1
        elif run.reason is not None:
            counts.stopping += 1
        else:
            counts.cancelled += 1
            counts.ending += run.messages
            run.reason, run.watched_at = reason, now

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
            for run in talk.runs:
                self._ask_to_end(run, counts, Reason.CLOSING, now)
                if run.watched_at is None:
                    run.watched_at = now
        return unstarted, counts.cancelled

    def _end_waiting(self, mine: Callable[[Message], bool]) -> int:
        counts = Counts()
        for talk in self.talks.values():
            self._take_waiting(talk, counts, mine)
        self.end(counts.taken, End.CLOSED, Reason.CLOSING)
        return len(counts.taken)
