"""Transcripts and policies of the JSON store."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import trio

from store.files.disk import unreadable
from store.files.verbs import Verbs
from store.rules import at_most, check_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime

    from store.files.decode import Kept
    from store.files.journal import Journal
    from store.files.keeping import Keeper
    from store.records import Line, Said, Session, SessionKey, SessionPolicy


class JsonSessions(Verbs):
    def __init__(self, journal: Journal, now: Callable[[], datetime], keeper: Keeper) -> None:
        super().__init__(journal, now)
        self.keeper = keeper

    async def session(self, key: SessionKey) -> Session | None:
        kept = await self.journal.do(lambda: self.tables.sessions.rows.get(key))
        return None if kept is None else kept.session

    async def sessions(self, tenant: str, *, limit: int = 100, after: str = "") -> tuple[Session, ...]:
        return await self.journal.do(lambda: self._sessions(tenant, limit, after))

    async def set_policy(self, key: SessionKey, policy: SessionPolicy, only: Collection[str] | None = None) -> Session:
        return await self.journal.do(lambda: self._set_policy(key, policy, only))

    async def remember(self, key: SessionKey, said: Sequence[Said]) -> int:
        return await self.journal.do(lambda: self._remember(key, said))

    async def transcript(self, key: SessionKey, *, after: int = 0, limit: int = 100) -> tuple[Line, ...]:
        return await self._lines(key, lambda kept: (max(after, kept.session.trimmed), limit))

    async def newest(self, key: SessionKey, limit: int) -> tuple[Line, ...]:
        """Numbers rise by one, so the last lines are those behind a known number."""
        return await self._lines(key, lambda kept: (max(kept.session.lines - limit, kept.session.trimmed), limit))

    async def trim(self, key: SessionKey, upto: int) -> int:
        return await self.journal.do(lambda: self._trim(key, upto))

    async def forget(self, key: SessionKey) -> bool:
        return await self.journal.do(lambda: self.drop_session(key))

    # ── each in one step ─────────────────────────────────────────────────────────────────────────────────────────────

    def _sessions(self, tenant: str, limit: int, after: str) -> tuple[Session, ...]:
        texts = islice(self.tables.sessions_of.after(tenant, after), at_most(limit))
        return tuple([self.tables.sessions.rows[self.tables.by_text[text]].session for text in texts])

    def _set_policy(self, key: SessionKey, policy: SessionPolicy, only: Collection[str] | None) -> Session:
        kept = self.keep(key)
        before = kept.session.standing
        standing = replace(before, policy=before.policy.changed(policy, only))
        return self.put_session(kept, replace(kept.session, standing=standing))

    def _remember(self, key: SessionKey, said: Sequence[Said]) -> int:
        check_words(*(one.text for one in said))
        kept = self.keep(key)
        return self.write_down(kept, kept.session, said).lines

    def _trim(self, key: SessionKey, upto: int) -> int:
        kept = self.tables.sessions.rows.get(key)
        upto = min(upto, 0 if kept is None else kept.session.lines)
        if kept is None or upto <= kept.session.trimmed:
            return 0
        for number in [number for number in self.tables.lines_of[key] if number <= upto]:
            self.tables.drop(self.tables.lines, (key, number))
        self.put_session(kept, replace(kept.session, trimmed=upto))
        return upto - kept.session.trimmed

    def drop_session(self, key: SessionKey) -> bool:
        kept = self.tables.drop(self.tables.sessions, key)
        if kept is None:
            return False
        for number in list(self.tables.lines_of[key]):
            self.tables.drop(self.tables.lines, (key, number))
        if kept.file:
            self.tables.put(self.tables.trash, kept.file, True)
        return True

    # ── lines: some in the file, the newest as rows ──────────────────────────────────────────────────────────────────

    async def _lines(self, key: SessionKey, wanted: Callable[[Kept], tuple[int, int]]) -> tuple[Line, ...]:
        while True:
            kept, rows, after, limit = await self.journal.do(lambda: self._look(key, wanted))
            if kept is None or limit <= 0:
                return ()
            if after >= kept.filed or not kept.file:
                return tuple(rows)
            filed = await self._filed(kept, after, limit)
            if filed is not None:
                return tuple([*filed, *rows][:limit])

    def _look(
        self, key: SessionKey, wanted: Callable[[Kept], tuple[int, int]]
    ) -> tuple[Kept | None, list[Line], int, int]:
        kept = self.tables.sessions.rows.get(key)
        if kept is None:
            return None, [], 0, 0
        after, limit = wanted(kept)
        numbers = islice(self.tables.lines_of.after(key, after), at_most(limit))
        return kept, [self.tables.lines.rows[key, number] for number in numbers], after, limit

    async def _filed(self, kept: Kept, after: int, limit: int) -> Sequence[Line] | None:
        """What the file says; None if the session has another one meanwhile."""
        key = kept.session.key
        try:
            found = await trio.to_thread.run_sync(self.keeper.transcripts.read, kept, after, limit)
        except FileNotFoundError:
            if self.tables.sessions.rows.get(key) != kept:
                return None
            self.keeper.found_damaged(key)
            return ()
        except OSError as error:
            raise unreadable(error, self.keeper.transcripts.place / kept.file) from error
        if found.damaged:
            self.keeper.found_damaged(key)
        return found.lines
