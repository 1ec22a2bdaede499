"""What the verbs of the JSON store share: they look and change rows in one step, and wait until that is on the disk."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from store.files.decode import Kept
from store.records import Line, Session, Standing
from store.rules import check_session, plain_json, unknown_tenant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from store.files.journal import Journal
    from store.records import Lease, Said, SessionKey


class Verbs:
    def __init__(self, journal: Journal, now: Callable[[], datetime]) -> None:
        self.journal = journal
        self.tables = journal.tables
        self.now = now

    def check_tenants(self, sessions: Iterable[SessionKey]) -> None:
        for session in sessions:
            check_session(session)
            if session.tenant not in self.tables.tenants.rows:
                raise unknown_tenant(session.tenant)

    def holds(self, lease: Lease | None) -> bool:
        held = None if lease is None else self.tables.leases.rows.get(lease.name)
        return lease is not None and held is not None and held.token == lease.token and held.until > self.now()

    def keep(self, key: SessionKey) -> Kept:
        self.check_tenants([key])
        return self.tables.sessions.rows.get(key) or Kept(Session(key, Standing(), 0, 0, self.now()))

    def put_session(self, kept: Kept, session: Session) -> Session:
        session = replace(session, updated_at=self.now())
        self.tables.put(self.tables.sessions, session.key, replace(kept, session=session))
        return session

    def write_down(self, kept: Kept, session: Session, said: Sequence[Said]) -> Session:
        """The lines are rows at first; `store.files.keeping` moves them into the transcript's file."""
        number = session.lines
        for one in said:
            number += 1
            line = Line(number, self.now(), replace(one, data=plain_json(one.data)))
            self.tables.put(self.tables.lines, (session.key, number), line)
        return self.put_session(kept, replace(session, lines=number))
