"""P7: a stop is answered within a second, whatever the load, and its answer overtakes the outbox.

Only our own time counts: while store or channel take theirs on the way of this very answer, the watch stands still.
Another chat's trouble is no excuse.

    taken up ─▶ stop ─▶ begin ─▶ settle ─▶ (one reply that is being sent to this chat) ─▶ outbox ─▶ send
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.history import Event, What
from tests.simulation.promises import Promise

if TYPE_CHECKING:
    from tests.simulation.ledger import Ledger, Message
    from tests.simulation.world import World

LONGEST_S = 1.0
SHARED = frozenset({"outbox"})


@dataclass(slots=True)
class Watch:
    """A stopwatch for one stop: runs from being taken up, stands still while others take their time."""

    since: float
    ran: float = 0.0
    busy: set[str] = field(default_factory=set)
    """What it waits for that is not ours."""
    written: bool = False
    overtaken: int = 0
    """Ordinary replies that were sent although its answer was there."""

    def look(self, now: float) -> None:
        if not self.busy:
            self.ran += now - self.since
        self.since = now


class Swiftness(Promise):
    def __init__(self, world: World, ledger: Ledger) -> None:
        self._world = world
        self._ledger = ledger
        self._watches: dict[int, Watch] = {}
        self._resumed: set[int] = set()  # what an earlier process has left
        self._outbound: set[str] = set()  # what the way out waits for

    def see(self, place: int, event: Event) -> None:
        match event.what:
            case What.OPENED:
                self._watches.clear()
                self._outbound.clear()
            case What.RESUMED:
                self._resumed = {message.id for message in self._ledger.of(event.ids) if message.stop}
            case What.ANSWER if event.text == "accept":
                self._take_up(event)
            case What.CALL:
                self._take_up_again(event)
                self._busy(event, event.text)
            case What.ANSWER:
                self._free(event, event.text)
            case What.SEND:
                self._overtaken(event)
                self._free(event, f"rest of {event.session}")
                self._busy(event, f"send to {event.session}")
            case What.UNSENT:
                self._free(event, f"send to {event.session}")
                self._busy(event, f"rest of {event.session}")
            case What.DELIVERED:
                self._free(event, f"send to {event.session}")
                self._delivered(event)

    def _take_up(self, event: Event) -> None:
        for message in self._ledger.of(event.ids):
            if message.stop and message.id not in self._resumed:
                self._start(message, event)

    def _take_up_again(self, event: Event) -> None:
        """After a restart the clock starts when the stop acts, not while what is set aside is being written."""
        verb, *about = event.text.split()
        acting = self._ledger.of_session(about[0]) if verb == "stop" else self._ledger.of(event.ids)
        for message in acting if verb in ("stop", "begin") else ():
            if message.id in self._resumed:
                self._start(message, event)

    def _start(self, message: Message, event: Event) -> None:
        if not message.terminal and message.id not in self._watches:
            self._watches[message.id] = Watch(event.at, busy=self._in_the_way(message.session))

    def _in_the_way(self, session: str) -> set[str]:
        return {verb for verb in self._outbound if verb in SHARED or concerns(verb, session)}

    def _busy(self, event: Event, verb: str) -> None:
        if verb in SHARED or verb.startswith(("rest of ", "send to ", "sent ")):
            self._outbound.add(verb)
        for number, watch in self._watches.items():
            if verb in SHARED or self._own(number, verb):
                watch.look(event.at)
                watch.busy.add(verb)

    def _free(self, event: Event, verb: str) -> None:
        self._outbound.discard(verb)
        for number, watch in self._watches.items():
            if verb in watch.busy:
                watch.look(event.at)
                watch.busy.discard(verb)
            if verb == f"settle command-{number}":
                watch.written = True

    def _overtaken(self, event: Event) -> None:
        """The send that was about to begin when the answer came may go first; nothing else that is not urgent."""
        same = [r for r in self._ledger.replies if (r.session, r.text) == (event.session, event.text)]
        if any(reply.urgent for reply in same):
            return
        for number, watch in self._watches.items():
            if self._ledger.messages[number].session != event.session:
                continue
            rests = any(verb.startswith("rest") for verb in watch.busy)
            watch.overtaken += watch.written and not rests
            if watch.overtaken > 1:
                self._broken(f"the answer to stop {number} waits behind {watch.overtaken} replies")

    def _delivered(self, event: Event) -> None:
        for number, watch in list(self._watches.items()):
            message = self._ledger.messages[number]
            if any(reply.delivered is not None for reply in message.replies):
                watch.look(event.at)
                del self._watches[number]
                if watch.ran > LONGEST_S:
                    self._broken(f"the answer to stop {number} took {watch.ran:.3f} s of our own time")

    def _broken(self, why: str) -> None:
        self._world.report("P7", why)

    def _own(self, number: int, verb: str) -> bool:
        """Whether the answer to this stop waits for that: its own writes, another stop here, or its own chat."""
        session = self._ledger.messages[number].session
        own = (f"begin command-{number}", f"settle command-{number}")
        return verb in own or verb.startswith(f"stop {session} ") or concerns(verb, session)


def concerns(verb: str, session: str) -> bool:
    """Whether it is about sending something to this chat."""
    return verb in (f"rest of {session}", f"send to {session}") or verb.startswith(f"sent {session} ")
