"""Every message ends in something its sender sees: the one mapping from ends to states and words.

The scheduler tells each end at once, synchronously; the writes follow in one task, in order, as soon as the store
takes them. A message that has already reached its end in the store (a stop was faster) is left alone.
"""

from __future__ import annotations

import logging
import math
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import trio

from gateway.commands import excerpt
from gateway.persist import persist
from scheduler import End, Outcome, Reason
from store.records import MessageState, Note

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.outbound import Outbound
    from gateway.quiet import Quiet
    from gateway.turn import Turns
    from scheduler import Policy, Ticket
    from store.protocols import MessageStore
    from store.records import Message

logger = logging.getLogger("goclaw.turn")


class Ending(NamedTuple):
    message: Message
    outcome: Outcome
    policy: Policy
    written: Callable[[int], None]


class Endings:
    def __init__(self, store: MessageStore, turns: Turns, outbound: Outbound, quiet: Quiet) -> None:
        self._store = store
        self._turns = turns
        self._outbound = outbound
        self._quiet = quiet
        self._put, self._take = trio.open_memory_channel[Ending](math.inf)

    def note(self, ticket: Ticket, written: Callable[[int], None]) -> None:
        """A message has ended: whatever was shown of it goes, and its end is written soon, which ``written`` tells."""
        message, outcome = ticket.request.payload, ticket.outcome
        channel = self._outbound.channel(message.session.channel)
        if channel is not None:
            channel.clear(message.session)
        if outcome is None or outcome.end in (End.DONE, End.CLOSED):
            written(message.id)  # done by the turn itself; what never started stays accepted for the next start
            return
        self._quiet.begin()
        self._put.send_nowait(Ending(message, outcome, ticket.request.policy, written))

    async def run(self) -> None:
        while True:
            endings = [await self._take.receive()]
            while self._take.statistics().current_buffer_used:
                endings.append(self._take.receive_nowait())
            for _, together in groupby(endings, key=lambda ending: (ending.outcome.run, id(ending.outcome))):
                await self._write(list(together))
            for ending in endings:
                ending.written(ending.message.id)
                self._quiet.end()

    async def quarantine(self, message: Message) -> None:
        """Give up on a message that was being worked on each time the process died."""
        text = f'Set aside after {message.attempts} attempts that never finished: "{excerpt(message.text)}".'
        await self._settle("", [message.id], MessageState.QUARANTINED, [Note(message.session, text)])

    async def _write(self, endings: list[Ending]) -> None:
        """All messages of one turn ended alike: one write, and one thing said."""
        first = endings[0]
        ids = [ending.message.id for ending in endings]
        turn = self._turns.turn_id(first.outcome.run)
        if first.outcome.reason is Reason.CLOSING:
            await persist(partial(self._store.put_back, turn, ids))
            return
        state, text = words(first)
        notes = [Note(first.message.session, text)] if text else []
        told = await self._settle(turn, ids, state, notes)
        await self._settle("", ids, state, [] if told else notes)  # what had not begun

    async def _settle(self, turn: str, ids: list[int], state: MessageState, notes: list[Note]) -> bool:
        settled = await persist(partial(self._store.settle, turn, ids, state, notes))
        if settled:
            self._outbound.poke()
        return settled


def words(ending: Ending) -> tuple[MessageState, str]:
    """The state of a message that did not run to its end, and what its sender is told."""
    outcome, said = ending.outcome, excerpt(ending.message.text)
    if outcome.end is End.DROPPED:
        return (
            MessageState.DROPPED,
            f'Dropped "{said}": {ending.policy.cap} newer messages were waiting. Send it again later.',
        )
    if outcome.end is End.REFUSED:
        return (
            MessageState.DROPPED,
            f'Not taken: "{said}". {ending.policy.cap} messages wait already; send it again later.',
        )
    if outcome.end is End.TIMED_OUT:
        return (
            MessageState.FAILED,
            f'Gave up on "{said}" after {ending.policy.timeout_s:g} s, the longest a run may take.',
        )
    if outcome.end is End.FAILED:
        logger.info("message %d failed", ending.message.id, exc_info=outcome.error)
        return MessageState.FAILED, f'"{said}" did not work: {one_line(outcome.error)}'
    if outcome.reason is Reason.INTERRUPTED:
        return MessageState.STOPPED, f'Stopped "{said}": your newer message took its place.'
    return MessageState.STOPPED, ""  # the answer to the stop says so


def one_line(error: BaseException | None) -> str:
    """What went wrong, short enough for a chat; the log has the rest."""
    text = " ".join(str(error).split())
    return text[:200] or type(error).__name__
