"""The store as the network makes it: late, failing, and failing after the deed. Behind it is the real memory store.

    call ──▶ delay? ──▶ error? ──▶ effect (atomic) ──▶ delay? ──▶ error? ──▶ answer
                        nothing      told to the           it happened, but
                        happened     history               the caller cannot know

A dead life reaches the store no more; what was already being carried out when it died may still take effect, which is
what a database does when its client is killed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from store.protocols import StoreError
from store.records import MessageState
from tests.simulation.history import What
from tests.simulation.world import Crashed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from store.records import (
        Address,
        Cursor,
        Incoming,
        Message,
        Note,
        OwnKey,
        Receipt,
        Reply,
        Said,
        SessionKey,
        Standing,
    )
    from tests.simulation.world import Life, World


class FaultyStore:
    """One life's connection to the world's store."""

    def __init__(self, world: World, life: Life) -> None:
        self._world = world
        self._life = life
        self._memory = world.memory
        self._random = world.random(f"store {life.number}")
        self._rows = world.rows
        self._tasks: dict[trio.lowlevel.Task, int] = {}

    async def accept(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> tuple[Receipt, ...] | None:
        await self._before("accept")
        receipts = await self._memory.accept(batch, cursor)
        assert receipts is not None
        for receipt, incoming in zip(receipts, batch, strict=True):
            if receipt.fresh:
                self._rows[receipt.id] = ""
                rights = f"{' admin' if incoming.admin else ''}{' group' if incoming.group else ''}"
                self._deed(
                    What.ACCEPTED,
                    session=str(incoming.session),
                    ids=(receipt.id,),
                    text=incoming.text,
                    detail=f"{incoming.sender}{rights}",
                )
        await self._after("accept")
        taken = tuple(r.id for r in receipts if r.state is MessageState.ACCEPTED)
        self._tell(What.ANSWER, ids=taken, text="accept")
        return receipts

    async def begin(self, turn: str, ids: Sequence[int]) -> tuple[Message, ...]:
        verb = f"begin {name(turn)}"
        await self._before(verb, ids)
        messages = await self._memory.begin(turn, ids)
        begun = tuple(message.id for message in messages)
        if begun:
            self._rows.update(dict.fromkeys(begun, turn))
            self._deed(What.BEGUN, ids=begun, run=number(turn), text=name(turn))
        await self._after(verb)
        self._tell(What.ANSWER, text=verb)
        return messages

    async def settle(
        self,
        turn: str,
        ids: Sequence[int],
        state: MessageState,
        notes: Sequence[Note],
        said: Sequence[Said] = (),
        context: float | None = None,
    ) -> bool:
        verb = f"settle {name(turn)}"
        await self._before(verb, ids)
        settled = await self._memory.settle(turn, ids, state, notes, said, context)
        if settled:
            mine = self._mine(turn, ids)
            self._end(mine)
            self._deed(What.SETTLED, ids=mine, text=state.value, detail="said" if notes else "silent")
            for note in notes:
                urgent = "urgent" if note.urgent else ""
                self._deed(What.REPLY, session=str(note.session), ids=mine, text=note.text, detail=urgent)
        await self._after(verb)
        self._tell(What.ANSWER, text=verb)
        return settled

    async def stop(self, session: SessionKey, upto: int, **narrowed: Any) -> tuple[Message, ...]:
        verb = f"stop {session.chat} #{self._number_of_task()}"
        await self._before(verb, narrowed.get("only") or ())
        stopped = await self._memory.stop(session, upto, **narrowed)
        newly = tuple(row.id for row in stopped if row.id in self._rows)
        self._end(newly)
        if newly:
            self._deed(What.STOPPED, session=str(session), ids=newly)
        await self._after(verb)
        self._tell(What.ANSWER, text=verb)
        return stopped

    async def put_back(self, turn: str, ids: Sequence[int]) -> None:
        verb = f"put_back {name(turn)}"
        await self._before(verb, ids)
        await self._memory.put_back(turn, ids)
        back = self._mine(turn, ids)
        self._rows.update(dict.fromkeys(back, ""))
        self._deed(What.PUT_BACK, ids=back)
        await self._after(verb)
        self._tell(What.ANSWER, text=verb)

    async def resume(self) -> tuple[Message, ...]:
        await self._before("resume")
        messages = await self._memory.resume()
        self._rows.update(dict.fromkeys(self._rows, ""))
        await self._after("resume")
        self._tell(What.RESUMED, ids=tuple(message.id for message in messages))
        return messages

    async def cursor(self, channel: str, account: str) -> int | None:
        return await self._memory.cursor(channel, account)

    async def waiting(self) -> tuple[Message, ...]:
        return await self._memory.waiting()

    async def standings(self, sessions: Collection[SessionKey]) -> Mapping[SessionKey, Standing]:
        return await self._memory.standings(sessions)

    async def states(self, keys: Collection[OwnKey]) -> Mapping[OwnKey, MessageState]:
        return await self._memory.states(keys)

    async def progress(self, reply: int, parts: int, live: str) -> bool:
        return await self._memory.progress(reply, parts, live)

    async def outbox(self, limit: int, skip: Collection[Address] = ()) -> tuple[Reply, ...]:
        await self._before("outbox")
        replies = await self._memory.outbox(limit, skip)
        await self._after("outbox")
        self._tell(What.ANSWER, text="outbox", detail=",".join(str(reply.id) for reply in replies))
        return replies

    async def sent(self, reply: int, *, failed: str = "") -> bool:
        row = self._memory.whole.outbox.get(reply)
        verb = "sent" if row is None else f"sent {row.note.session.chat} {reply}"
        await self._before(verb)
        sent = await self._memory.sent(reply, failed=failed)
        await self._after(verb)
        self._tell(What.ANSWER, text=verb, detail=str(reply))
        return sent

    def _number_of_task(self) -> int:
        """Tells apart who asks for the same at the same time; one who asks again has the same number."""
        return self._tasks.setdefault(trio.lowlevel.current_task(), len(self._tasks) + 1)

    def _mine(self, turn: str, ids: Sequence[int]) -> tuple[int, ...]:
        return tuple(one for one in ids if self._rows.get(one) == turn)

    def _end(self, ids: Sequence[int]) -> None:
        for one in ids:
            del self._rows[one]

    async def _before(self, verb: str, ids: Sequence[int] = ()) -> None:
        self._tell(What.CALL, ids=tuple(ids), text=verb)
        faults, now = self._world.plan.faults, trio.current_time()
        await self._dawdle()
        if any(start <= now < end for start, end in faults.outages):
            self._fail(verb, "the store is away")
        if self._random.random() < faults.fails_before:
            self._fail(verb, "the store stumbled")
        self._refuse_the_dead()

    async def _after(self, verb: str) -> None:
        await self._dawdle()
        if self._random.random() < self._world.plan.faults.fails_after:
            self._fail(verb, "the answer got lost")
        self._refuse_the_dead()

    async def _dawdle(self) -> None:
        faults = self._world.plan.faults
        if self._random.random() < faults.delayed:
            await trio.sleep(self._random.uniform(0, faults.longest_s))

    def _fail(self, verb: str, why: str) -> None:
        self._refuse_the_dead()
        self._tell(What.ERROR, text=verb, detail=why)
        raise StoreError(why)

    def _refuse_the_dead(self) -> None:
        if self._life.dead:
            raise Crashed

    def _tell(self, what: What, *, ids: tuple[int, ...] = (), text: str = "", detail: str = "") -> None:
        self._world.tell(what, self._life, ids=ids, text=text, detail=detail)

    def _deed(
        self,
        what: What,
        *,
        session: str = "",
        ids: tuple[int, ...],
        run: int = 0,
        text: str = "",
        detail: str = "",
    ) -> None:
        """Tell of something that is now so, whoever has died meanwhile."""
        self._world.record(what, self._life, session=session, ids=ids, run=run, text=text, detail=detail)


def number(turn: str) -> int:
    """The run that a turn's token names."""
    return int(turn.rpartition("-")[2] or 0)


def name(turn: str) -> str:
    """A turn's token without what differs from process to process."""
    owner, _, run = turn.rpartition("-")
    return f"command-{run}" if owner == "command" else f"turn-{run}"
