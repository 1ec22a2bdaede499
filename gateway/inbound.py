"""From a channel into the scheduler: accepted first, acknowledged then, stops before everything else.

    batch ──▶ accept (durable) ──▶ the channel may acknowledge
                 └──▶ stops act in memory ──▶ the rest is scheduled ──▶ commands are written and answered

Between `accept` and the last `schedule` of a batch there is no await: a stop in the batch is seen before anything
could start, and what came before it in the same session is never scheduled at all.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from gateway.commands import Command, parse_command
from gateway.persist import GivenUp, persist
from gateway.quiet import Quiet
from scheduler import Drop, Mode, Policy, Request
from store.records import MessageState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gateway.control import Control
    from gateway.endings import Endings
    from gateway.in_hand import InHand
    from gateway.outbound import Outbound
    from gateway.settings import Settings
    from gateway.turn import Turns
    from gateway.waiting import Waiting
    from scheduler import Scheduler, Ticket
    from store.protocols import MessageStore
    from store.records import Cursor, Incoming, Message, Receipt, SessionKey, SessionPolicy, Standing

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
        outbound: Outbound,
        in_hand: InHand,
        waiting: Waiting,
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._turns = turns
        self._control = control
        self.open = Quiet()
        """Messages that wait or run; what cron does is not among them."""
        self._endings = endings
        self._outbound = outbound
        self._in_hand = in_hand
        self._waiting = waiting
        alone, shared = policies(settings)

        @lru_cache(maxsize=1000)  # nearly all chats are treated alike, and the scheduler knows an old one at a glance
        def policy(agent: str, group: bool, own: SessionPolicy) -> Policy:
            usual = in_force(shared if group else alone, own)
            timeout_s = turns.run_timeout_s(agent)
            return usual if timeout_s is None else replace(usual, timeout_s=timeout_s)

        self._policies = policy

    @property
    def in_hand(self) -> int:
        """How many messages this process works on."""
        return len(self._in_hand)

    @property
    def receiving(self) -> bool:
        return self._in_hand.under_way

    async def receive(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> tuple[Receipt, ...]:
        """Take a batch in. When this returns all of it is kept, the cursor too, and the channel may say so."""
        batch = [readable(incoming) for incoming in batch]
        with self._in_hand.delivery():
            receipts = await persist(lambda: self._store.accept(batch, cursor))
            if receipts is None:
                raise GivenUp("another gateway works on the messages now; this one has not taken these in")
            new = [r.message for r in receipts if r.message is not None and r.state is MessageState.ACCEPTED]
            self._take(new, {r.message.session: r.standing for r in receipts if r.message is not None})
        return receipts

    async def look(self) -> None:
        """Take up what is accepted and not in hand: somebody else has handed it in."""
        with self._in_hand.delivery():
            messages = await persist(self._store.waiting)
            sessions = {message.session for message in messages if message.id not in self._in_hand}
            standings = await persist(partial(self._store.standings, sessions))
            self._take([message for message in messages if message.session in standings], standings)

    def resume(self, messages: Iterable[Message], standings: Mapping[SessionKey, Standing]) -> None:
        """Take up what an earlier process left: no debounce, no cap, and what ran before runs alone."""
        self._take(messages, standings, resumed=True)

    def _take(
        self, messages: Iterable[Message], standings: Mapping[SessionKey, Standing], *, resumed: bool = False
    ) -> None:
        new = {message.id: message for message in messages if message.id not in self._in_hand}
        parsed: list[Parsed] = [(message, parse_command(message.text)) for message in new.values()]
        stopped = self._act_on_stops(parsed)
        for message, command in parsed:
            if message.id in stopped or (command is None and self._control.has_swept(message)):
                continue
            self._in_hand.take([message.id])
            if command is None:
                self._schedule(message, standings[message.session], resumed=resumed)
            elif not self._control.acts(message, command):
                self._control.answer(message, command)

    def _act_on_stops(self, parsed: Sequence[Parsed]) -> set[int]:
        stopped: set[int] = set()
        for place, (message, command) in enumerate(parsed):
            if command is not None and self._control.acts(message, command):
                earlier = [
                    other.id
                    for other, other_command in parsed[:place]
                    if other_command is None and other.id not in stopped and self._control.may_stop(message, other)
                ]
                stopped.update(earlier)
                self._in_hand.take([*earlier, message.id])
                self._control.stop(message, command, earlier)
        return stopped

    def _schedule(self, message: Message, standing: Standing, *, resumed: bool) -> None:
        self.open.begin()
        attentive = self._outbound.attentive(message.session.channel)
        if attentive is not None:
            attentive.took(message)
        policy = self._policies(message.session.agent, message.incoming.group, standing.policy)
        if resumed:
            policy = replace(policy, mode=Mode.QUEUE)
        ticket = self._scheduler.schedule(
            Request(
                session=str(message.session),
                handler=self._turns,
                payload=message,
                tenant=message.session.tenant,
                sender=message.incoming.sender,
                thread=message.session.thread,
                policy=policy,
                context_used=standing.context,
                steerable=not message.attempts and self._turns.can_steer(message.session.agent),
                resumed=resumed,
                on_end=self._ended,
            )
        )
        self._waiting.watch(ticket)

    def _ended(self, ticket: Ticket) -> None:
        self._endings.note(ticket, self._in_hand.let_go)
        self.open.end()


def readable(incoming: Incoming) -> Incoming:
    """What is kept of a delivery: whole characters only, and whether it is a command."""
    text = incoming.text.encode("utf-8", errors="replace").decode()
    return replace(incoming, text=text, control=parse_command(text) is not None)


def in_force(usual: Policy, own: SessionPolicy) -> Policy:
    """The usual policy, with what was set for this conversation."""
    return replace(
        usual,
        mode=usual.mode if own.mode is None else Mode(own.mode),
        cap=usual.cap if own.cap is None else own.cap,
        drop=usual.drop if own.drop is None else Drop(own.drop),
        debounce_s=usual.debounce_s if own.debounce_ms is None else own.debounce_ms / 1000,
        max_concurrent=usual.max_concurrent if own.max_concurrent is None else own.max_concurrent,
    )


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
