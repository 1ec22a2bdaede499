"""From the outbox to the channels: in order per address, urgent first, again until the channel has it.

    poke ─▶ look at the outbox ─▶ ways (`gateway.ways`) ─▶ a task per reply ─┬─ taken, or refused for good: `sent`
              ▲                                                             └─ not now: the address rests, then again
              └── somebody may have put in more, or more was there than a look shows

A reply leaves the outbox after the channel took it, so a crash in between sends it again: at least once. Addresses are
served at the same time; each has one reply on its way. What is for a channel that is not connected stays in the outbox
for a start that connects it, and nobody waits for that.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import trio

from gateway.persist import persist
from gateway.protocols import Attentive
from gateway.sending import Attempt, Trouble, attempt, in_words
from gateway.ways import Line, Pauses, Way

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterable, Sequence

    from gateway.protocols import Channel
    from gateway.quiet import Quiet
    from store.protocols import MessageStore
    from store.records import Address, Reply, SessionKey

logger = logging.getLogger("goclaw.outbound")

BATCH = 200
LAST_WRITE_S = 2.0


def no_turn(answers: Sequence[int]) -> str:
    return ""


def no_group(session: SessionKey) -> bool:
    return False


def nobody(reply: Reply, word: str, took_s: float) -> None:
    """Nobody wants to know."""


def nobody_waits(reply: Reply, error: Exception, rest_s: float) -> None:
    """Nor of this."""


@dataclass(frozen=True, slots=True)
class WayStatistics:
    """What a channel has before it: of a long outbox as much as was looked at."""

    name: str
    waiting: int
    """Replies that may go."""
    sending: int
    """Replies on their way."""
    resting: int
    """Conversations whose replies are to be tried again later."""


@dataclass(frozen=True, slots=True)
class OutboundStatistics:
    channels: tuple[WayStatistics, ...]
    unreachable: int
    """Conversations of channels that are not connected, and to which something is to be said."""


class Outbound:
    """``delivered`` hears of each reply with its receipt, ``failed`` with the reason, both with the seconds it took.

    ``resting`` hears of one that could not go, with the error and the seconds after which it is tried again.
    """

    def __init__(
        self,
        store: MessageStore,
        channels: Iterable[Channel],
        quiet: Quiet,
        *,
        turn_of: Callable[[Sequence[int]], str] = no_turn,
        in_group: Callable[[SessionKey], bool] = no_group,
        delivered: Callable[[Reply, str, float], None] = nobody,
        failed: Callable[[Reply, str, float], None] = nobody,
        resting: Callable[[Reply, Exception, float], None] = nobody_waits,
    ) -> None:
        self._store = store
        self._channels = {channel.name: channel for channel in channels}
        self._attentive = {name: one for name, one in self._channels.items() if isinstance(one, Attentive)}
        self._quiet = quiet
        self._turn_of = turn_of
        self._in_group = in_group
        self._delivered = delivered
        self._failed = failed
        self._resting = resting
        self._wake = trio.Event()
        self._counted = False
        self._known = 0  # goes up whenever the outbox may hold something new
        self._stale = False
        self._forget()

    def _forget(self) -> None:
        """All of it is in the store."""
        self._ways = {name: Way(channel) for name, channel in self._channels.items()}
        self._pauses = Pauses()
        self._absent: set[Address] = set()
        self._missing: set[str] = set()
        self._trouble: dict[Address, Trouble] = {}
        self._more = False  # beyond what the last look showed

    def poke(self) -> None:
        """There may be something in the outbox."""
        self._known += 1
        self._stale = True
        self._pauses.all_may_owe()
        self._count()
        self._wake.set()

    def channel(self, name: str) -> Channel | None:
        return self._channels.get(name)

    def clear(self, session: SessionKey, message: int) -> None:
        """Nothing of the work on this message is to be seen any more."""
        channel, turn = self.channel(session.channel), self._turn_of([message])
        if channel is not None and turn:
            channel.clear(session, turn)

    def attentive(self, name: str) -> Attentive | None:
        """The channel, if it shows what becomes of messages."""
        return self._attentive.get(name)

    def statistics(self) -> OutboundStatistics:
        """What is known to wait, channel by channel. Reads what is in memory only."""
        resting = Counter(address.channel for address in self._pauses.owing)
        return OutboundStatistics(
            channels=tuple(
                WayStatistics(
                    name=name,
                    waiting=sum(len(line.replies) for line in way.lines.values()),
                    sending=len(way.busy),
                    resting=resting[name],
                )
                for name, way in self._ways.items()
            ),
            unreachable=len(self._absent),
        )

    async def run(self) -> None:
        """For ever. What an earlier run left behind is taken up from the store."""
        self._forget()
        self.poke()
        async with trio.open_nursery() as nursery:
            while True:
                due = [self._pauses.due_at, *(way.due_at for way in self._ways.values())]
                with trio.CancelScope(deadline=min(due)):
                    await self._wake.wait()
                self._wake = trio.Event()
                for address, line in self._pauses.over(trio.current_time()):
                    self._line_up(address, line)
                await self._serve(nursery)
                self._count()

    async def _serve(self, nursery: trio.Nursery) -> None:
        """Let everything go that may."""
        if self._stale:
            await self._look()
        self._start(nursery)
        while self._more and not self._stale and any(way.idle for way in self._ways.values()):
            await self._look_deeper()
            self._start(nursery)
        if self._stale:
            self._wake.set()

    def _start(self, nursery: trio.Nursery) -> None:
        now = trio.current_time()
        for way in self._ways.values():
            while way.due_at <= now:
                nursery.start_soon(self._work, way, *way.take(now))

    # ── what there is to be sent ─────────────────────────────────────────────────────────────────────────────────────

    async def _look(self) -> None:
        """See what comes first now. What was known before is true only as far as this look does not reach."""
        self._stale = False
        before = [(way, way.let_go()) for way in self._ways.values()]
        if await self._read(self._in_hand()):
            for way, lines in before:
                for address, line in lines.items():
                    way.lines.setdefault(address, line)
        else:
            self._trouble = {one: trouble for one, trouble in self._trouble.items() if self._knows(one)}

    async def _look_deeper(self) -> None:
        """See what is behind that which cannot go yet: it may be for a channel that has time."""
        await self._read(self._in_hand().union(*(way.lines for way in self._ways.values())))

    async def _read(self, skip: set[Address]) -> bool:
        """Line up what comes first, but for these addresses. Whether there may be more."""
        self._more = False
        known = self._known
        replies = await persist(partial(self._store.outbox, BATCH, skip))
        full = len(replies) >= BATCH
        self._more |= full
        fresh: dict[Address, Line] = {}
        for reply in replies:
            fresh.setdefault(reply.note.session.address, Line(known, full)).replies.append(reply)
        for address, line in fresh.items():
            if address.channel in self._ways:
                self._ways[address.channel].lines[address] = line
            else:
                self._leave(address)
        for address, line in reversed(fresh.items()):
            if line.replies[0].note.urgent and address.channel in self._ways:
                self._ways[address.channel].lines.move_to_end(address, last=False)
        return full

    def _in_hand(self) -> set[Address]:
        return self._absent.union(self._pauses, *(way.busy for way in self._ways.values()))

    def _knows(self, address: Address) -> bool:
        way = self._ways[address.channel]
        return address in way.lines or address in way.busy or address in self._pauses

    def _leave(self, address: Address) -> None:
        if address.channel not in self._missing:
            self._missing.add(address.channel)
            logger.error("the channel %r is not connected; what is to be said there waits for it", address.channel)
        self._absent.add(address)

    def _line_up(self, address: Address, line: Line) -> None:
        """The address may be served again, with what is known of it if that is still true."""
        if line.known != self._known:
            self._stale = True
        elif line.replies:
            self._ways[address.channel].put(address, line)
        elif line.cut:
            self._more = True

    # ── one reply ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _work(self, way: Way, address: Address, line: Line) -> None:
        pause_s = self._pace_s(way.channel, line.replies[0])
        rest_s = await self._send(line.replies)
        way.busy.discard(address)
        if rest_s or pause_s:
            owing = bool(line.replies) or line.cut or line.known != self._known
            self._pauses.add(address, line, trio.current_time() + max(rest_s, pause_s), owing=owing)
        else:
            self._line_up(address, line)
        self._wake.set()

    def _pace_s(self, channel: Channel, reply: Reply) -> float:
        pace = channel.pace
        return max(pace.address_s, pace.group_s) if self._in_group(reply.note.session) else pace.address_s

    async def _send(self, replies: deque[Reply]) -> float:
        """Try the first one; if it is done with, it goes. The answer is how long the address has to rest."""
        reply = replies[0]
        address = reply.note.session.address
        this = await attempt(self._store, self._channels[address.channel], self._turn_of(reply.answers), reply)
        if this.error is None:
            await self._write(this, "")
            self._delivered(this.reply, this.receipt, this.took_s)
        else:
            rest_s = self._trouble.setdefault(address, Trouble()).rest_after(this)
            why = in_words(this.error)
            if rest_s is not None:
                replies[0] = this.reply
                logger.warning("%s: %s; trying again in %g s", address.channel, why, rest_s)
                self._resting(this.reply, this.error, rest_s)
                return rest_s
            logger.error("%s: reply %d cannot be delivered: %s", address.channel, reply.id, why)
            await self._write(this, why)
            self._failed(this.reply, why, this.took_s)
        replies.popleft()
        self._trouble.pop(address, None)
        return 0.0

    async def _write(self, this: Attempt, failed: str) -> None:
        """It leaves the outbox, in the last moment of the process too: nobody need read it twice."""
        sent = partial(self._store.sent, this.reply.id, failed=failed)
        with trio.move_on_after(LAST_WRITE_S, shield=True) as soon:
            await persist(sent)
        if soon.cancelled_caught:
            await persist(sent)

    def _count(self) -> None:
        """Whoever waits until all is said waits for this, but not for channels that are not there."""
        busy = self._stale or bool(self._pauses.owing) or any(way.lines or way.busy for way in self._ways.values())
        if busy and not self._counted:
            self._quiet.begin()
        elif self._counted and not busy:
            self._quiet.end()
        self._counted = busy
