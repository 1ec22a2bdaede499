"""A message that grows while the agent works on it, with a button that stops it.

    show ──▶ the first text is sent ──▶ edited now and then ──▶ the reply takes its place
                                          └── stopped or failed: it is deleted

It may lag or be lost; what counts is the reply. It is edited no more often than Telegram likes, less often after it
complained, and never at the cost of the room that a reply needs. A button carries a number that nobody can guess and
that means something only here and now.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import trio
from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from gateway.channels.telegram_bot import TelegramTrouble, Why
from gateway.channels.telegram_text import growing, split
from gateway.channels.telegram_updates import STOP_DATA

if TYPE_CHECKING:
    from gateway.channels.telegram_out import Writer
    from store.records import SessionKey

logger = logging.getLogger("goclaw.telegram")

FIRST_S: Final = 1.0
"""Answers that are there by then need no growing message."""
PRIVATE_S: Final = 1.5
GROUP_S: Final = 3.0
SLOWEST_S: Final = 30.0
LANDS_S: Final = 10.0
"""How long an edit that is on its way may take before the reply goes over it."""
UNCLAIMED_S: Final = 120.0
LAST_S: Final = 2.0
LONGEST: Final = 12_000
"""Of a text that grows beyond this, only the end is shown meanwhile."""


@dataclass(slots=True, eq=False)
class Live:
    session: SessionKey
    turn: str
    senders: frozenset[str] = frozenset()
    answers: tuple[int, ...] = ()
    text: str = ""
    shown: str = ""
    message: int = 0
    closing: bool = False
    """Its turn has ended."""
    every_s: float = PRIVATE_S
    button: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    ended: trio.Event = field(default_factory=trio.Event)
    grown: trio.Event = field(default_factory=trio.Event)
    still: trio.Event = field(default_factory=trio.Event)
    """Nobody works on it any more."""

    @property
    def over(self) -> bool:
        """It does not grow any more."""
        return self.ended.is_set()

    @property
    def chat(self) -> int:
        return int(self.session.chat)

    @property
    def keyboard(self) -> InlineKeyboardMarkup:
        return InlineKeyboardMarkup([[InlineKeyboardButton("Stop", callback_data=f"{STOP_DATA}{self.button}")]])


class Lives:
    """``write`` puts text into a chat, by a new message or in place of one."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._lives: dict[str, Live] = {}
        self._buttons: dict[str, Live] = {}
        self._going: list[Live] = []
        """Being deleted just now."""
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """For ever. Nothing is shown while this does not run."""
        try:
            async with trio.open_nursery() as self._nursery:
                await trio.sleep_forever()
        finally:
            self._nursery = None
            with trio.move_on_after(LAST_S, shield=True):
                await self._leave_nothing()

    async def _leave_nothing(self) -> None:
        """What has grown and was not answered begins anew in the next process, with another message."""
        left, self._lives, self._going = [*self._lives.values(), *self._going], {}, []
        self._buttons.clear()
        async with trio.open_nursery() as nursery:
            for live in left:
                live.ended.set()
                live.still.set()
                if live.message:
                    nursery.start_soon(self._writer.delete, live.chat, live.message)

    def began(self, session: SessionKey, turn: str, senders: frozenset[str], answers: tuple[int, ...]) -> None:
        every_s = GROUP_S if session.chat.startswith("-") else PRIVATE_S
        self._lives[turn] = Live(session, turn, senders, answers, every_s=every_s)

    def show(self, turn: str, text: str) -> None:
        live = self._lives.get(turn)
        if live is None or live.over or self._nursery is None:
            return
        first = not live.text
        live.text = (live.text + text)[-LONGEST:]
        live.grown.set()
        if first:
            self._buttons[live.button] = live
            self._nursery.start_soon(self._follow, live)

    def ended(self, turn: str, *, answered: bool) -> None:
        """The reply is on its way and takes the message's place; without one, nothing is left to be seen."""
        live = self._lives.get(turn)
        if live is None or live.closing:
            return
        live.closing = True
        self._end(live)
        if not live.text or self._nursery is None:
            del self._lives[turn]
        else:
            self._nursery.start_soon(self._remove, live, UNCLAIMED_S if answered else 0.0)

    async def claimed(self, turn: str) -> int:
        """The number of the turn's message, for its reply; 0 if there is none."""
        live = self._lives.pop(turn, None)
        if live is None:
            return 0
        self._end(live)
        if live.text:
            with trio.move_on_after(LANDS_S):
                await live.still.wait()
        return live.message

    def behind(self, button: str) -> Live | None:
        """What the button stops, as long as that runs."""
        return self._buttons.get(button)

    def _end(self, live: Live) -> None:
        live.ended.set()
        live.grown.set()
        self._buttons.pop(live.button, None)

    async def _remove(self, live: Live, after_s: float) -> None:
        await trio.sleep(after_s)
        await live.still.wait()
        if self._lives.pop(live.turn, None) is not None and live.message:
            self._going.append(live)
            await self._writer.delete(live.chat, live.message)
            self._going.remove(live)

    async def _follow(self, live: Live) -> None:
        try:
            rest_s = FIRST_S
            while not live.over:
                with trio.move_on_after(rest_s):
                    await live.ended.wait()
                rest_s = await self._step(live)
        finally:
            live.still.set()

    async def _step(self, live: Live) -> float:
        """Show what is there by now. The answer is how long to leave it alone then."""
        if live.over:
            return 0.0
        parts = split(growing(live.text))
        if not parts or parts[-1].text == live.shown:
            live.grown = trio.Event()
            await live.grown.wait()
            return 0.0
        if wait_s := self._writer.busy_s(live.chat):
            return wait_s
        rich = parts[-1]
        try:
            live.message = await self._writer.put(
                live.session, rich, live.message, answers=live.answers, keyboard=live.keyboard
            )
            live.shown = rich.text
        except TelegramTrouble as trouble:
            self._heed(live, trouble)
            return max(live.every_s, trouble.retry_after_s or 0.0)
        return live.every_s

    def _heed(self, live: Live, trouble: TelegramTrouble) -> None:
        logger.debug("a growing message in chat %d: %s", live.chat, trouble)
        if trouble.why is Why.UNCHANGED:
            return
        live.every_s = min(live.every_s * 2, SLOWEST_S)
        if not trouble.retriable and trouble.why not in (Why.ENTITIES, Why.REFUSED):
            live.message = 0 if trouble.why is Why.NO_MESSAGE else live.message
            self._end(live)


def stop_button(data: str) -> str | None:
    return data.removeprefix(STOP_DATA) if data.startswith(STOP_DATA) else None
