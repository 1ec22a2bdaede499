"""From a channel into the scheduler: accepted first, acknowledged then, stops before everything else.

    batch ──▶ accept (durable) ──▶ the channel may acknowledge
                 └──▶ stops act in memory ──▶ the rest is scheduled ──▶ commands are written and answered

Between `accept` and the last `schedule` of a batch there is no await: a stop in the batch is seen before anything
could start, and what came before it in the same session is never scheduled at all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.commands import Command, parse_command
from gateway.persist import persist
from scheduler import Drop, Mode, Policy, Request
from store.records import MessageState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gateway.control import Control
    from gateway.endings import Endings
    from gateway.in_hand import InHand
    from gateway.settings import Settings
    from gateway.turn import Turns
    from scheduler import Scheduler, Ticket
    from store.protocols import MessageStore
    from store.records import Incoming, Message

Parsed = tuple["Message", Command | None]


class Inbound:
    def __init__(
        self,
        settings: Settings,
        store: MessageStore,
        scheduler: Scheduler,
        turns: Turns,
        control: Control,
        endings: Endings,
        in_hand: InHand,
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._turns = turns
        self._control = control
        self._endings = endings
        self._in_hand = in_hand
        self._alone, self._shared = policies(settings)

    async def receive(self, batch: Sequence[Incoming]) -> None:
        """Take a batch in. When this returns all of it is kept and the channel may say so."""
        batch = [replace(incoming, control=parse_command(incoming.text) is not None) for incoming in batch]
        with self._in_hand.delivery():
            receipts = await persist(lambda: self._store.accept(batch))
            self._take([r.message for r in receipts if r.message is not None and r.state is MessageState.ACCEPTED])

    def resume(self, messages: Iterable[Message]) -> None:
        """Take up what an earlier process left: no debounce, no cap, and what ran before runs alone."""
        self._take(messages, resumed=True)

    def _take(self, messages: Iterable[Message], *, resumed: bool = False) -> None:
        new = {message.id: message for message in messages if message.id not in self._in_hand}
        parsed: list[Parsed] = [(message, parse_command(message.text)) for message in new.values()]
        stopped = self._act_on_stops(parsed)
        for message, command in parsed:
            if message.id in stopped or (command is None and self._control.has_swept(message)):
                continue
            self._in_hand.take([message.id])
            if command is None:
                self._schedule(message, resumed=resumed)
            elif not command.stops:
                self._control.answer(message, command)

    def _act_on_stops(self, parsed: Sequence[Parsed]) -> set[int]:
        stopped: set[int] = set()
        for place, (message, command) in enumerate(parsed):
            if command is not None and command.stops:
                earlier = [
                    other.id
                    for other, other_command in parsed[:place]
                    if other_command is None and other.id not in stopped and self._control.may_stop(message, other)
                ]
                stopped.update(earlier)
                self._in_hand.take([*earlier, message.id])
                self._control.stop(message, command, earlier)
        return stopped

    def _schedule(self, message: Message, *, resumed: bool) -> None:
        policy = self._shared if message.incoming.group else self._alone
        if resumed:
            policy = replace(policy, mode=Mode.QUEUE)
        self._scheduler.schedule(
            Request(
                session=str(message.session),
                handler=self._turns,
                payload=message,
                tenant=message.session.tenant,
                sender=message.incoming.sender,
                thread=message.session.thread,
                policy=policy,
                steerable=self._turns.can_steer and not message.attempts,
                resumed=resumed,
                on_end=self._ended,
            )
        )

    def _ended(self, ticket: Ticket) -> None:
        self._endings.note(ticket, self._in_hand.let_go)


def policies(settings: Settings) -> tuple[Policy, Policy]:
    """The policy of a chat with one person, and of one with several."""
    alone = Policy(
        mode=Mode(settings.queue.mode),
        cap=settings.queue.cap,
        drop=Drop(settings.queue.drop),
        debounce_s=settings.queue.debounce / 1000,
        max_concurrent=settings.session.max_dm,
        timeout_s=float(settings.session.run_timeout),
    )
    return alone, replace(alone, max_concurrent=settings.session.max_group, shared=True)
