"""Eyes on a message that was seen, and "typing…" for as long as somebody waits for an answer.

Both may be lost and neither holds up anything: there is one request at a time for a message or a place, a few in all,
and in a flood the eyes are left out. Typing lasts five seconds on people's screens, so it is said again every four; it
ends by itself ten minutes after the last message.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from gateway.protocols import ChannelError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.channels.telegram_bot import TelegramBot

logger = logging.getLogger("goclaw.telegram")

EYES: Final = "👀"
TYPING_S: Final = 4.0
CEILING_S: Final = 600.0
AT_ONCE: Final = 8
BETWEEN_S: Final = 0.04
MOST_EYES: Final = 200


class Spot(NamedTuple):
    """Where somebody is typing."""

    chat: int
    thread: int | None


NOWHERE: Final = Spot(0, None)


class Place(NamedTuple):
    """A message that somebody wrote."""

    chat: int
    message: int


@dataclass(slots=True)
class Typing:
    due_at: float
    until: float
    waiting: set[int] = field(default_factory=set)


Act = tuple[Spot | Place, "Callable[[], Awaitable[object]]"]


class Presence:
    def __init__(self, bot: TelegramBot) -> None:
        self._bot = bot
        self._typing: dict[Spot, Typing] = {}
        self._wanted: OrderedDict[Place, str | None] = OrderedDict()
        self._shown: set[Place] = set()
        self._busy: set[Spot | Place] = set()
        self._moved: dict[int, int] = {}
        self._poked = trio.Event()

    def began(self, spot: Spot, place: Place | None, number: int) -> None:
        """A message is seen, and waits or runs from now on."""
        now = trio.current_time()
        typing = self._typing.setdefault(spot, Typing(now, now))
        typing.until = now + CEILING_S
        typing.waiting.add(number)
        if place is not None and len(self._wanted) < MOST_EYES:
            self._wanted[place] = EYES
        self._poked.set()

    def ended(self, spot: Spot, place: Place | None, number: int) -> None:
        typing = self._typing.get(spot)
        if typing is not None:
            typing.waiting.discard(number)
            if not typing.waiting:
                del self._typing[spot]
        if place is not None and (place in self._shown or place in self._busy):
            self._wanted[place] = None
        elif place is not None:
            self._wanted.pop(place, None)
        self._poked.set()

    def moved(self, old: int, new: int) -> None:
        self._moved[old] = new

    async def run(self) -> None:
        """For ever."""
        self._busy.clear()
        free = trio.Semaphore(AT_ONCE)
        async with trio.open_nursery() as nursery:
            while True:
                self._poked = trio.Event()
                act = self._next(trio.current_time())
                if act is None:
                    with trio.CancelScope(deadline=self._due_at()):
                        await self._poked.wait()
                    continue
                await free.acquire()
                nursery.start_soon(self._do, *act, free)
                await trio.sleep(BETWEEN_S)

    def _due_at(self) -> float:
        return min((typing.due_at for spot, typing in self._typing.items() if spot not in self._busy), default=math.inf)

    def _next(self, now: float) -> Act | None:
        for place, emoji in self._wanted.items():
            if place not in self._busy:
                del self._wanted[place]
                return self._reaction(place, emoji)
        for spot in [spot for spot, typing in self._typing.items() if typing.until <= now]:
            del self._typing[spot]
        due = [(typing.due_at, spot) for spot, typing in self._typing.items() if spot not in self._busy]
        at, spot = min(due, default=(math.inf, NOWHERE), key=lambda one: one[0])
        if at > now:
            return None
        self._typing[spot].due_at = now + TYPING_S
        return spot, lambda: self._bot.send_chat_action(
            self._moved.get(spot.chat, spot.chat), "typing", message_thread_id=spot.thread
        )

    def _reaction(self, place: Place, emoji: str | None) -> Act:
        (self._shown.discard if emoji is None else self._shown.add)(place)
        chat = self._moved.get(place.chat, place.chat)
        return place, lambda: self._bot.set_message_reaction(chat, place.message, emoji)

    async def _do(self, what: Spot | Place, act: Callable[[], Awaitable[object]], free: trio.Semaphore) -> None:
        self._busy.add(what)
        try:
            with self._bot.told():
                await act()
        except ChannelError as error:
            logger.debug("a sign of life in chat %d was lost: %s", what.chat, error)
            if isinstance(what, Spot) and what in self._typing and error.retry_after_s:
                self._typing[what].due_at = trio.current_time() + error.retry_after_s
        finally:
            self._busy.discard(what)
            free.release()
            self._poked.set()
