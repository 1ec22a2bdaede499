"""All that a bot's Telegram holds: persons, chats, files, menus, what waits for the bot and what the bot asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from tests.fakes.telegram.chat import SUPERGROUPS, Chat, Press
from tests.fakes.telegram.files import Files
from tests.fakes.telegram.menus import Menus
from tests.fakes.telegram.pace import Limits, Pace
from tests.fakes.telegram.people import Person, Status
from tests.fakes.telegram.trouble import NAMED, Kind, Trouble
from tests.fakes.telegram.updates import Updates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from tests.fakes.telegram.message import Message
    from tests.fakes.telegram.request import Request
    from tests.fakes.telegram.room import Kind as ChatKind
    from tests.fakes.telegram.updates import Update


class World:
    """``privacy``: whether the bot in groups hears only what is meant for it. It may be changed at any time."""

    def __init__(
        self, bot: Person, *, now: Callable[[], float], wall: Callable[[], datetime], limits: Limits, privacy: bool
    ) -> None:
        self.bot = bot
        self.now = now
        self.wall = wall
        self.privacy = privacy
        self.people: dict[int, Person] = {bot.id: bot}
        self.chats: dict[int, Chat] = {}
        self.presses: dict[str, Press] = {}
        self.troubles: list[Trouble] = []
        self.requests: list[Request] = []
        """What the bot asked, in the order in which it came, refused or not."""
        self.open: list[Request] = []
        """Those of them that have no answer yet."""
        self.files = Files()
        self.menus = Menus()
        self.pace = Pace(limits, now)
        self._changed = trio.lowlevel.ParkingLot()
        self.version = 0
        """Grows with whatever happens."""
        self.updates = Updates(now, self.note)
        self._last_id = 0

    # Who and where.

    def person(
        self,
        person_id: int,
        first_name: str,
        *,
        username: str | None = None,
        last_name: str | None = None,
        language: str | None = "en",
        is_bot: bool = False,
    ) -> Person:
        person = Person(person_id, first_name, username, last_name, language, is_bot)
        self.people[person_id] = person
        return person

    def private(self, person: Person, *, started: bool = False) -> Chat:
        """The person's chat with the bot, which may write there once the person has, or if it is ``started``."""
        known = self.chats.get(person.id)
        if known is None:
            known = self.add_chat(Chat(self, person.id, "private", person.first_name, person.username, started=False))
        known.started |= started
        return known

    def group(
        self,
        chat_id: int,
        title: str,
        members: Iterable[Person] = (),
        *,
        admins: Iterable[Person] = (),
        owner: Person | None = None,
        forum: bool = False,
        username: str | None = None,
        bot_is: Status = "member",
    ) -> Chat:
        """A supergroup if its number is below -1000000000000, as Telegram's are, else a basic group."""
        if chat_id >= 0 or (forum and chat_id > SUPERGROUPS):
            raise ValueError("a group's number is below 0, a forum's below -1000000000000")
        stands: dict[int, Status] = {person.id: "member" for person in members}
        stands |= {person.id: "administrator" for person in admins}
        if owner is not None:
            stands[owner.id] = "creator"
        kind: ChatKind = "supergroup" if chat_id < SUPERGROUPS else "group"
        return self.add_chat(Chat(self, chat_id, kind, title, username, forum, stands, bot_is=bot_is))

    def channel(self, chat_id: int, title: str, *, username: str | None = None) -> Chat:
        """The bot is an administrator of it."""
        return self.add_chat(Chat(self, chat_id, "channel", title, username, bot_is="administrator"))

    def add_chat(self, chat: Chat) -> Chat:
        self.chats[chat.id] = chat
        self.note()
        return chat

    def menu(self, chat: Chat, person: Person) -> list[tuple[str, str]]:
        """The commands, with their descriptions, that this person is offered in this chat."""
        return self.menus.seen(chat, person)

    # What happens.

    def date(self) -> int:
        return int(self.wall().timestamp())

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def pressed(self, by: Person, data: str) -> Press:
        press = Press(str(4_000_000_000 + len(self.presses)), by, data)
        self.presses[press.id] = press
        return press

    def note(self) -> None:
        self.version += 1
        self._changed.unpark_all()

    async def until(self, true: Callable[[], object]) -> None:
        """Wait for a condition about this Telegram; it is looked at whenever anything changes here."""
        await trio.lowlevel.checkpoint()
        while not true():
            await self._changed.park()

    def asked(self, method: str, chat: Chat | int | None = None) -> list[Request]:
        """The requests for that method, in that chat if one is given."""
        number = chat.id if isinstance(chat, Chat) else chat
        return [
            request
            for request in self.requests
            if request.method.lower() == method.lower() and number in (None, request.chat_id)
        ]

    # Trouble.

    def trouble(
        self,
        kind: Kind | str,
        method: str = "*",
        *,
        chat: Chat | int | None = None,
        times: int | None = 1,
        skip: int = 0,
    ) -> Trouble:
        """For the next requests of that method, in that chat; ``times`` None for all, after ``skip`` that go well.

        ``kind`` is one of `tests.fakes.telegram.trouble`, or the name of one there.
        """
        number = chat.id if isinstance(chat, Chat) else chat
        trouble = Trouble(NAMED[kind] if isinstance(kind, str) else kind, method, number, times, skip)
        self.troubles.append(trouble)
        return trouble

    def meets(self, request: Request) -> Trouble | None:
        met = next((trouble for trouble in self.troubles if trouble.meets(request)), None)
        self.note()
        return met

    def release(self) -> None:
        """All trouble ends; what hangs goes on."""
        for trouble in self.troubles:
            trouble.release()
        self.note()

    def again(self, message: Message) -> Update:
        """A second update, with a number of its own, about a message that the bot was told of already."""
        return self.updates.push("message", message.json, message.chat_id)

    @property
    def open_polls(self) -> list[Request]:
        """The getUpdates that wait now."""
        return [request for request in self.open if request.method.lower() == "getupdates"]

    def statistics(self) -> dict[str, Any]:
        return {
            "pending": len(self.updates.pending),
            "requests": len(self.requests),
            "limit_hits": self.pace.hits.total(),
            "refused": sum(request.status >= 400 for request in self.requests),
        }
