"""The commands that a bot offers, by scope and language, and which of them a person sees."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.fakes.telegram.errors import bad

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.fakes.telegram.people import Person
    from tests.fakes.telegram.room import Room

Scope: TypeAlias = tuple[str, int | None, int | None]

NAME = re.compile(r"[a-z0-9_]{1,32}")
MOST = 100
LONGEST = 256
WIDE = ("default", "all_private_chats", "all_group_chats", "all_chat_administrators")
NARROW = ("chat", "chat_administrators", "chat_member")


class Menus:
    def __init__(self) -> None:
        self.all: dict[tuple[Scope, str], list[dict[str, Any]]] = {}
        """The commands for each scope, which is its type, its chat and its user, and language."""

    def set(self, scope: Scope, language: str, commands: Sequence[Any]) -> None:
        if len(commands) > MOST:
            raise bad("too many commands specified")
        self.all[scope, language] = [checked(command) for command in commands]
        if not commands:
            self.delete(scope, language)

    def get(self, scope: Scope, language: str) -> list[dict[str, Any]]:
        return self.all.get((scope, language), [])

    def delete(self, scope: Scope, language: str) -> None:
        self.all.pop((scope, language), None)

    def seen(self, chat: Room, person: Person) -> list[tuple[str, str]]:
        """The narrowest scope that has commands wins, in each the person's language before any."""
        for scope in scopes(chat, person):
            for language in (person.language or "", ""):
                if commands := self.get(scope, language):
                    return [(command["command"], command["description"]) for command in commands]
        return []


def scopes(chat: Room, person: Person) -> list[Scope]:
    """From the narrowest to the widest."""
    if chat.private:
        return [("chat", chat.id, None), ("all_private_chats", None, None), ("default", None, None)]
    found: list[Scope] = [("chat_member", chat.id, person.id)]
    admin = chat.members.get(person.id) in ("administrator", "creator")
    if admin:
        found.append(("chat_administrators", chat.id, None))
    found.append(("chat", chat.id, None))
    if admin:
        found.append(("all_chat_administrators", None, None))
    return [*found, ("all_group_chats", None, None), ("default", None, None)]


def read_scope(scope: Mapping[str, Any]) -> Scope:
    kind = scope.get("type", "default")
    if kind in WIDE:
        return (kind, None, None)
    if kind not in NARROW:
        raise bad("can't parse BotCommandScope: Unsupported type specified")
    if "chat_id" not in scope:
        raise bad("can't parse BotCommandScope: Can't find field \"chat_id\"")
    return (kind, int(scope["chat_id"]), int(scope["user_id"]) if kind == "chat_member" else None)


def checked(command: Any) -> dict[str, Any]:
    name, about = str(command.get("command", "")).removeprefix("/"), str(command.get("description", ""))
    if not NAME.fullmatch(name):
        raise bad("BOT_COMMAND_INVALID")
    if not 1 <= len(about) <= LONGEST:
        raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
    return {"command": name, "description": about}
