"""What the history says about each message and each run: the facts that the promises are checked against. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation import script
from tests.simulation.history import Event, What

if TYPE_CHECKING:
    from collections.abc import Iterable

TERMINAL = frozenset({"done", "stopped", "dropped", "failed", "quarantined"})


@dataclass(slots=True, eq=False)
class Reply:
    """Something that was put into the outbox."""

    session: str
    text: str
    about: tuple[int, ...]
    urgent: bool
    written: int
    delivered: int | None = None


@dataclass(slots=True, eq=False)
class Message:
    """One accepted message. Places are indexes into the history."""

    id: int
    session: str
    sender: str
    group: bool
    admin: bool
    text: str
    accepted: int
    state: str = "accepted"
    attempts: int = 0
    began: bool = False
    """The store has seen it begin, and not wait again since."""
    replies: list[Reply] = field(default_factory=list)
    turn: tuple[int, int] = (0, 0)
    """The life and run that it was last part of."""
    # what is true in the present life only
    queued: int | None = None
    run: int = 0
    over: bool = False
    """The scheduler has told its end."""
    put_off: bool = False
    """By a shutdown: it waits in the store for the next start."""
    again: bool = False
    """It was queued before."""
    doubled: bool = False
    """It was queued while it was in the scheduler's hands already."""
    steered: bool = False
    together: int = 0
    """The message whose turn it joined in the window."""

    @property
    def command(self) -> bool:
        return script.is_command(self.text)

    @property
    def stop(self) -> bool:
        return script.is_stop(self.text)

    @property
    def terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def waits(self) -> bool:
        """It is in the scheduler's hands and has not started."""
        return self.queued is not None and not self.run and not self.over

    def may_stop(self, other: Message) -> bool:
        """In a group members stop what they started themselves; admins, and people in their own chat, everything."""
        if self.session != other.session:
            return False
        return not self.group or self.admin or self.sender == other.sender


@dataclass(slots=True, eq=False)
class Run:
    """One turn of people's messages, or one helper's."""

    id: int
    session: str
    ids: tuple[int, ...]
    cancelling: bool = False
    closing: bool = False
    label: str = ""
    """What its agent works on."""
    returned: bool = False
    """Its agent has answered without having been cancelled: it is too late to stop it."""
    over: bool = False

    @property
    def alive(self) -> bool:
        return not (self.cancelling or self.returned or self.over)


class Ledger:
    def __init__(self) -> None:
        self.messages: dict[int, Message] = {}
        self.by_marker: dict[str, Message] = {}
        self.by_session: dict[str, list[Message]] = {}
        self.replies: list[Reply] = []
        self.runs: dict[int, Run] = {}  # of the present life
        self.life = 0

    def see(self, place: int, event: Event) -> None:
        if event.what in STORE:
            self._see_store(place, event)
        elif event.life == self.life or event.what is What.OPENED:
            self._see_life(place, event)

    def of(self, ids: Iterable[int]) -> list[Message]:
        return [self.messages[one] for one in ids]

    def named(self, text: str) -> list[Message]:
        return [self.by_marker[marker] for marker in script.markers(text) if marker in self.by_marker]

    def of_session(self, session: str) -> list[Message]:
        return self.by_session.get(session, [])

    def _see_store(self, place: int, event: Event) -> None:
        match event.what:
            case What.ACCEPTED:
                self._accept(place, event)
            case What.BEGUN:
                for message in self.of(event.ids):
                    if message.state == "accepted":
                        message.state = "running"
                        message.began = True
                        message.attempts += 1
            case What.SETTLED | What.STOPPED:
                for message in self.of(event.ids):
                    message.state = event.text or "stopped"
            case What.PUT_BACK:
                for message in self.of(event.ids):
                    message.state = "accepted"
                    message.began = False
                    message.attempts -= 1
            case What.REPLY:
                reply = Reply(event.session, event.text, event.ids, event.detail == "urgent", place)
                self.replies.append(reply)
                for message in self.of(event.ids):
                    message.replies.append(reply)

    def _accept(self, place: int, event: Event) -> None:
        sender, *rights = event.detail.split()
        message = Message(
            event.ids[0], event.session, sender, "group" in rights, "admin" in rights, event.text, accepted=place
        )
        self.messages[message.id] = message
        self.by_session.setdefault(message.session, []).append(message)
        for marker in script.markers(event.text):
            self.by_marker[marker] = message

    def _see_life(self, place: int, event: Event) -> None:
        match event.what:
            case What.OPENED:
                self._begin_life(event.life)
            case What.RESUMED:
                for message in self.of(event.ids):
                    message.state = "accepted"
                    message.began = False
            case What.QUEUED:
                for message in self.of(event.ids):
                    message.again = message.queued is not None
                    message.doubled = message.again and not message.over
                    message.queued, message.run, message.over = place, 0, False
            case What.JOINED | What.STEERED:
                self._join(event)
            case What.STARTED:
                self.runs[event.run] = Run(event.run, event.session, event.ids)
                for message in self.of(event.ids):
                    message.run, message.turn = event.run, (event.life, event.run)
            case What.CALL:
                self._take_steering(event)
            case What.CANCELLING:
                self.runs[event.run].cancelling = True
                self.runs[event.run].closing = event.detail == "closing"
            case What.IN:
                self.runs[event.run].label = event.text
            case What.OUT:
                self.runs[event.run].returned = event.detail == "returned"
            case What.ENDED:
                self._end(event)
            case What.DELIVERED:
                self._deliver(place, event)

    def _end(self, event: Event) -> None:
        run = self.runs.get(event.run)
        if run is not None:
            run.over = True
        for message in self.of(event.ids):
            message.over = True
            message.put_off = event.detail == "closed" or (run is not None and run.closing)

    def _begin_life(self, number: int) -> None:
        self.life = number
        self.runs = {}
        for message in self.messages.values():
            message.queued, message.run, message.together = None, 0, 0
            message.over = message.put_off = message.steered = False

    def _join(self, event: Event) -> None:
        message = self.messages[event.ids[0]]
        if event.what is What.JOINED:
            before = [other for other in self.of_session(message.session) if other.waits and other is not message]
            last = max(before, key=lambda other: other.queued or 0, default=message)
            message.together = last.together or last.id
            return
        for other in self.of_session(message.session):
            if message.id in (other.id, other.together):
                other.steered = True

    def _take_steering(self, event: Event) -> None:
        """A run that begins more than it was started with has taken what steers it."""
        if event.text.startswith("begin turn-"):
            run = int(event.text.removeprefix("begin turn-"))
            for message in self.of(event.ids):
                message.run, message.turn = run, (event.life, run)

    def _deliver(self, place: int, event: Event) -> None:
        """The oldest undelivered reply with these words; else one that people get once more."""
        for reply in self.replies:
            if reply.session == event.session and reply.text == event.text and reply.delivered is None:
                reply.delivered = place
                return


STORE = frozenset({What.ACCEPTED, What.BEGUN, What.SETTLED, What.STOPPED, What.PUT_BACK, What.REPLY})
