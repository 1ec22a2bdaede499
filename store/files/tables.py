"""What the JSON store keeps, in memory: tables of rows that never change, only give way to others.

A change goes through `put` or `drop`. Both note what was there before, so that it can be undone, and tell the indexes.
The same two ways in are used when a change is made, when it is undone and when the journal is read back, so an index
cannot say anything else than the rows do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from store.files import decode
from store.files.cron_tables import CronTables
from store.files.indexes import ByAge, Groups, Owned, Queues
from store.files.table import Table

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from datetime import datetime

    from store.files.decode import Kept
    from store.pairing import Pairing, Sender
    from store.records import (
        ApiToken,
        Beat,
        Lease,
        Line,
        MachineSnapshot,
        Message,
        Noted,
        OwnKey,
        Reply,
        Seen,
        SessionKey,
        Tenant,
        Worker,
    )

K = TypeVar("K")
R = TypeVar("R")


class Change(NamedTuple):
    table: Table[Any, Any]
    key: Any
    old: Any
    new: Any


class Tables:
    def __init__(self) -> None:
        self.seq = 0
        """The number of the last transaction."""
        self.next_id = 1
        """What the next message or reply is called."""
        self.log: list[Change] = []
        """What the transaction that is being made has changed."""

        self.meta: Table[str, str] = Table("meta", str, str)
        self.messages: Table[int, Message] = Table("message", int, decode.message, self._note_message)
        self.seen: Table[OwnKey, Seen] = Table("seen", decode.own_key, decode.seen, self._note_seen)
        self.replies: Table[int, Reply] = Table("reply", int, decode.reply, self._note_reply)
        self.cursors: Table[tuple[str, str], int] = Table("cursor", decode.pair, int)
        self.sessions: Table[SessionKey, Kept] = Table("session", decode.session_key, decode.kept, self._note_session)
        self.lines: Table[tuple[SessionKey, int], Line] = Table("line", decode.line_key, decode.line, self._note_line)
        self.trash: Table[str, bool] = Table("trash", str, bool)
        """Transcript files that are of no use, or not yet: they are removed unless a session takes them."""
        self.tenants: Table[str, Tenant] = Table("tenant", str, decode.tenant)
        self.tokens: Table[tuple[str, str], ApiToken] = Table("token", decode.pair, decode.token, self._note_token)
        self.noted: Table[tuple[str, str], Noted] = Table("noted", decode.pair, decode.noted, self._note_noted)
        self.paired: Table[Sender, Pairing] = Table(
            "pairing", decode.sender, decode.pairing, self._note_pairing, lambda row: row.who
        )
        self.workers: Table[str, Worker] = Table("worker", str, decode.worker)
        self.beats: Table[int, Beat] = Table("beat", int, decode.beat, self._note_beat)
        self.machines: Table[int, MachineSnapshot] = Table("machine", int, decode.machine, self._note_machine)
        self.leases: Table[str, Lease] = Table("lease", str, decode.lease)
        self.cron = CronTables()
        own = [one for one in vars(self).values() if isinstance(one, Table)]
        self.every: dict[str, Table[Any, Any]] = {one.name: one for one in (*own, *self.cron.every)}

        self.by_key: dict[OwnKey, int] = {}
        self.open_in: Groups[SessionKey, int] = Groups()
        self.messages_of: Owned[str, int] = Owned()
        self.seen_of: Owned[str, OwnKey] = Owned()
        self.seen_by_age: ByAge[OwnKey] = ByAge(self._seen_at)
        self.queues = Queues()
        self.replies_of: Owned[str, int] = Owned()
        self.sessions_of: Groups[str, str] = Groups()
        self.by_text: dict[str, SessionKey] = {}
        self.lines_of: Groups[SessionKey, int] = Groups()
        self.mostly_trimmed: dict[SessionKey, None] = {}
        self.by_digest: dict[str, tuple[str, str]] = {}
        self.tokens_of: Groups[str, str] = Groups()
        self.noted_of: Owned[str, str] = Owned()
        self.noted_by_age: ByAge[tuple[str, str]] = ByAge(self._noted_at)
        self.paired_of: Groups[str, Sender] = Groups()
        """Who was let in, by tenant."""
        self.knocking_at: Groups[tuple[str, str], Sender] = Groups()
        """Who was not, by channel and account."""
        self.by_code: dict[str, Sender] = {}
        self.knocks_by_age: ByAge[Sender] = ByAge(self._knocks_until)
        self.beats_of: Groups[str, int] = Groups()
        self.beats_by_age: ByAge[int] = ByAge(self._beat_at)
        self.machines_in_order: Groups[str, int] = Groups()
        self.machines_by_age: ByAge[int] = ByAge(self._machine_at)

    # ── changes ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, table: Table[K, R], key: K, row: R) -> R:
        self.log.append(Change(table, key, table.set(key, row), row))
        return row

    def drop(self, table: Table[K, R], key: K) -> R | None:
        old = table.set(key, None)
        if old is not None:
            self.log.append(Change(table, key, old, None))
        return old

    def fresh_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def undo(self, changes: Sequence[Change]) -> None:
        for change in reversed(changes):
            change.table.set(change.key, change.old)

    def take_in(self, raw_rows: Iterable[Sequence[Any]], *, forgive: Container[str] = ()) -> list[str]:
        """Rows as they were written; all of them are understood before the first one is taken.

        One that cannot be understood keeps all others out, unless that is forgiven for its table: then it is left
        out, what was there stays, and it is told which it is and why.
        """
        read: list[tuple[Table[Any, Any], Any, Any]] = []
        left_out: list[str] = []
        for name, raw_key, raw_row in raw_rows:
            try:
                table = self.every[name]
                read.append((table, *table.read(raw_key, raw_row)))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                if name not in forgive:
                    raise ValueError(f"{name} {raw_key}: {error!r}") from None
                left_out.append(f"{name} {raw_key} ({error!r:.100})")
        for table, key, row in read:
            table.set(key, row)
        return left_out

    # ── indexes ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _note_message(self, key: int, old: Message | None, new: Message | None) -> None:
        if old is not None and new is not None and old.incoming is new.incoming:
            return
        if old is not None:
            if self.by_key.get(old.incoming.own_key) == key:
                del self.by_key[old.incoming.own_key]
            self.open_in.drop(old.session, key)
            self.messages_of.drop(old.session.tenant, key)
        if new is not None:
            self.by_key[new.incoming.own_key] = key
            self.open_in.add(new.session, key)
            self.messages_of.add(new.session.tenant, key)

    def _note_seen(self, key: OwnKey, old: Seen | None, new: Seen | None) -> None:
        if old is not None:
            self.seen_of.drop(key.tenant, key)
        if new is not None:
            self.seen_of.add(key.tenant, key)
            self.seen_by_age.add(new.at, key)

    def _note_reply(self, key: int, old: Reply | None, new: Reply | None) -> None:
        if old is not None and new is not None and old.note is new.note:
            return
        if old is not None:
            self.queues.drop(old.note.session.address, (not old.note.urgent, key))
            self.replies_of.drop(old.note.session.tenant, key)
        if new is not None:
            self.queues.add(new.note.session.address, (not new.note.urgent, key))
            self.replies_of.add(new.note.session.tenant, key)

    def _note_session(self, key: SessionKey, old: Kept | None, new: Kept | None) -> None:
        self.mostly_trimmed.pop(key, None)
        if new is not None and new.mostly_trimmed:
            self.mostly_trimmed[key] = None
        if (old is None) is (new is None):
            return
        text = str(key)
        if new is None:
            self.sessions_of.drop(key.tenant, text)
            del self.by_text[text]
        else:
            self.sessions_of.add(key.tenant, text)
            self.by_text[text] = key

    def _note_line(self, key: tuple[SessionKey, int], old: Line | None, new: Line | None) -> None:
        if new is None:
            self.lines_of.drop(*key)
        elif old is None:
            self.lines_of.add(*key)

    def _note_token(self, key: tuple[str, str], old: ApiToken | None, new: ApiToken | None) -> None:
        if old is not None and new is not None and old.new is new.new:
            return
        if old is not None:
            if self.by_digest.get(old.new.digest) == key:
                del self.by_digest[old.new.digest]
            self.tokens_of.drop(*key)
        if new is not None:
            self.by_digest[new.new.digest] = key
            self.tokens_of.add(*key)

    def _note_noted(self, key: tuple[str, str], old: Noted | None, new: Noted | None) -> None:
        if old is not None:
            self.noted_of.drop(*key)
        if new is not None:
            self.noted_of.add(*key)
            self.noted_by_age.add(new.at, key)

    def _note_pairing(self, key: Sender, old: Pairing | None, new: Pairing | None) -> None:
        if old is not None:
            if self.by_code.get(old.digest) == key:
                del self.by_code[old.digest]
            if old.tenant is None:
                self.knocking_at.drop(key[:2], key)
            else:
                self.paired_of.drop(old.tenant, key)
        if new is not None:
            self.by_code[new.digest] = key
            if new.tenant is None:
                self.knocking_at.add(key[:2], key)
            else:
                self.paired_of.add(new.tenant, key)
            if new.until is not None:
                self.knocks_by_age.add(new.until, key)

    def _note_beat(self, key: int, old: Beat | None, new: Beat | None) -> None:
        if old is not None:
            self.beats_of.drop(old.worker, key)
        if new is not None:
            self.beats_of.add(new.worker, key)
            self.beats_by_age.add(new.at, key)

    def _note_machine(self, key: int, old: MachineSnapshot | None, new: MachineSnapshot | None) -> None:
        if old is not None:
            self.machines_in_order.drop("", key)
        if new is not None:
            self.machines_in_order.add("", key)
            self.machines_by_age.add(new.at, key)

    def _seen_at(self, key: OwnKey) -> datetime | None:
        row = self.seen.rows.get(key)
        return None if row is None else row.at

    def _noted_at(self, key: tuple[str, str]) -> datetime | None:
        row = self.noted.rows.get(key)
        return None if row is None else row.at

    def _knocks_until(self, key: Sender) -> datetime | None:
        row = self.paired.rows.get(key)
        return None if row is None else row.until

    def _beat_at(self, key: int) -> datetime | None:
        row = self.beats.rows.get(key)
        return None if row is None else row.at

    def _machine_at(self, key: int) -> datetime | None:
        row = self.machines.rows.get(key)
        return None if row is None else row.at
