"""P7: a stop is obeyed. It reaches what it should and nobody else's, its counts are true, and after its answer nothing
of what it stopped is seen or starts.

    taken up (acts in memory) ──▶ written ──▶ answer in the outbox ──▶ answer delivered
        │ what it must reach is noted             │ counts are compared       │ silence from here on
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.app import ATTEMPTS
from tests.simulation import script
from tests.simulation.history import Event, What
from tests.simulation.promises import Promise

if TYPE_CHECKING:
    from tests.simulation.ledger import Ledger, Message, Reply, Run
    from tests.simulation.world import World

_COUNT = re.compile(r"(\d+) (run|helper|waiting message|message)s?( still waiting)?")


@dataclass(slots=True, eq=False)
class Stop:
    """One stop command in one life, from being taken up to its answer."""

    message: Message
    place: int
    waiting: list[Message]
    """What waited in its session when it acted."""
    helpers: int = 0
    """How many helpers were cancelled as it acted."""
    helpers_known: bool = True
    """Nothing else in its batch could have done that."""
    reached: list[Message] = field(default_factory=list)
    """What it must reach: all of these are stopped in the end."""
    stopped: list[Message] = field(default_factory=list)
    """What was stopped between its act and its answer."""
    alive: frozenset[int] = frozenset()
    """The runs that were on a slot when it acted."""
    ran: list[Message] = field(default_factory=list)
    """Those of them that were on a slot when it acted, or that the store had seen begin."""
    alone: bool = True
    """No other stop was under way in the session, nor did messages arrive at the same time."""
    answer: Reply | None = None


class Stops(Promise):
    def __init__(self, world: World, ledger: Ledger) -> None:
        self._world = world
        self._ledger = ledger
        self._open: dict[int, Stop] = {}
        self._acting: list[Stop] = []  # those taken up in the present step
        self._all: list[Stop] = []
        self._step = 0

    def see(self, place: int, event: Event) -> None:
        if event.step != self._step:
            self._step, self._acting = event.step, []
        match event.what:
            case What.OPENED:
                self._open.clear()
            case What.ANSWER if event.text == "accept":
                self._take_up(place, event)
            case What.RESUMED:
                self._take_up(place, event)
            case What.QUEUED:
                for stop in self._acting:
                    stop.helpers_known = False
            case What.CANCELLING | What.ENDED if event.session.startswith("sub:"):
                self._helper(event)
            case What.STOPPED | What.SETTLED:
                self._stopped(event)
            case What.ERROR if event.text.startswith("stop ") and event.detail == "the answer got lost":
                self._forgive_counts(event.text.split()[1])
            case What.REPLY:
                self._answered(event)
            case What.SHOWN:
                self._silent(event, "shown")
            case What.SEND if event.text.startswith("answer to"):
                self._silent(event, "sent")
            case What.IN if ">" in event.text:
                self._silent(event, "started by a helper")

    def end(self) -> None:
        answered = [stop for stop in self._all if stop.answer is not None]
        for stop in answered:
            for message in stop.reached:
                if message.state not in ("stopped", "quarantined"):
                    self._broken(f"{self._named(stop)} should have stopped message {message.id}: it is {message.state}")

    # ── taken up ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _take_up(self, place: int, event: Event) -> None:
        batch = [m for m in self._ledger.of(event.ids) if (m.queued is None or m.over) and m.attempts < ATTEMPTS]
        for position, message in enumerate(batch):
            if message.stop and message.id not in self._open and not message.terminal:
                self._act(place, message, batch[:position])

    def _act(self, place: int, message: Message, before: list[Message]) -> None:
        here = self._ledger.of_session(message.session)
        earlier = [other for other in before if not other.command and message.may_stop(other)]
        stop = Stop(message, place, [other for other in here if other.waits])
        stop.alive = frozenset(run.id for run in self._ledger.runs.values() if run.ids and run.alive)
        stop.reached = [*earlier, *self._must_reach(message, stop.waiting)]
        for other in self._open.values():
            if other.message.session == message.session:
                stop.alone = other.alone = False
        if any(other.id > message.id and other.accepted < place for other in here):
            stop.alone = False
        if any(other.terminal and other.queued is not None and not other.over for other in here):
            stop.alone = False  # a late delivery of what was stopped already stands there and will not begin
        self._open[message.id] = stop
        self._acting.append(stop)
        self._all.append(stop)

    def _must_reach(self, message: Message, waiting: list[Message]) -> list[Message]:
        """Everything, or the oldest run, or with nothing running what waits."""
        mine = [other for other in waiting if message.may_stop(other)]
        runs = [run for run in self._ledger.runs.values() if run.ids and not run.over and self._owns(message, run)]
        alive = [run for run in runs if run.alive]
        if script.is_stopall(message.text):
            return [*mine, *(other for run in alive for other in self._ledger.of(run.ids))]
        if alive:
            return self._ledger.of(alive[0].ids)
        return [] if runs or self._helpers_alive() else mine

    def _owns(self, message: Message, run: Run) -> bool:
        return message.may_stop(self._ledger.messages[run.ids[0]])

    def _helpers_alive(self) -> bool:
        """Helpers may outlive the run that asked them, and count as running."""
        return any(run.session.startswith("sub:") and not run.over for run in self._ledger.runs.values())

    # ── written ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _helper(self, event: Event) -> None:
        if event.what is What.ENDED and event.run:
            return  # it was counted when it was asked to end
        if len(self._acting) == 1:
            self._acting[0].helpers += 1

    def _stopped(self, event: Event) -> None:
        if event.what is What.SETTLED and (event.text != "stopped" or event.detail == "said"):
            return
        messages = self._ledger.of(event.ids)
        for stop in self._open.values():
            mine = [m for m in messages if m.session == stop.message.session]
            stop.stopped += mine
            stop.ran += [m for m in mine if m.began or (m.run in stop.alive and not m.put_off)]

    def _forgive_counts(self, chat: str) -> None:
        """Nobody can count what the store stopped without being able to say so."""
        for stop in self._open.values():
            if chat in stop.message.session.split(":"):
                stop.alone = False

    def _answered(self, event: Event) -> None:
        stop = self._open.pop(event.ids[0], None) if event.ids else None
        if stop is None:
            return
        stop.answer = self._ledger.replies[-1]
        self._helpers_gone(stop)
        if stop.alone:
            self._authorised(stop)
            self._count(stop, event.text)

    def _helpers_gone(self, stop: Stop) -> None:
        for run in self._ledger.runs.values():
            if run.alive and ">" in run.label and any(m in stop.reached for m in self._ledger.named(run.label)):
                self._broken(f"{self._named(stop)} was answered while {run.label!r} still helps what it stopped")

    def _authorised(self, stop: Stop) -> None:
        for message in stop.stopped:
            if not stop.message.may_stop(message):
                self._broken(f"{self._named(stop)} stopped message {message.id} of {message.sender}, which it may not")

    def _count(self, stop: Stop, text: str) -> None:
        """Compare what the answer says with what came of it."""
        said = {what + still: int(count) for count, what, still in _COUNT.findall(text)}
        stopped = [message for message in stop.stopped if not message.command]
        ran = [message for message in stop.ran if not message.command]
        true = {
            "run": len({message.run for message in ran}),
            "helper": stop.helpers if stop.helpers_known else said.get("helper", 0),
            "waiting message": len(stopped) - len(ran),
            "message still waiting": sum(message not in stopped for message in stop.waiting),
        }
        if not any(said.values()):
            true["message still waiting"] = 0  # then it says nothing about those
        wrong = [f"{count} {what}(s)" for what, count in true.items() if said.get(what, 0) != count]
        if wrong and not self._counts_all_lives(stop, said):
            self._broken(f"{self._named(stop)} was answered {text!r}, but it is {' and '.join(wrong)}")

    def _counts_all_lives(self, stop: Stop, said: dict[str, int]) -> bool:
        """A stop that a crash cut short acts again, and may also count what it had stopped by then."""
        earlier = [m for other in self._all if other.message is stop.message for m in other.stopped if not m.command]
        return len(earlier) > len(stop.stopped) and said.get("run", 0) + said.get("waiting message", 0) == len(earlier)

    # ── answered ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _silent(self, event: Event, how: str) -> None:
        for message in self._ledger.named(event.text):
            for stop in self._all:
                if message in stop.stopped and stop.answer is not None and stop.answer.delivered is not None:
                    self._broken(f"{event.text!r} was {how} after the answer to {self._named(stop)}")

    def _named(self, stop: Stop) -> str:
        return f"{stop.message.text!r} (message {stop.message.id})"

    def _broken(self, why: str) -> None:
        self._world.report("P7", why)
