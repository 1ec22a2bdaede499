"""How somebody who stands on no list is let in: a code for the stranger, used by whoever may let people in. (S1)

    stranger ──▶ knock ──▶ code in the chat ──▶ told to somebody who has a token ──▶ approve ──▶ in that one's tenant
                   └──▶ silence: a code was shown lately, or the stranger was turned away, or too many knock

A code is eight of 32 signs, so 40 bits; a sign that looks like one of them is read as that one. It is shown in the chat
and nowhere else. No list shows it, because it is the only proof that whoever knocks is whom one is talking to: names
can be chosen freely. The list has an id instead, good for turning somebody away.

Five wrong codes an hour are looked at for each tenant. They are counted in this process: a restart begins anew, which
makes no guess likely, and nobody can use up the tries of another tenant.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import deque
from datetime import datetime, timedelta
from functools import partial
from hmac import compare_digest
from typing import TYPE_CHECKING

import orjson
import trio

from gateway.channels.printable import printable
from gateway.persist import persist
from gateway.plain import excerpt
from store.pairing import Knock, PairingState, Sender

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from store.pairing import Pairing
    from store.protocols import PairingStore

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LOOKS_LIKE = str.maketrans("OIL", "011", " -_")
LENGTH = 8
ID_LENGTH = 16
MOST_WRONG = 5
WRONG_WITHIN = timedelta(hours=1)
LONGEST_NAME = 64


def new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def read_code(text: str) -> str | None:
    """A code as somebody has typed it, in its own form; None if it cannot be one."""
    code = text.upper().translate(LOOKS_LIKE)
    return code if len(code) == LENGTH and set(code) <= set(ALPHABET) else None


def digest_of(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


def id_of(who: Sender) -> str:
    """A short name for somebody in lists and addresses; the same for the same sender, and no secret."""
    return hashlib.sha256(orjson.dumps(list(who))).hexdigest()[:ID_LENGTH]


def is_id(text: str) -> bool:
    """Whether that is an id rather than a code."""
    return len(text) == ID_LENGTH and set(text) <= set("0123456789abcdef")


class TooManyTries(Exception):
    """So many codes were wrong that none is looked at for a while."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__(f"{MOST_WRONG} codes were wrong in the last hour, so none is looked at now")
        self.wait = wait


class Tries:
    """So many within a span for each asker; what turns out to be no guess is given back. Pure: time is handed in."""

    def __init__(self, most: int = MOST_WRONG, within: timedelta = WRONG_WITHIN) -> None:
        self._most = most
        self._within = within
        self._taken: dict[str, deque[datetime]] = {}

    def take(self, asker: str, now: datetime) -> timedelta:
        """Zero if one more may be tried, and that counts; else how long until then, and nothing is counted."""
        taken = self._taken.setdefault(asker, deque())
        while taken and taken[0] + self._within <= now:
            taken.popleft()
        if len(taken) >= self._most:
            return taken[0] + self._within - now
        taken.append(now)
        return timedelta()

    def give_back(self, asker: str, at: datetime) -> None:
        """The one that was taken then was right."""
        taken = self._taken.get(asker, deque())
        if at in taken:
            taken.remove(at)
        if not taken:
            self._taken.pop(asker, None)


class Pairings:
    def __init__(self, store: PairingStore, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._tries = Tries()
        self._one_by_one = trio.Lock()
        """Held while a code is looked at: many right ones at once are not taken for guesses."""

    # ── for a channel ────────────────────────────────────────────────────────────────────────────────────────────────

    async def allowed(self, channel: str, account: str, sender: str) -> str | None:
        """The tenant that somebody was let into; None for a stranger."""
        return await persist(partial(self._store.allowed, Sender(channel, account, sender)))

    async def knock(self, channel: str, account: str, sender: str, name: str) -> str | None:
        """A code to be shown to a stranger who writes; None for silence."""
        code = new_code()
        called = excerpt(printable(name), LONGEST_NAME)
        knock = Knock(Sender(channel, account, sender), called, digest_of(code))
        return code if await persist(partial(self._store.knock, knock)) else None

    # ── for whoever may let people in ────────────────────────────────────────────────────────────────────────────────

    async def approve(self, code: str, tenant: str, by: str, *, asker: str) -> Pairing | None:
        """Whom the code has let in; None if it is wrong. The tries are ``asker``'s; `TooManyTries` if none is left."""
        return await self._try(asker, partial(persist, partial(self._store.approve, digest_of(code), tenant, by)))

    async def deny(self, code: str, by: str, *, asker: str) -> Pairing | None:
        """Who was turned away; None if the code is nobody's. To ask is a try too."""
        found = await self._try(asker, partial(self._with_code, code))
        return None if found is None else await self._turn_away(found.who, by)

    async def deny_known(self, id: str, by: str) -> Pairing | None:
        """Turn away whom the list shows under this id."""
        found = await self._knocking(id)
        return None if found is None else await self._turn_away(found.who, by)

    async def knocks(self) -> tuple[Pairing, ...]:
        return await persist(self._store.knocks)

    async def of_tenant(self, tenant: str) -> tuple[Pairing, ...]:
        return await persist(partial(self._store.pairings, tenant))

    async def dismiss(self, tenant: str, id: str) -> bool:
        """Whom this tenant has let in is a stranger again."""
        found = next((one for one in await self.of_tenant(tenant) if id_of(one.who) == id), None)
        return found is not None and await persist(partial(self._store.dismiss, tenant, found.who))

    async def dismiss_knock(self, id: str) -> bool:
        """Who knocks or was turned away is forgotten, and may knock anew."""
        found = await self._knocking(id)
        return found is not None and await persist(partial(self._store.dismiss, None, found.who))

    async def _try(self, asker: str, look: Callable[[], Awaitable[Pairing | None]]) -> Pairing | None:
        """Who has the code. It counts as wrong before it is looked at: whoever goes away meanwhile has tried it too."""
        async with self._one_by_one:
            at = self._now()
            if wait := self._tries.take(asker, at):
                raise TooManyTries(wait)
            found = await look()
            if found is not None:
                self._tries.give_back(asker, at)
            return found

    async def _with_code(self, code: str) -> Pairing | None:
        digest, found = digest_of(code), None
        for one in await self.knocks():  # all of them, each in constant time
            if compare_digest(one.digest, digest):
                found = one
        return found

    async def _knocking(self, id: str) -> Pairing | None:
        return next((one for one in await self.knocks() if id_of(one.who) == id), None)

    async def _turn_away(self, who: Sender, by: str) -> Pairing | None:
        if not await persist(partial(self._store.deny, who, by)):
            return None
        rows = await self.knocks()
        return next((one for one in rows if one.who == who and one.state is PairingState.DENIED), None)
