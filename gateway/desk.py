"""Commands that take a moment: one at a time, in the order in which they came in, each answered in words.

A command is carried out before its message is settled, so a process that dies over it carries it out again after its
next start. That is harmless: a job is known by the message that asked for it, and setting something twice sets it.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

import trio

from gateway.cron_desk import scheduled
from store.protocols import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.chat_desk import ChatDesk
    from gateway.commands import Command
    from gateway.timetable import Timetable
    from store.records import Message

    Answer = Callable[[Message, str], Awaitable[None]]

logger = logging.getLogger("goclaw.desk")


class Desk:
    def __init__(self, chat: ChatDesk, timetable: Timetable | None, answer: Answer) -> None:
        self._chat = chat
        self._timetable = timetable
        self._answer = answer
        self._put, self._take = trio.open_memory_channel[tuple["Message", "Command"]](math.inf)

    def hand_in(self, message: Message, command: Command) -> None:
        self._put.send_nowait((message, command))

    async def run(self) -> None:
        async for message, command in self._take:
            await self._answer(message, await self._carried_out(message, command))

    async def _carried_out(self, message: Message, command: Command) -> str:
        """Do what the command asks for, and say what was done or what was wrong."""
        try:
            if command.name == "queue":
                return await self._chat.queue(message, command.rest)
            if command.name == "tz":
                return await self._chat.tz(message, command.rest)
            return await scheduled(self._timetable, message, command)
        except StoreError as error:
            return f"That did not work: {error}."
        except Exception:  # a mistake of ours: said in the log and to the person, or it would come with every start
            logger.exception("message %d, a command, could not be carried out", message.id)
            return "That did not work: a mistake inside goclaw. Its log tells more."
