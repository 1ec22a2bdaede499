"""What somebody must be allowed to do who says a command over HTTP: as much as for the route that does the same.

Anybody who may chat may ask, stop and begin anew where they chat, as anybody may in a chat of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cron import phrases
from cron.errors import BadInput
from gateway.commands import Command, parse_command
from gateway.http.problems import Problem

if TYPE_CHECKING:
    from gateway.access.scopes import Scope
    from gateway.access.tokens import Caller

LOOKS = frozenset({"list", "why"})


def check_command(me: Caller, text: str) -> None:
    """Raises the problem if this is a command that the caller may not use."""
    command = parse_command(text)
    need = None if command is None else needed(command, text)
    if command is not None and need is not None and not me.may(need):
        detail = f'/{command.name} needs the scope "{need}", and this token has {sorted(me.scopes)}'
        raise Problem(403, "missing-scope", detail, next=f"Make a token that may: goclaw token create --scope {need}")


def needed(command: Command, text: str) -> Scope | None:
    """The scope, besides the one to chat."""
    if command.name in ("queue", "tz"):
        return "admin" if command.rest else None
    if command.name not in ("schedule", "cron"):
        return None
    if command == Command("cron"):
        return "read"  # the list
    try:
        verb = phrases.parse_command(text).verb
    except BadInput:
        return None  # it is answered with how to say it
    return None if verb == "help" else "read" if verb in LOOKS else "schedule"
