"""The control path: commands act the moment they are accepted, whatever the lanes are doing.

A stop acts in memory at once, is then written to the store, and is answered last; the answer overtakes the outbox.
Whoever wins the store's compare-and-set of `begin` and `settle` against `stop` decides, so a message that was stopped
never starts later. `/new` is `/stopall`, with a line in the transcript from which on nothing earlier is told to agents.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from gateway import commands
from gateway.commands import FOR_ADMINS, GREETING, Command, help_text, stop_text, unknown_text, whoami_text
from gateway.desk import Desk
from gateway.history import NEW_CONVERSATION, notice
from gateway.persist import persist
from store.protocols import StoreError
from store.records import MessageState, Note

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    import trio

    from gateway.chat_desk import ChatDesk
    from gateway.in_hand import InHand
    from gateway.outbound import Outbound
    from gateway.quiet import Quiet
    from gateway.timetable import Timetable
    from scheduler import Scheduler, Stopped
    from store.protocols import MessageStore
    from store.records import Message, Said

logger = logging.getLogger("goclaw.control")


class Control:
    def __init__(
        self,
        nursery: trio.Nursery,
        store: MessageStore,
        scheduler: Scheduler,
        outbound: Outbound,
        quiet: Quiet,
        in_hand: InHand,
        chat_desk: ChatDesk,
        timetable: Timetable | None = None,
    ) -> None:
        self._in_hand = in_hand
        self._sweeps: dict[int, Message] = {}  # stops that hold for all that was accepted before them
        self._claimed: set[int] = set()  # stopped in memory by stops that are not in the store yet
        self._nursery = nursery
        self._store = store
        self._scheduler = scheduler
        self._outbound = outbound
        self._quiet = quiet
        self._timetable = timetable
        self._desk = Desk(chat_desk, timetable, self._write_answer)
        nursery.start_soon(self._desk.run)

    @staticmethod
    def may_stop(stop: Message, other: Message) -> bool:
        """In a group members stop what they started themselves; admins, and people in their own chat, everything."""
        if stop.session != other.session:
            return False
        return whose(stop) in (None, other.incoming.sender)

    @staticmethod
    def acts(message: Message, command: Command) -> bool:
        """Whether the command stops things: a member's `/new` in a group is only answered."""
        return command.stops and may_use(message, command)

    def stop(self, message: Message, command: Command, earlier: Sequence[int]) -> None:
        """Stop now, in memory; write and answer as soon as the store allows."""
        cancel = self._scheduler.cancel_oldest if command.name == "stop" else self._scheduler.cancel_all
        stopped = cancel(str(message.session), whose(message))
        reached = {request.payload.id for request in stopped.reached if request.payload is not None}
        for number in reached:
            self._outbound.clear(message.session, number)  # a run may take its time to end
        counted_by_others = self._claimed.copy()
        self._claimed |= {*earlier, *reached}
        one_run = command.name == "stop" and (stopped.running or stopped.stopping or stopped.finishing)
        if not one_run:
            self._sweeps[message.id] = message
        only = [*earlier, *reached] if one_run else None
        self._start(self._write_stop, message, command, stopped, earlier, reached, only, counted_by_others)

    def has_swept(self, message: Message) -> bool:
        """A stop that was accepted later has acted already: the store stops this one too, so it is not taken up.

        A stop stays in hand until every delivery is looked at that was under way with it, and counts for so long.
        """
        self._sweeps = {number: stop for number, stop in self._sweeps.items() if number in self._in_hand}
        return any(stop.id > message.id and self.may_stop(stop, message) for stop in self._sweeps.values())

    def answer(self, message: Message, command: Command) -> None:
        """Everything but a stop."""
        if command.at_the_desk and may_use(message, command):
            self._scheduler.flush(str(message.session))  # what was written before it does not wait behind it
            self._quiet.begin()
            self._desk.hand_in(message, command)
            return
        if command.name == "status":
            self._start(self._write_status, message)
            return
        if command.known and not may_use(message, command):
            text = commands.refusal(command)
        elif command.name == "whoami":
            text = whoami_text(message)
        elif command.name in ("start", "help"):
            text = help_text() if command.name == "help" else f"{GREETING}\n{help_text()}"
        else:
            text = unknown_text(command)
        self._start(self._write_answer, message, text)

    def _start(self, write: Callable[..., Awaitable[None]], *args: object) -> None:
        self._quiet.begin()
        self._nursery.start_soon(self._guarded, write, *args)

    async def _guarded(self, write: Callable[..., Awaitable[None]], *args: object) -> None:
        """What the store refuses for good is one command's trouble; it stays open for the next start."""
        try:
            await write(*args)
        except StoreError as error:
            logger.error("a command could not be carried out: %s", error)
            self._quiet.end()

    async def _write_stop(
        self,
        message: Message,
        command: Command,
        stopped: Stopped,
        earlier: Sequence[int],
        reached: set[int],
        only: Sequence[int] | None,
        counted_by_others: set[int],
    ) -> None:
        """Stop in the store what was stopped in memory, and what was open there but not (or no more) in memory."""
        stop = partial(self._store.stop, message.session, message.id - 1, sender=whose(message), only=only)
        others = [row for row in await persist(stop) if row.id not in reached | counted_by_others]
        if late := [number for number in reached if number > message.id]:  # accepted after it, but taken up before
            await persist(partial(self._store.stop, message.session, max(late), only=late))
        runs = {row.turn for row in others if row.turn}  # memory is done with them, their end was not written yet
        messages = {*earlier, *(row.id for row in others if not row.turn)}
        self._claimed -= {*earlier, *reached}
        self._in_hand.let_go(*earlier)
        own = whose(message) is not None
        if command.name != "new":
            text = stop_text(stopped, also_runs=len(runs), also_messages=len(messages), own=own)
            await self._write_answer(message, text)
            return
        anything = bool(stopped or runs or messages)
        begun = "A new conversation. What was said before is kept, but the agent does not look at it any more."
        told = f"{stop_text(stopped, also_runs=len(runs), also_messages=len(messages))} {begun}" if anything else begun
        await self._write_answer(message, told, [NEW_CONVERSATION], 0.0)

    async def _write_status(self, message: Message) -> None:
        fires = () if self._timetable is None else await self._timetable.next_fires(message.session.tenant)
        here = self._scheduler.session_statistics(str(message.session))
        await self._write_answer(message, commands.status_text(here, self._scheduler.statistics(), fires))

    async def _write_answer(
        self, message: Message, text: str, said: Sequence[Said] = (), context: float | None = None
    ) -> None:
        turn = f"command-{message.id}"
        note = Note(message.session, text, urgent=True)
        await persist(partial(self._store.begin, turn, [message.id]))
        said = [*said, *notice(message.session, text, [message.id])]
        settle = partial(self._store.settle, turn, [message.id], MessageState.DONE, [note], said, context)
        await persist(settle)
        self._outbound.poke()
        self._in_hand.let_go(message.id)
        self._quiet.end()


def whose(message: Message) -> str | None:
    """Whose work this person may stop: their own in a group, everybody's (None) elsewhere."""
    incoming = message.incoming
    return incoming.sender if incoming.group and not incoming.admin else None


def may_use(message: Message, command: Command) -> bool:
    """What changes a group for everybody is for its admins."""
    return command.name not in FOR_ADMINS or whose(message) is None
