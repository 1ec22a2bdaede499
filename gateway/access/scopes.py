"""What a token may be good for. A token has some of these, and what it may do is the sum of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable

Scope = Literal["read", "chat", "schedule", "trigger", "admin", "operator"]

SCOPES: tuple[Scope, ...] = get_args(Scope)
ABOUT: dict[Scope, str] = {
    "read": "look at schedules, runs, sessions and notifications of its tenant",
    "chat": "write messages and stop what they started",
    "schedule": "make, change and delete schedules",
    "trigger": "fire a schedule by a call, and nothing else",
    "admin": "look after the tokens of its tenant and stop anything in it",
    "operator": "look after the whole gateway: tenants, lanes, workers, metrics",
}
USUAL: tuple[Scope, ...] = ("read", "chat", "schedule", "trigger")


class UnknownScope(ValueError):
    """The text says which, and what there is."""


def read_scopes(names: Iterable[str]) -> tuple[Scope, ...]:
    """Scopes by their names, each once, in the order of `SCOPES`."""
    wanted = set(names)
    if unknown := sorted(wanted - set(SCOPES)):
        raise UnknownScope(f'"{unknown[0][:40]}" is no scope: expected {", ".join(SCOPES)}')
    return tuple(scope for scope in SCOPES if scope in wanted)
