"""The fakes at the edges of a gateway: an agent that follows a script, a channel and a store that may stumble."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import trio

from gateway.protocols import AgentReply, Pace
from store.protocols import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from gateway.protocols import AgentContext, ChannelError, Delivery, Turn
    from store.protocols import MessageStore
    from store.records import (
        Address,
        Cursor,
        Incoming,
        Message,
        MessageState,
        Note,
        OwnKey,
        Receipt,
        Reply,
        Said,
        SessionKey,
        Standing,
    )

Answer = TypeVar("Answer")

LONG_S = 60


class Seen(NamedTuple):
    """One thing that a channel did."""

    at: float
    kind: str  # "reply", "live", "clear" or "hint"
    chat: str
    text: str = ""


class FakeChannel:
    """Remembers all that people would have seen. ``refuse`` holds the errors that the next sends to a chat meet."""

    pace = Pace()

    def __init__(self, name: str = "fake") -> None:
        self.name = name
        self.seen: list[Seen] = []
        self.takes_s = 0.0
        self.refuse: dict[str, list[ChannelError]] = {}
        self.attempts: Counter[str] = Counter()
        self._live: dict[str, str] = {}
        self._changed = trio.lowlevel.ParkingLot()

    async def until(self, true: Callable[[], object]) -> None:
        """Wait for a condition about what people see; it is looked at whenever that changes."""
        await trio.lowlevel.checkpoint()
        while not true():
            await self._changed.park()

    async def send(self, delivery: Delivery) -> str:
        session = delivery.session
        self.attempts[session.chat] += 1
        await trio.sleep(self.takes_s)
        if errors := self.refuse.get(session.chat):
            raise errors.pop(0)
        self._note("reply", session, delivery.text)
        return str(len(self.seen))

    def show(self, session: SessionKey, turn: str, text: str) -> None:
        self._live[session.chat] = self._live.get(session.chat, "") + text
        self._note("live", session, text)

    def hint(self, session: SessionKey, text: str) -> None:
        self._note("hint", session, text)

    def clear(self, session: SessionKey, turn: str) -> None:
        self._live.pop(session.chat, None)
        self._note("clear", session)

    def replies(self, chat: str = "dm") -> list[str]:
        return [seen.text for seen in self.seen if seen.kind == "reply" and seen.chat == chat]

    def live(self, chat: str = "dm") -> str:
        """The work in progress that is on the screen now."""
        return self._live.get(chat, "")

    def shown(self, chat: str = "dm") -> list[str]:
        """All pieces of work in progress that were ever to be seen."""
        return [seen.text for seen in self.seen if seen.kind == "live" and seen.chat == chat]

    def _note(self, kind: str, session: SessionKey, text: str = "") -> None:
        self.seen.append(Seen(trio.current_time(), kind, session.chat, text))
        self._changed.unpark_all()


async def ask_helper(context: AgentContext, task: str) -> str:
    """What a helper says; what it cannot do is raised."""
    result = await context.call("spawn_subagent", {"task": task})
    if not result.ok:
        raise RuntimeError(result.text)
    return result.text


class Scripted:
    """An agent whose script is the first word of the first text; without a script it answers at once.

    ``long`` works for a minute and shows a tick each second. ``fail`` raises. ``slow`` takes a while to let go when it
    is cancelled, ``deaf`` does not hear at all. ``deep`` has a helper ask a helper ask a helper who works for a minute.
    ``listen`` is long and takes what is said meanwhile. ``stubborn`` answers although it was cancelled.
    """

    can_steer = True

    def __init__(self) -> None:
        self.started: list[tuple[str, ...]] = []
        self.finished: list[tuple[str, ...]] = []
        self.helpers = 0  # how many are at work
        self.alive: Counter[str] = Counter()  # runs at work per chat
        self.most: Counter[str] = Counter()

    async def run(self, turn: Turn, context: AgentContext) -> AgentReply:
        if turn.depth:
            return AgentReply(await self._help(turn.texts[0], context))
        chat = turn.session.chat
        self.started.append(turn.texts)
        self.alive[chat] += 1
        self.most[chat] = max(self.most[chat], self.alive[chat])
        try:
            answer = await self._script(turn, context)
        finally:
            self.alive[chat] -= 1
        self.finished.append(turn.texts)
        return AgentReply(answer)

    async def _help(self, task: str, context: AgentContext) -> str:
        self.helpers += 1
        try:
            if task == "deep 3":
                await self._work(context)
                return "the bottom"
            return await ask_helper(context, f"deep {int(task.split()[1]) + 1}")
        finally:
            self.helpers -= 1

    async def _script(self, turn: Turn, context: AgentContext) -> str:
        word = turn.texts[0].partition(" ")[0]
        if word == "fail":
            raise RuntimeError("it went\nwrong")
        if word == "deep":
            return await ask_helper(context, "deep 1")
        if word == "deaf":
            with trio.CancelScope(shield=True):
                await self._work(context)
        if word == "stubborn":
            with trio.CancelScope(shield=True):
                await trio.sleep(5)
        if word == "slow":
            await self._let_go_slowly(context)
        if word == "long":
            await self._work(context)
        heard: list[str] = []
        if word == "listen":
            for _ in range(LONG_S):
                await trio.sleep(1)
                heard += await context.steering()
        return f"re: {' | '.join([*turn.texts, *heard])}"

    @staticmethod
    async def _work(context: AgentContext) -> None:
        for _ in range(LONG_S):
            context.show("tick ")
            await trio.sleep(1)

    async def _let_go_slowly(self, context: AgentContext) -> None:
        try:
            await self._work(context)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.2)
                context.show("tock ")


@dataclass
class TroubledStore:
    """A store that fails when its ``trouble`` says so: before a verb did anything, or after all was done.

    ``trouble`` is asked with the name of each verb and answers "before", "after" or "" for none. A verb in ``held``
    waits for its event before it does anything.
    """

    inner: MessageStore
    trouble: Callable[[str], str] = lambda verb: ""
    held: dict[str, trio.Event] = field(default_factory=dict)
    failed: Counter[str] = field(default_factory=Counter)

    async def accept(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> tuple[Receipt, ...] | None:
        return await self._do("accept", lambda: self.inner.accept(batch, cursor))

    async def cursor(self, channel: str, account: str) -> int | None:
        return await self._do("cursor", lambda: self.inner.cursor(channel, account))

    async def begin(self, turn: str, ids: Sequence[int]) -> tuple[Message, ...]:
        return await self._do("begin", lambda: self.inner.begin(turn, ids))

    async def settle(
        self,
        turn: str,
        ids: Sequence[int],
        state: MessageState,
        notes: Sequence[Note],
        said: Sequence[Said] = (),
        context: float | None = None,
    ) -> bool:
        return await self._do("settle", lambda: self.inner.settle(turn, ids, state, notes, said, context))

    async def stop(
        self, session: SessionKey, upto: int, *, sender: str | None = None, only: Sequence[int] | None = None
    ) -> tuple[Message, ...]:
        return await self._do("stop", lambda: self.inner.stop(session, upto, sender=sender, only=only))

    async def put_back(self, turn: str, ids: Sequence[int]) -> None:
        return await self._do("put_back", lambda: self.inner.put_back(turn, ids))

    async def resume(self) -> tuple[Message, ...]:
        return await self._do("resume", self.inner.resume)

    async def waiting(self) -> tuple[Message, ...]:
        return await self._do("waiting", self.inner.waiting)

    async def standings(self, sessions: Collection[SessionKey]) -> Mapping[SessionKey, Standing]:
        return await self._do("standings", lambda: self.inner.standings(sessions))

    async def states(self, keys: Collection[OwnKey]) -> Mapping[OwnKey, MessageState]:
        return await self._do("states", lambda: self.inner.states(keys))

    async def outbox(self, limit: int, skip: Collection[Address] = ()) -> tuple[Reply, ...]:
        return await self._do("outbox", lambda: self.inner.outbox(limit, skip))

    async def progress(self, reply: int, parts: int, live: str) -> bool:
        return await self._do("progress", lambda: self.inner.progress(reply, parts, live))

    async def sent(self, reply: int, *, failed: str = "") -> bool:
        return await self._do("sent", lambda: self.inner.sent(reply, failed=failed))

    async def _do(self, verb: str, call: Callable[[], Awaitable[Answer]]) -> Answer:
        if verb in self.held:
            await self.held[verb].wait()
        when = self.trouble(verb)
        if when == "before":
            self._fail(verb)
        answer = await call()
        if when == "after":
            self._fail(verb)
        return answer

    def _fail(self, verb: str) -> None:
        self.failed[verb] += 1
        raise StoreError(f"the disk is full ({verb})")
