"""`/queue` and `/tz`: how a conversation is treated, shown and set. What is set is kept with the conversation.

/queue                       /queue mode steer     /queue steer        /queue cap 5
/queue debounce 500          /queue drop new       /queue reset        /tz Europe/Berlin
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, get_args

from cron.errors import ZoneError
from cron.zones import read_zone
from gateway.persist import persist
from gateway.plain import excerpt
from store.records import DropPolicy, QueueMode, SessionPolicy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.settings import Settings
    from store.protocols import SessionStore
    from store.records import Message

MODES = get_args(QueueMode)
DROPS = get_args(DropPolicy)
NAMES = ("mode", "cap", "drop", "debounce")
HOW = (
    "/queue mode queue|collect|steer|interrupt, /queue cap 10, /queue drop old|new, /queue debounce 800 (milliseconds),"
    " /queue reset."
)


class ChatDesk:
    def __init__(
        self, settings: Settings, sessions: SessionStore, zone: Callable[[str], Awaitable[str]] | None = None
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._zone = zone
        """The zone of a tenant whose chats have none of their own."""

    async def queue(self, message: Message, words: str) -> str:
        policy = await self._policy(message)
        if not words:
            return shown(self._settings, policy)
        try:
            after = changed(policy, words.lower().split())
        except ValueError as error:
            return f"{error}. {HOW}"
        after = await self._keep(message, policy, after)
        return f"{shown(self._settings, after)}\nThis counts from your next message on."

    async def tz(self, message: Message, words: str) -> str:
        policy = await self._policy(message)
        if not words:
            usual = "UTC" if self._zone is None else await self._zone(message.session.tenant)
            where = f"{policy.zone}, set for this chat" if policy.zone else f"{usual}, as everywhere here"
            return f"Times are in {where}. /tz Europe/Berlin changes it, /tz reset takes that back."
        if words.lower() == "reset":
            await self._keep(message, policy, replace(policy, zone=None))
            return "This chat has no time zone of its own any more."
        try:
            zone = read_zone(words).key
        except ZoneError as error:
            told = str(error)
            return told[:1].upper() + told[1:] + ("" if told.endswith("?") else ".")
        await self._keep(message, policy, replace(policy, zone=zone))
        return f"Times in this chat are in {zone} from now on. What is scheduled already keeps its own."

    async def _policy(self, message: Message) -> SessionPolicy:
        known = await persist(partial(self._sessions.session, message.session))
        return SessionPolicy() if known is None else known.standing.policy

    async def _keep(self, message: Message, before: SessionPolicy, after: SessionPolicy) -> SessionPolicy:
        """Only what is new: somebody may be setting something else at the same time."""
        new = [one.name for one in fields(after) if getattr(after, one.name) != getattr(before, one.name)]
        session = await persist(partial(self._sessions.set_policy, message.session, after, new))
        return session.standing.policy


def changed(policy: SessionPolicy, words: list[str]) -> SessionPolicy:
    """The policy after `mode steer cap 5`; ValueError says what is wrong."""
    if words == ["reset"]:
        return SessionPolicy(zone=policy.zone)
    if len(words) == 1 and words[0] in MODES:
        words = ["mode", *words]
    if len(words) % 2:
        name = words[-1] if words[-1] in NAMES else words[0]
        missing = f"{name} needs a value" if name in NAMES else f'"{excerpt(" ".join(words))}" is not understood'
        raise ValueError(missing)
    for name, value in zip(words[::2], words[1::2], strict=True):
        if name == "mode" and value in MODES:
            policy = replace(policy, mode=value)  # type: ignore[arg-type]  # it is one of them
        elif name == "drop" and value in DROPS:
            policy = replace(policy, drop=value)  # type: ignore[arg-type]  # it is one of them
        elif name == "cap":
            policy = replace(policy, cap=whole(name, value, 1, 10_000))
        elif name == "debounce":
            policy = replace(policy, debounce_ms=whole(name, value, 0, 60_000))
        elif name in ("mode", "drop"):
            raise ValueError(
                f'"{excerpt(value)}" is no {name}: expected {", ".join(MODES if name == "mode" else DROPS)}'
            )
        else:
            raise ValueError(f'"{excerpt(name)}" is not something that can be set')
    return policy


def whole(name: str, value: str, least: int, most: int) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 12 and least <= int(value) <= most):
        raise ValueError(f'"{excerpt(value)}" is no {name}: expected a whole number from {least} to {most}')
    return int(value)


def shown(settings: Settings, policy: SessionPolicy) -> str:
    """What is in force, and what of it was set here."""
    usual = settings.queue
    rows = {
        "mode": (policy.mode, usual.mode, ""),
        "cap": (policy.cap, usual.cap, " waiting"),
        "drop": (policy.drop, usual.drop, ""),
        "debounce": (policy.debounce_ms, usual.debounce, " ms"),
    }
    lines = [
        f"  {name:<9} {usually if own is None else own}{unit}{'' if own is None else ' (set for this chat)'}"
        for name, (own, usually, unit) in rows.items()
    ]
    return "\n".join(["How messages wait here:", *lines, HOW])
