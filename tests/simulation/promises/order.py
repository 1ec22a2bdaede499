"""P2: inside a session turns start in the order in which their messages were accepted, and replies arrive in order.

A message that is handed to a running turn is ahead of its time and not compared in a group, where several turns go at
once. What ran before a crash runs again alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.history import Event, What
from tests.simulation.promises import Promise

if TYPE_CHECKING:
    from tests.simulation.ledger import Ledger, Message, Reply
    from tests.simulation.world import World


class Order(Promise):
    def __init__(self, world: World, ledger: Ledger) -> None:
        self._world = world
        self._ledger = ledger
        self._queued_in_step: dict[str, tuple[int, int]] = {}  # by session: the step, and the latest message
        self._turns: dict[str, list[int]] = {}  # the messages of each turn, as begun
        self._undelivered: dict[str, list[Reply]] = {}
        self._ahead: list[tuple[Message, Message]] = []  # who started in this step, and who came earlier

    def see(self, place: int, event: Event) -> None:
        match event.what:
            case What.QUEUED if event.ids:
                self._queued(event)
            case What.STARTED if event.ids:
                self._started(event)
            case What.IN:
                self._texts(event)
            case What.BEGUN if event.text.startswith("turn-"):
                self._alone(event)
            case What.REPLY:
                if not self._ledger.replies[-1].urgent:
                    self._undelivered.setdefault(event.session, []).append(self._ledger.replies[-1])
            case What.DELIVERED:
                self._replies(event)

    def after_step(self, now: float) -> None:
        """A start may be told before the end that made way for it."""
        for started, earlier in self._ahead:
            if earlier.waits:
                self._broken(f"message {started.id} started before {earlier.id}, which came earlier and still waits")
        self._ahead.clear()

    def _queued(self, event: Event) -> None:
        """What is taken in together is taken in by age."""
        step, latest = self._queued_in_step.get(event.session, (-1, 0))
        if step == event.step and latest > event.ids[0]:
            self._broken(f"message {event.ids[0]} was queued after the later message {latest}")
        self._queued_in_step[event.session] = (event.step, event.ids[0])

    def _started(self, event: Event) -> None:
        turn = self._ledger.of(event.ids)
        places = [message.queued or 0 for message in turn]
        if places != sorted(places):
            self._broken(f"the messages of turn {event.run} are not in order: {event.ids}")
        if len({message.sender for message in turn}) > 1:
            self._broken(f"turn {event.run} mixes senders")
        for other in self._ledger.of_session(event.session):
            if other.waits and (other.queued or 0) < places[0] and not self._apart(other, turn[0]):
                self._ahead.append((turn[0], other))

    def _apart(self, one: Message, other: Message) -> bool:
        return one.group and (one.steered or other.steered)

    def _texts(self, event: Event) -> None:
        if ">" in event.text:
            return
        places = [message.queued or 0 for message in self._ledger.named(event.text)]
        if places != sorted(places):
            self._broken(f"run {event.run} was given its texts out of order: {event.text!r}")

    def _alone(self, event: Event) -> None:
        turn = self._turns.setdefault(f"{event.life} {event.text}", [])
        turn += [one for one in event.ids if one not in turn]
        again = [message.id for message in self._ledger.of(turn) if message.attempts > 1]
        if again and len(turn) > 1:
            self._broken(f"message {again[0]} was running when a process died and now runs together with {turn}")

    def _replies(self, event: Event) -> None:
        """Each reply arrives, for the first time, after all that were written earlier for its session."""
        waiting = self._undelivered.get(event.session, [])
        for place, reply in enumerate(waiting):
            if reply.delivered is not None:
                del waiting[place]
                if place:
                    self._broken(f"{reply.text!r} was delivered before the older {waiting[0].text!r}")
                return

    def _broken(self, why: str) -> None:
        self._world.report("P2", why)
