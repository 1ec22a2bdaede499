"""P1 and P6: every accepted message comes to an end, once, and its sender sees which.

done                      an answer that names it
failed dropped            a notice about it
quarantined interrupted
stopped                   the answer to a stop that covered it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation import script
from tests.simulation.history import Event, What
from tests.simulation.promises import Promise

if TYPE_CHECKING:
    from tests.simulation.ledger import Ledger, Message
    from tests.simulation.world import World


class Ends(Promise):
    def __init__(self, world: World, ledger: Ledger) -> None:
        self._world = world
        self._ledger = ledger
        self._started: dict[int, tuple[int, int]] = {}  # the life and run in which a message was given to the agent
        self._kept: list[str] = []
        self._shown: dict[str, int] = {}  # sessions in which something in progress is seen, since when
        self._acted: dict[int, int] = {}  # stop commands, and where the gateway first took each up

    def see(self, place: int, event: Event) -> None:
        match event.what:
            case What.OPENED:
                self._shown.clear()
            case What.ANSWER if event.text == "accept":
                self._take_up(place, event)
            case What.RESUMED:
                self._take_up(place, event)
            case What.QUEUED | What.CALL:
                self._again(event)
            case What.KEPT:
                self._kept += event.text.split(" | ")
            case What.IN if ">" not in event.text:
                self._given(place, event)
            case What.SHOWN:
                self._shown[event.session] = place
            case What.CLEARED:
                self._shown.pop(event.session, None)
            case What.DELIVERED:
                self._delivered(event)
            case What.STOPPED:
                self._commands(event)

    def end(self) -> None:
        for message in self._ledger.messages.values():
            if not message.terminal:
                self._world.report("P1", f"message {message.id} ({message.text!r}) is still {message.state}")
            elif not self._seen(message):
                self._world.report("P6", f"nobody was told that message {message.id} is {message.state}")
        kept = {marker for text in self._kept for marker in script.markers(text)}
        for marker in sorted(kept - set(self._ledger.by_marker)):
            self._world.report("P1", f"{marker} was acknowledged and is not in the store")
        for session in self._shown:
            self._world.report("P6", f"what was shown in {session} while it was in progress was never cleared")

    def _take_up(self, place: int, event: Event) -> None:
        for message in self._ledger.of(event.ids):
            if message.stop:
                self._acted.setdefault(message.id, place)

    def _again(self, event: Event) -> None:
        """What this life was done with is not queued again, nor is a command that was answered carried out again.

        What was stopped before it was ever queued may be: its delivery may have been on its way. It just never begins.
        """
        queued = event.what is What.QUEUED
        for message in self._ledger.of(event.ids if queued or event.text.startswith("begin command-") else ()):
            if message.terminal and (message.again or not queued):
                self._world.report("once", f"message {message.id} is {message.state} and is taken up again")
            if message.doubled:
                self._world.report("once", f"message {message.id} is queued twice")

    def _given(self, place: int, event: Event) -> None:
        """To the agent: not what has ended, and not twice in one life."""
        for message in self._ledger.named(event.text):
            before = self._started.get(message.id)
            if before is not None and before[0] == event.life:
                self._world.report("once", f"message {message.id} runs twice in one life: {before[1]} and {event.run}")
            if message.terminal:
                promise = "P7" if message.state == "stopped" else "once"
                self._world.report(promise, f"message {message.id} starts although it is {message.state}")
            self._started[message.id] = (event.life, event.run)

    def _commands(self, event: Event) -> None:
        for message in self._ledger.of(event.ids):
            if message.command:
                self._world.report(
                    "P6", f"{message.text!r} (message {message.id}) was stopped, it will not be answered"
                )

    def _delivered(self, event: Event) -> None:
        if not any(reply.session == event.session and reply.text == event.text for reply in self._ledger.replies):
            self._world.report("P6", f"{event.text!r} was delivered and is in nobody's outbox")

    def _seen(self, message: Message) -> bool:
        told = [reply for reply in message.replies if reply.delivered is not None]
        if message.state == "failed" and not told:
            return self._told_with(message)
        if message.command or message.state in ("failed", "dropped", "quarantined"):
            return bool(told)
        if message.state == "done":
            return any(message in self._ledger.named(reply.text) for reply in told)
        return bool(told) or any(self._covers(stop, message) for stop in self._ledger.of_session(message.session))

    def _told_with(self, message: Message) -> bool:
        """A turn that fails is told of once, also to what it took up on its way and had not begun."""
        return any(
            other.turn == message.turn and reply.delivered is not None
            for other in self._ledger.of_session(message.session)
            for reply in other.replies
        )

    def _covers(self, stop: Message, message: Message) -> bool:
        acted = self._acted.get(stop.id)
        if acted is None or not stop.may_stop(message) or not any(r.delivered is not None for r in stop.replies):
            return False
        return stop.id > message.id or acted > message.accepted
