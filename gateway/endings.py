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

from gateway.history import notice
from gateway.persist import GivenUp, persist
from gateway.plain import counted, excerpt, joined, one_line
from gateway.quiet import Quiet
from scheduler import End, Outcome, Reason
from store.records import MessageState, Note, turn_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.outbound import Outbound
    from scheduler import Policy, Ticket
    from store.protocols import MessageStore
    from store.records import Message, SessionKey

logger = logging.getLogger("goclaw.turn")


class Ending(NamedTuple):
    message: Message
    outcome: Outcome
    policy: Policy
    written: Callable[[int], None]


class Endings:
    def __init__(
        self,
        process: str,
        store: MessageStore,
        outbound: Outbound,
        quiet: Quiet,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._process = process
        self._redact = redact
        self._store = store
        self._outbound = outbound
        self._quiet = quiet
        self._put, self._take = trio.open_memory_channel[Ending](math.inf)
        self._unwritten: dict[SessionKey, Quiet] = {}

    def note(self, ticket: Ticket, written: Callable[[int], None]) -> None:
        """A message has ended: whatever was shown of it goes, and its end is written soon, which ``written`` tells."""
        message, outcome = ticket.request.payload, ticket.outcome
        channel = self._outbound.channel(message.session.channel)
        turn = turn_id(self._process, outcome.run) if outcome is not None and outcome.run else ""
        if channel is not None:
            channel.clear(message.session, turn)
        attentive = self._outbound.attentive(message.session.channel)
        if attentive is not None:
            attentive.ended(message, turn, answered=outcome is not None and outcome.end is End.DONE)
        if outcome is None or outcome.end in (End.DONE, End.CLOSED) or isinstance(outcome.error, GivenUp):
            written(message.id)  # done by the turn itself; what never started stays accepted for the next start
            return
        self._quiet.begin()
        self._unwritten.setdefault(message.session, Quiet()).begin()
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
                self._count_written(ending.message.session)
                self._quiet.end()

    async def caught_up(self, session: SessionKey) -> None:
        """Wait until the ends of the session's earlier messages are written: people read them in order."""
        if session in self._unwritten:
            await self._unwritten[session].wait()

    def _count_written(self, session: SessionKey) -> None:
        self._unwritten[session].end()
        if self._unwritten[session].now:
            del self._unwritten[session]

    async def quarantine(self, message: Message) -> None:
        """Give up on a message that was being worked on each time the process died."""
        text = f'Set aside after {message.attempts} attempts that never finished: "{excerpt(message.text)}".'
        await self._settle("", [message.id], MessageState.QUARANTINED, [Note(message.session, text)])

    async def _write(self, endings: list[Ending]) -> None:
        """All messages of one turn ended alike: one write, and one thing said."""
        first = endings[0]
        ids = [ending.message.id for ending in endings]
        turn = turn_id(self._process, first.outcome.run)
        if first.outcome.reason is Reason.CLOSING:
            await persist(partial(self._store.put_back, turn, ids))
            return
        state, text = words(first, quoted([ending.message.text for ending in endings]))
        notes = [Note(first.message.session, self._redact(text))] if text else []
        told = await self._settle(turn, ids, state, notes)
        await self._settle("", ids, state, [] if told else notes)  # what had not begun

    async def _settle(self, turn: str, ids: list[int], state: MessageState, notes: list[Note]) -> bool:
        said = [line for note in notes for line in notice(note.session, note.text, ids)]
        settled = await persist(partial(self._store.settle, turn, ids, state, notes, said))
        self._outbound.poke()  # even if refused: an earlier try may have come through although it failed
        return settled


def words(ending: Ending, said: str) -> tuple[MessageState, str]:
    """The state of messages that did not run to their end, and what their sender is told."""
    outcome, cap = ending.outcome, ending.policy.cap
    if outcome.end is End.DROPPED:
        return (
            MessageState.DROPPED,
            f"Dropped {said}: {counted(cap, 'newer message')} {'was' if cap == 1 else 'were'} waiting."
            " Send it again later.",
        )
    if outcome.end is End.REFUSED:
        return (
            MessageState.DROPPED,
            f"Not taken: {said}. {counted(cap, 'message')} {'waits' if cap == 1 else 'wait'} already;"
            " send it again later.",
        )
    if outcome.end is End.TIMED_OUT:
        return (
            MessageState.FAILED,
            f"Gave up on {said} after {ending.policy.timeout_s:g} s, the longest a run may take.",
        )
    if outcome.end is End.FAILED:
        logger.info("message %d failed", ending.message.id, exc_info=outcome.error)
        return MessageState.FAILED, f"{said} did not work: {one_line(outcome.error)}"
    if outcome.reason is Reason.INTERRUPTED:
        return MessageState.STOPPED, f"Stopped {said}: your newer message took its place."
    return MessageState.STOPPED, ""  # the answer to the stop says so


def quoted(texts: list[str], most: int = 5) -> str:
    """Which messages it is about, each by its beginning."""
    names = [f'"{excerpt(text)}"' for text in texts]
    return joined(names if len(names) <= most else [*names[: most - 1], f"{len(names) - most + 1} more"])
