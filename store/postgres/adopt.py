"""Everything from a directory into the database: all of it or nothing, and again without harm.

What the database has already stays as it is, but for what has come to an end in the files since: messages that were
stopped or answered there and wait here end here too, revoked tokens and disabled tenants open nothing. A directory has
a name of its own, and the database remembers how far it has copied it, so that what was copied, answered and forgotten
does not come back. It goes by numbers and by time, since a directory from a backup uses its numbers again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from store.copying import Copied
from store.postgres.adopt_cron import take_cron
from store.postgres.queries import load
from store.postgres.rows import address_text
from store.postgres.text import to_json
from store.records import OwnKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from store.copying import Everything
    from store.pairing import Pairing
    from store.postgres import PostgresStore
    from store.records import Line, Reply, Session, SessionKey

SQL = load("adopt")
AT_ONCE = 2_000

Row = dict[str, object]


async def adopt(store: PostgresStore, everything: Everything) -> Copied:
    """Take in what is new; messages and replies get ids of the database."""
    return await store.db.together(lambda connection: _adopt(connection, everything))


async def _adopt(connection: Any, everything: Everything) -> Copied:
    mark = Mark(**await connection.fetchrow(SQL["before"], everything.source))
    take = Taking(connection)
    tenants = await take("tenants", (asdict(tenant) for tenant in everything.tenants))
    tokens = await take("tokens", map(_token, everything.tokens))
    ended = await take.endings(everything)
    ids = await take.messages(everything, mark)
    replies = await take("replies", (_reply(reply, ids) for reply in everything.replies if mark.new_reply(reply, ids)))
    await take("cursors", ({"channel": c, "account": a, "position": p} for c, a, p in everything.cursors))
    sessions, lines, left = await take.sessions(everything)
    await take("workers", (asdict(worker) for worker in everything.workers))
    beats = await take(
        "beats", ({**asdict(one), "old": old} for old, one in everything.beats if mark.later(old, one.at))
    )
    new_readings = [(old, one) for old, one in everything.readings if mark.later(old, one.at)]
    readings = await take("readings", ({**asdict(one.reading), "old": old, "at": one.at} for old, one in new_readings))
    pairings = await take("pairings", (_pairing(one) for one in everything.pairings if mark.since(one.changed_at)))
    jobs, runs = await take_cron(take, everything, mark)
    await connection.execute(SQL["done"], everything.source, everything.id, everything.change, everything.newest)
    await connection.execute(SQL["tell"])
    return Copied(
        tenants=len(tenants),
        tokens=len(tokens),
        sessions=sessions,
        lines=lines,
        messages=len(ids),
        replies=len(replies),
        beats=len(beats),
        readings=len(readings),
        jobs=jobs,
        runs=runs,
        pairings=len(pairings),
        ended=ended,
        left=left,
    )


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a directory was copied before."""

    id: int
    change: int
    copied: bool
    upto: datetime

    def new(self, number: int, at: datetime) -> bool:
        return number > self.id or not self.copied or at > self.upto

    def since(self, at: datetime) -> bool:
        return not self.copied or at > self.upto

    def new_reply(self, reply: Reply, ids: Mapping[int, int]) -> bool:
        """It has no time of its own, but it answers somebody."""
        return reply.id > self.id or any(number in ids for number in reply.answers)

    def later(self, change: int, at: datetime) -> bool:
        return change > self.change or at > self.upto


class Taking:
    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def __call__(self, statement: str, rows: Iterable[Row]) -> list[Any]:
        """What the statement answers for all of them, a few at a time."""
        answers: list[Any] = []
        for some in _some(rows):
            answers += await self.connection.fetch(SQL[statement], to_json(some))
        return answers

    async def endings(self, everything: Everything) -> int:
        """What has come to an end there since it was copied comes to its end here."""
        await self("disable", (asdict(tenant) for tenant in everything.tenants))
        await self("revoke", map(_token, everything.tokens))
        return len(await self("end", (_ended(key, seen) for key, seen in everything.ended)))

    async def messages(self, everything: Everything, mark: Mark) -> dict[int, int]:
        """New ids by the old ones."""
        old = {message.incoming.own_key: message.id for message in everything.messages}
        old |= {key: seen.id for key, seen in everything.ended}
        rows = [_message(one) for one in everything.messages if mark.new(one.id, one.accepted_at)]
        rows += [_ended(key, seen) for key, seen in everything.ended if mark.new(seen.id, seen.at)]
        taken = await self("messages", sorted(rows, key=lambda row: int(str(row["old"]))))
        return {old[_own_key(row)]: row["id"] for row in taken}

    async def sessions(self, everything: Everything) -> tuple[int, int, int]:
        """How many sessions and lines were new, and how many sessions were left alone."""
        known = {
            row["session"]: row
            for row in await self("newest_lines", (_name(session.key) for session, _ in everything.sessions))
        }
        going_on = [pair for pair in everything.sessions if _fits(pair[1], known.get(str(pair[0].key)))]
        new = [session for session, _ in going_on if str(session.key) not in known]
        await self("sessions", (_session(session) for session, _ in going_on))
        lines = await self("lines", (_line(session.key, line) for session, lines in going_on for line in lines))
        return len(new), len(lines), len(everything.sessions) - len(going_on)


def _some(rows: Iterable[Row]) -> Iterator[list[Row]]:
    rest = iter(rows)
    while some := list(islice(rest, AT_ONCE)):
        yield some


def _fits(lines: tuple[Line, ...], there: Any) -> bool:
    """Whether the transcript that is there is the beginning of this one."""
    if there is None or there["lines"] == 0:
        return True
    same = [line for line in lines if line.number == there["lines"]]
    return bool(same) and (same[0].at, same[0].said.text) == (there["said_at"], there["body"])


def _own_key(row: Any) -> OwnKey:
    return OwnKey(row["tenant_id"], row["channel"], row["account"], row["external_id"])


def _name(key: SessionKey) -> Row:
    return {"tenant_id": key.tenant, "session": str(key)}


def _session(session: Session) -> Row:
    policy = asdict(session.standing.policy)
    return {
        **_name(session.key),
        **policy,
        "drops": policy["drop"],
        "context": session.standing.context,
        "lines": session.lines,
        "trimmed": session.trimmed,
        "updated_at": session.updated_at,
    }


def _line(key: SessionKey, line: Line) -> Row:
    said = line.said
    return {
        **_name(key),
        "number": line.number,
        "said_at": line.at,
        "role": said.role,
        "body": said.text,
        "data": said.data,
    }


def _token(token: Any) -> Row:
    row = asdict(token)
    new = row.pop("new")
    return {**row, **new, "tenant_id": new["tenant"]}


def _pairing(pairing: Pairing) -> Row:
    return {
        **pairing.who._asdict(),
        "tenant_id": pairing.tenant,
        "name": pairing.name,
        "digest": pairing.digest,
        "state": pairing.state,
        "asked_at": pairing.asked_at,
        "decided_by": pairing.by,
        "decided_at": pairing.decided_at,
    }


def _message(message: Any) -> Row:
    """What was running waits again: the process that ran it is gone, or the directory would be locked."""
    incoming = message.incoming
    return {
        "old": message.id,
        **_name(incoming.session),
        **incoming.key._asdict(),
        "sender": incoming.sender,
        "body": incoming.text,
        "is_group": incoming.group,
        "is_admin": incoming.admin,
        "is_control": incoming.control,
        "accepted_at": message.accepted_at,
        "state": "accepted",
        "attempts": message.attempts,
    }


def _ended(key: OwnKey, seen: Any) -> Row:
    return {
        "old": seen.id,
        "tenant_id": key.tenant,
        "session": "",
        **key._asdict(),
        "sender": "",
        "body": "",
        "is_group": False,
        "is_admin": False,
        "is_control": False,
        "accepted_at": seen.at,
        "state": seen.state,
        "attempts": 0,
        "ended_at": seen.at,
    }


def _reply(reply: Any, ids: dict[int, int]) -> Row:
    session = reply.note.session
    return {
        "old": reply.id,
        **_name(session),
        "address": address_text(session.address),
        "body": reply.note.text,
        "urgent": reply.note.urgent,
        "run": reply.note.run,
        "answers": [ids[number] for number in reply.answers if number in ids],
        "parts": reply.parts,
        "live": reply.live,
    }
