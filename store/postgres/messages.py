"""Inbox and outbox in Postgres: every verb is one statement, and the lease is looked at in the same one.

A verb that writes holds off the next grant of the lease until it is committed (`holds_lease` in the schema), so what an
owner has written is there before the next one begins, and nothing of it comes afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from store.postgres import rows
from store.postgres.queries import load
from store.postgres.text import NOWHERE, escaped, to_json
from store.protocols import RuleBroken, StoreUnavailable
from store.records import CHAT_LEASE, MOVES, REMEMBER_KEYS, Message, MessageState, OwnKey, SessionKey, Standing
from store.rules import check_end, check_figure, check_words, unknown_tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from store.postgres.database import Database
    from store.records import Address, Cursor, Incoming, Lease, Note, Receipt, Reply, Said

SQL = load("messages")
LOOKS = 5
"""A delivery that somebody else is adding is found at the second look; if not by then, something is wrong."""

SOURCES = {to: sorted(state for state in MessageState if to in MOVES[state]) for to in MessageState}
"""From which states each one can be reached."""


@dataclass(frozen=True, slots=True)
class PostgresMessages:
    db: Database
    now: Callable[[], datetime | None]
    token: int | None
    """That of the chat lease; None for somebody who has none."""

    async def accept(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> tuple[Receipt, ...] | None:
        place = (None, None, None) if cursor is None else (cursor.channel, cursor.account, cursor.position)
        try:
            check_words(*place[:2] if cursor is not None else ())
            delivered = rows.batch_json(batch)
        except RuleBroken:
            if cursor is not None and not await self._works():
                return None
            raise
        if not batch:
            return await self._accept_nothing(cursor)
        for _ in range(LOOKS):
            found = await self._fetch("accept", delivered, *place, REMEMBER_KEYS)
            if found and found[0]["stranger"] is not None:
                raise unknown_tenant(found[0]["stranger"])
            if all(row["id"] is not None for row in found):
                return await rows.records(found, rows.receipt) if found else None
        raise StoreUnavailable("somebody else keeps taking what was delivered: try again")

    async def cursor(self, channel: str, account: str) -> int | None:
        row = await self._first("cursor", channel, account)
        return None if row is None else int(row["position"])

    async def begin(self, turn: str, ids: Sequence[int]) -> tuple[Message, ...]:
        check_words(turn)
        asked = rows.ids_of(ids)
        begun = await rows.records(await self._fetch("begin", turn, asked), rows.message)
        found = {message.id: message for message in begun}
        return tuple(found[number] for number in asked if number in found)

    async def settle(
        self,
        turn: str,
        ids: Sequence[int],
        state: MessageState,
        notes: Sequence[Note],
        said: Sequence[Said] = (),
        context: float | None = None,
    ) -> bool:
        check_end(state)
        check_figure(context)
        asked = rows.ids_of(ids)
        try:
            told, lines = rows.notes_json(notes), rows.said_json(said)
        except RuleBroken:
            if not await self._may_settle(turn, asked, state):
                return False
            raise
        row = await self._first("settle", turn, asked, state, SOURCES[state], told, lines, context)
        if row["illegal_id"] is not None:
            raise impossible(row["illegal_id"], row["illegal_state"], state)
        if row["open"] and row["stranger"] is not None:
            raise unknown_tenant(row["stranger"])
        return bool(row["open"])

    async def stop(
        self, session: SessionKey, upto: int, *, sender: str | None = None, only: Sequence[int] | None = None
    ) -> tuple[Message, ...]:
        narrowed = None if only is None else rows.ids_of(only)
        found = await self._fetch(
            "stop", session.tenant, rows.session_text(session), rows.fitting(upto), sender, narrowed
        )
        return await rows.records(found, rows.message)

    async def put_back(self, turn: str, ids: Sequence[int]) -> None:
        await self._fetch("put_back", turn, rows.ids_of(ids))

    async def resume(self) -> tuple[Message, ...]:
        return await rows.records(await self._fetch("resume"), rows.message)

    async def waiting(self) -> tuple[Message, ...]:
        return await rows.records(await self._fetch("waiting"), rows.message)

    async def standings(self, sessions: Collection[SessionKey]) -> Mapping[SessionKey, Standing]:
        texts = {key: rows.session_text(key) for key in sessions}
        asked = [{"tenant_id": key.tenant, "session": text} for key, text in texts.items() if text != NOWHERE]
        found = await self.db.fetch(SQL["standings"], to_json(asked))
        known = {row["session"]: rows.readable(row, rows.standing) for row in found}
        return {key: known.get(text) or Standing() for key, text in texts.items()}

    async def states(self, keys: Collection[OwnKey]) -> Mapping[OwnKey, MessageState]:
        asked = list(keys)
        columns = [[escaped(key[place]) for key in asked] for place in range(len(OwnKey._fields))]
        found = await self.db.fetch(SQL["states"], self.now(), *columns, REMEMBER_KEYS)
        return {asked[row["place"] - 1]: MessageState(row["state"]) for row in found}

    async def outbox(self, limit: int, skip: Collection[Address] = ()) -> tuple[Reply, ...]:
        resting = [rows.address_text(address) for address in skip]
        unreadable = 0
        while True:
            found = await self._fetch("outbox", rows.limit_of(limit + unreadable), resting)
            replies = await rows.records(found, rows.reply)
            if len(found) - len(replies) <= unreadable:
                return replies
            # What cannot be read takes nobody's place.
            unreadable = len(found) - len(replies)

    async def progress(self, reply: int, parts: int, live: str) -> bool:
        check_words(live)
        return await self._first("progress", rows.fitting(reply), parts, live) is not None

    async def sent(self, reply: int, *, failed: str = "") -> bool:
        check_words(failed)
        return await self._first("sent", rows.fitting(reply), failed) is not None

    async def _accept_nothing(self, cursor: Cursor | None) -> tuple[Receipt, ...] | None:
        if cursor is None:
            return ()
        moved = await self._first("move_cursor", cursor.channel, cursor.account, cursor.position)
        return None if moved is None else ()

    async def _works(self) -> bool:
        return bool((await self._first("works"))[0])

    async def _may_settle(self, turn: str, ids: list[int], state: MessageState) -> bool:
        """Whether there is something to settle; only then does it matter that it cannot be written."""
        mine = await self._fetch("mine", turn, ids)
        for row in mine:
            if row["state"] not in SOURCES[state]:
                raise impossible(row["id"], row["state"], state)
        return bool(mine)

    async def _fetch(self, name: str, *args: object) -> list[Any]:
        return await self.db.fetch(SQL[name], self.now(), self.token, *args)

    async def _first(self, name: str, *args: object) -> Any:
        return await self.db.first(SQL[name], self.now(), self.token, *args)


def impossible(number: int, before: str, after: MessageState) -> ValueError:
    return ValueError(f"message {number} cannot go from {before} to {after}")


def chat_token(lease: Lease | None) -> int | None:
    return rows.fitting(lease.token) if lease is not None and lease.name == CHAT_LEASE else None
