"""The way out: in order per address, everybody at once, again until the channel has it."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from gateway.outbound import BATCH, Outbound
from gateway.protocols import ChannelError, Delivery, Pace
from gateway.quiet import Quiet
from gateway.sending import LONGEST_REST_S, SEND_S, STRIKES
from gateway.ways import AT_ONCE
from store.memory import MemoryStore
from store.records import CHAT_LEASE, DeliveryKey, Incoming, MessageState, Note, SessionKey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from trio.testing import MockClock

    from store.memory_messages import MemoryMessages
    from store.records import Reply

NUMBERS = count()


class Wire:
    """A channel that delivers in no time, unless a chat is slow, or has errors to raise first."""

    def __init__(self, name: str = "wire", pace: Pace = Pace()) -> None:  # noqa: B008
        self.name = name
        self.pace = pace
        self.delivered: list[tuple[float, str, str]] = []
        self.attempts: list[tuple[float, Delivery]] = []
        self.takes_s: dict[str, float] = {}
        self.errors: dict[str, list[Exception]] = {}
        self.under_way = 0
        self.most = 0

    async def send(self, delivery: Delivery) -> str:
        chat = delivery.session.chat
        self.attempts.append((trio.current_time(), delivery))
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await trio.sleep(self.takes_s.get(chat, 0))
        finally:
            self.under_way -= 1
        if self.errors.get(chat):
            raise self.errors[chat].pop(0)
        self.delivered.append((trio.current_time(), chat, delivery.text))
        return f"receipt {delivery.text}"

    def show(self, session: SessionKey, turn: str, text: str) -> None:
        raise AssertionError

    def clear(self, session: SessionKey, turn: str) -> None:
        raise AssertionError

    def hint(self, session: SessionKey, text: str) -> None:
        raise AssertionError

    def texts(self, chat: str = "dm") -> list[str]:
        return [text for _, to, text in self.delivered if to == chat]

    def times(self, chat: str = "dm") -> list[float]:
        return [at for at, to, _ in self.delivered if to == chat]

    def tried(self, chat: str = "dm") -> list[float]:
        return [at for at, delivery in self.attempts if delivery.session.chat == chat]


def new_store() -> MemoryMessages:
    whole = MemoryStore(lambda: datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=trio.current_time()))
    return whole.messages(whole.grant(CHAT_LEASE, "test", timedelta(days=36_500)))


async def put(
    store: MemoryMessages, *texts: str, chat: str = "dm", thread: str = "", channel: str = "wire", urgent: bool = False
) -> int:
    """Put replies into the outbox; the answer is the message that they are said about."""
    session = SessionKey("default", "main", channel, "bot", chat, thread)
    key = DeliveryKey(channel, "bot", str(next(NUMBERS)))
    receipts = await store.accept([Incoming(key, session, "ann", "?")])
    assert receipts is not None
    notes = [Note(session, text, urgent=urgent) for text in texts]
    assert await store.settle("", [receipts[0].id], MessageState.DROPPED, notes)
    return receipts[0].id


class Office:
    """Outbound at work, and what its observers hear."""

    def __init__(self, store: MemoryMessages, *wires: Wire) -> None:
        self.quiet = Quiet()
        self.store = store
        self.delivered: list[tuple[str, str, float]] = []
        self.failed: list[tuple[str, str]] = []
        self.outbound = Outbound(
            store,
            wires,
            self.quiet,
            turn_of=lambda answers: f"turn of {','.join(map(str, answers))}",
            in_group=lambda session: session.chat.startswith("group"),
            delivered=self._note_delivered,
            failed=lambda reply, why, took_s: self.failed.append((reply.note.text, why)),
        )

    def _note_delivered(self, reply: Reply, receipt: str, took_s: float) -> None:
        self.delivered.append((reply.note.text, receipt, took_s))

    async def put(self, *texts: str, **where: str) -> None:
        await put(self.store, *texts, **where)  # type: ignore[arg-type]
        self.outbound.poke()

    async def say_urgently(self, text: str, chat: str = "dm") -> None:
        await put(self.store, text, chat=chat, urgent=True)
        self.outbound.poke()


@asynccontextmanager
async def office(*wires: Wire, store: MemoryMessages | None = None) -> AsyncIterator[Office]:
    here = Office(store or new_store(), *wires)
    here.outbound.poke()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.outbound.run)
        yield here
        nursery.cancel_scope.cancel()


def words(numbers: Sequence[int]) -> list[str]:
    return [str(number) for number in numbers]


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_address_hears_everything_once_and_in_order(autojump_clock: MockClock) -> None:
    """More than one look shows, from several messages, and the outbox is empty afterwards."""
    wire, store = Wire(), new_store()
    told = words(range(3 * BATCH))
    await put(store, *told)
    async with office(wire, store=store) as here:
        await here.put("more")
        await here.quiet.wait()
    assert wire.texts() == [*told, "more"]
    assert await store.outbox(1) == ()


async def test_what_was_there_before_the_start_is_sent(autojump_clock: MockClock) -> None:
    """Without being asked."""
    wire, store = Wire(), new_store()
    await put(store, "from before")
    async with office(wire, store=store):
        await wait_all_tasks_blocked()
        assert wire.texts() == ["from before"]


async def test_a_slow_chat_delays_nobody_else(autojump_clock: MockClock) -> None:
    """Nor does another thread of the same chat wait for it."""
    wire = Wire()
    wire.takes_s["slow"] = 50
    async with office(wire) as here:
        start = trio.current_time()
        await here.put(*words(range(BATCH)), chat="slow")
        await here.put("a", chat="quick")
        await here.put("b", chat="quick", thread="topic")
        await wait_all_tasks_blocked()
        assert sorted(wire.texts("quick")) == ["a", "b"]  # nobody promises an order between threads
        assert trio.current_time() == start
        assert wire.tried("slow") == [start]


async def test_a_crowd_behind_a_long_line_is_served_at_once(autojump_clock: MockClock) -> None:
    """A chat with more replies than a look shows hides nobody."""
    wire = Wire()
    wire.takes_s["slow"] = 1
    store = new_store()
    await put(store, *words(range(2 * BATCH)), chat="slow")
    for number in range(10):
        await put(store, "x", chat=f"{number}")
    async with office(wire, store=store):
        await wait_all_tasks_blocked()
        assert sorted(chat for _, chat, _ in wire.delivered) == words(range(10))


async def test_so_many_are_served_at_once_and_no_more(autojump_clock: MockClock) -> None:
    """All of them are served in the end; who is done makes room for the next."""
    wire, store = Wire(), new_store()
    for number in range(3 * AT_ONCE):
        await put(store, "x", chat=f"{number}")
        wire.takes_s[f"{number}"] = 1
    async with office(wire, store=store) as here:
        start = trio.current_time()
        await wait_all_tasks_blocked()
        assert wire.under_way == AT_ONCE
        await here.quiet.wait()
        assert trio.current_time() == start + 3
    assert (wire.most, len(wire.delivered)) == (AT_ONCE, 3 * AT_ONCE)


async def test_a_channel_that_hangs_holds_up_no_other_channel(autojump_clock: MockClock) -> None:
    """However much waits for it, and although all of it is older."""
    hanging, quick, store = Wire("hanging"), Wire("quick"), new_store()
    for number in range(BATCH + 2 * AT_ONCE):
        await put(store, "x", chat=f"{number}", channel="hanging")
        hanging.takes_s[f"{number}"] = 50
    await put(store, "y", channel="quick")
    async with office(hanging, quick, store=store) as here:
        start = trio.current_time()
        await wait_all_tasks_blocked()
        assert quick.texts() == ["y"]
        await here.put("z", channel="quick")
        await wait_all_tasks_blocked()
        assert quick.texts() == ["y", "z"]
        assert trio.current_time() == start


async def test_an_urgent_reply_goes_next(autojump_clock: MockClock) -> None:
    """It overtakes what waits for its address, but not what is on its way. (P7)"""
    wire = Wire()
    wire.takes_s["dm"] = 1
    async with office(wire) as here:
        await here.put("1", "2", "3")
        await trio.sleep(0.5)
        await here.say_urgently("stopped")
        await here.quiet.wait()
    assert wire.texts() == ["1", "stopped", "2", "3"]


async def test_an_urgent_reply_that_came_during_a_look_goes_next(autojump_clock: MockClock) -> None:
    """What the look did not see is seen before the address is served again."""

    class Slow(MemoryStoreView):
        async def outbox(self, limit: int, skip: object = ()) -> tuple[Reply, ...]:
            answer = await self.inner.outbox(limit, skip)  # type: ignore[arg-type]
            await trio.sleep(1)
            return answer

    wire, store = Wire(), new_store()
    wire.takes_s["dm"] = 5
    await put(store, "1", "2", "3")
    here = Office(Slow(store), wire)  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.outbound.run)
        await trio.sleep(0.5)
        await put(store, "stopped", urgent=True)
        here.outbound.poke()
        await here.quiet.wait()
        nursery.cancel_scope.cancel()
    assert wire.texts() == ["1", "stopped", "2", "3"]


async def test_urgent_replies_go_before_a_crowd(autojump_clock: MockClock) -> None:
    """While every place is taken and more wait than a look shows, the next place is theirs."""
    wire, store = Wire(), new_store()
    for number in range(2 * BATCH):
        await put(store, "x", chat=f"{number}")
        wire.takes_s[f"{number}"] = 1
    async with office(wire, store=store) as here:
        start = trio.current_time()
        await trio.sleep(0.5)
        await here.say_urgently("stopped")
        await here.quiet.wait()
        assert wire.times() == [start + 1]


class MemoryStoreView:
    """A store that does what another one does."""

    def __init__(self, inner: MemoryMessages) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


async def test_what_ends_while_the_store_is_asked_is_not_forgotten(autojump_clock: MockClock) -> None:
    """A line that was busy when the look began goes on after it."""

    class Slow(MemoryStoreView):
        async def outbox(self, limit: int, skip: object = ()) -> tuple[Reply, ...]:
            answer = await self.inner.outbox(limit, skip)  # type: ignore[arg-type]
            await trio.sleep(0.5)
            return answer

    wire, store = Wire(), new_store()
    wire.takes_s["dm"] = 1
    await put(store, *words(range(5)))
    here = Office(Slow(store), wire)  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.outbound.run)
        for number in range(20):
            await put(store, "x", chat=f"{number}")
            here.outbound.poke()
            await trio.sleep(0.37)
        await here.quiet.wait()
        nursery.cancel_scope.cancel()
    assert wire.texts() == words(range(5))
    assert len(wire.delivered) == 25


# ── pace ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_address_is_written_to_no_faster_than_its_channel_wants(autojump_clock: MockClock) -> None:
    """Groups more slowly still, each address for itself."""
    wire = Wire(pace=Pace(address_s=1, group_s=3))
    async with office(wire) as here:
        start = trio.current_time()
        await here.put("1", "2", "3")
        await here.put("1", "2", chat="group")
        await here.quiet.wait()
        assert trio.current_time() == start + 3
    assert [at - start for at in wire.times()] == [0, 1, 2]
    assert [at - start for at in wire.times("group")] == [0, 3]


async def test_the_pace_holds_also_for_what_comes_later(autojump_clock: MockClock) -> None:
    """And quiet means that it was said."""
    wire = Wire(pace=Pace(address_s=1))
    async with office(wire) as here:
        await here.quiet.wait()
        start = trio.current_time()
        await here.put("1")
        await here.quiet.wait()
        assert trio.current_time() == start
        await trio.sleep(0.4)
        await here.put("2")
        await here.quiet.wait()
        assert trio.current_time() == start + 1
    assert wire.texts() == ["1", "2"]


async def test_an_urgent_reply_goes_first_after_the_pace(autojump_clock: MockClock) -> None:
    """It is paced like any other, and next."""
    wire = Wire(pace=Pace(address_s=2))
    async with office(wire) as here:
        start = trio.current_time()
        await here.put("1", "2")
        await trio.sleep(1)
        await here.say_urgently("stopped")
        await here.quiet.wait()
    assert [at - start for at in wire.times()] == [0, 2, 4]
    assert wire.texts() == ["1", "stopped", "2"]


async def test_a_channel_s_own_pace_holds_over_all_its_addresses(autojump_clock: MockClock) -> None:
    """And holds up no other channel; urgent replies take the next place."""
    paced, quick, store = Wire("paced", Pace(overall_s=0.25)), Wire("quick"), new_store()
    for number in range(BATCH + 1):
        await put(store, "x", chat=f"{number}", channel="paced")
    await put(store, "y", channel="quick")
    async with office(paced, quick, store=store) as here:
        start = trio.current_time()
        await wait_all_tasks_blocked()
        assert quick.texts() == ["y"]
        assert trio.current_time() == start
        await trio.sleep(1.1)
        await put(store, "stopped", channel="paced", urgent=True)
        here.outbound.poke()
        await here.quiet.wait()
    assert [at - start for at, _, _ in paced.delivered] == [0.25 * number for number in range(BATCH + 2)]
    assert paced.times() == [start + 1.25]


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_address_that_cannot_be_reached_rests_longer_each_time(autojump_clock: MockClock) -> None:
    """Up to a minute; order is kept, nobody else rests, and a success ends it."""
    wire = Wire()
    wire.errors["dm"] = [ChannelError("away") for _ in range(12)]
    async with office(wire) as here:
        await here.put("1", "2")
        await here.put("x", chat="other")
        await here.quiet.wait()
        times = wire.tried()
        rests = [round(after - before, 6) for before, after in pairwise(times)]
        assert rests == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, LONGEST_REST_S, LONGEST_REST_S, 0]
        wire.errors["dm"] = [ChannelError("away")]
        before = trio.current_time()
        await here.put("3")
        await here.quiet.wait()
        assert trio.current_time() == pytest.approx(before + 0.1)
    assert wire.texts() == ["1", "2", "3"]
    assert wire.tried("other") == times[:1]


@pytest.mark.parametrize("wanted_s", [1, 30, 137])
async def test_who_asks_to_be_left_alone_is_left_alone_exactly_that_long(
    wanted_s: float, autojump_clock: MockClock
) -> None:
    """Per address, however much is poked meanwhile. (R14)"""
    wire = Wire()
    wire.errors["dm"] = [ChannelError("too many requests", retry_after_s=wanted_s)]
    async with office(wire) as here:
        start = trio.current_time()
        await here.put("1")
        await trio.sleep(wanted_s / 2)
        await here.put("x", chat="other")
        await here.say_urgently("stopped")
        await here.quiet.wait()
    assert wire.times() == [start + wanted_s] * 2
    assert wire.texts() == ["stopped", "1"]
    assert wire.times("other") == [start + wanted_s / 2]


async def test_what_can_never_be_delivered_is_given_up_at_once(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried once and said once; the reason is kept where a cron run could read it. (R14)"""
    wire = Wire()
    wire.errors["dm"] = [ChannelError("blocked\nby ann \ud800", retriable=False)]
    async with office(wire) as here:
        await here.put("1", "2")
        await here.quiet.wait()
        assert here.failed == [("1", "blocked by ann ?")]
        assert await here.store.outbox(1) == ()
    assert wire.texts() == ["2"]
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_a_mistake_in_a_channel_is_tried_again_and_then_given_up(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """One poison reply does not stop its chat for ever, and everybody else does not notice."""
    wire = Wire()
    wire.errors["dm"] = [ZeroDivisionError("oops") for _ in range(STRIKES)]
    async with office(wire) as here:
        await here.put("poison", "2")
        await here.put("x", chat="other")
        await here.quiet.wait()
        assert here.failed == [("poison", "oops")]
    assert (wire.texts(), wire.texts("other")) == (["2"], ["x"])
    assert len([record for record in caplog.records if record.exc_info]) == STRIKES


async def test_only_mistakes_in_a_row_count(autojump_clock: MockClock) -> None:
    """A refusal in between begins the count anew, and so does another reply."""
    wire = Wire()
    mistakes: list[Exception] = [ZeroDivisionError() for _ in range(STRIKES - 1)]
    wire.errors["dm"] = [*mistakes, ChannelError("away"), *mistakes]
    async with office(wire) as here:
        await here.put("1")
        await here.quiet.wait()
        wire.errors["dm"] = [*mistakes]
        await here.put("2")
        await here.quiet.wait()
        assert here.failed == []
    assert wire.texts() == ["1", "2"]


async def test_a_refusal_inside_a_group_is_a_refusal(autojump_clock: MockClock) -> None:
    """A channel that works with a nursery raises groups."""
    wire = Wire()
    wire.errors["dm"] = [ExceptionGroup("", [ChannelError("blocked", retriable=False)])]
    async with office(wire) as here:
        await here.put("1")
        await here.quiet.wait()
        assert here.failed == [("1", "blocked")]


async def test_a_send_that_hangs_is_cut_and_tried_again(autojump_clock: MockClock) -> None:
    """After a minute; the time limit is no error that gives it up."""
    wire = Wire()
    wire.takes_s["dm"] = 10 * SEND_S
    async with office(wire) as here:
        start = trio.current_time()
        await here.put("1")
        await trio.sleep(SEND_S)
        wire.takes_s["dm"] = 0
        await here.quiet.wait()
        assert trio.current_time() == pytest.approx(start + SEND_S + 0.1)
    assert wire.texts() == ["1"]


class InParts(Wire):
    """A channel that delivers word by word, a while for each, and fails where told."""

    fails_at = 2

    async def send(self, delivery: Delivery) -> str:
        self.attempts.append((trio.current_time(), delivery))
        for number, part in enumerate(delivery.text.split()[delivery.parts :], delivery.parts):
            await trio.sleep(40)
            if number == self.fails_at:
                self.fails_at = -1
                raise ChannelError("the wire broke")
            self.delivered.append((trio.current_time(), delivery.session.chat, part))
            await delivery.progress(number + 1, f"live {number}")
        return "all"


async def test_a_reply_in_parts_goes_on_where_it_broke(autojump_clock: MockClock) -> None:
    """In this process too; and a send that gets on is not cut."""
    wire = InParts()
    async with office(wire) as here:
        await here.put("a b c d")
        await here.quiet.wait()
    assert wire.texts() == ["a", "b", "c", "d"]
    assert [(one.parts, one.live) for _, one in wire.attempts] == [(0, ""), (2, "live 1")]


async def test_a_restart_goes_on_where_the_last_process_was(autojump_clock: MockClock) -> None:
    """What was delivered of it and its live message come from the row."""
    wire, store = InParts(), new_store()
    await put(store, "a b c d")
    with trio.move_on_after(100):
        async with office(wire, store=store):
            await trio.sleep_forever()
    async with office(wire, store=store) as here:
        await here.quiet.wait()
    assert [(one.parts, one.live) for _, one in wire.attempts] == [(0, ""), (2, "live 1"), (2, "live 1")]
    assert wire.texts() == ["a", "b", "c", "d"]


async def test_what_the_channel_took_is_not_sent_again_because_of_a_shutdown(autojump_clock: MockClock) -> None:
    """Noting that it was sent outlasts the end of the process for a moment, and no longer."""

    class Slow(MemoryStoreView):
        async def sent(self, reply: int, *, failed: str = "") -> bool:
            await trio.sleep(1)
            return await self.inner.sent(reply, failed=failed)

    wire, store = Wire(), new_store()
    await put(store, "1")
    here = Office(Slow(store), wire)  # type: ignore[arg-type]
    with trio.move_on_after(0.5):
        await here.outbound.run()
    assert await store.outbox(1) == ()
    assert wire.texts() == ["1"]


# ── what others learn ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_delivery_names_its_turn_and_observers_get_the_receipt(autojump_clock: MockClock) -> None:
    """What it answers, what the channel calls it, and how long that took."""
    wire, store = Wire(), new_store()
    wire.takes_s["dm"] = 2
    message = await put(store, "hello")
    async with office(wire, store=store) as here:
        await here.quiet.wait()
        assert here.delivered == [("hello", "receipt hello", 2)]
    assert [delivery.turn for _, delivery in wire.attempts] == [f"turn of {message}"]


async def test_what_is_for_a_channel_that_is_not_there_stays(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once, nobody waits for it, and a start that connects the channel sends it."""
    wire, store = Wire(), new_store()
    for number in range(2 * BATCH):
        await put(store, "x", chat=f"{number}", channel="gone")
    await put(store, "y")
    async with office(wire, store=store) as here:
        await here.quiet.wait()
        assert wire.texts() == ["y"]
        await here.put("z")
        await here.put("x", channel="gone")
        await here.quiet.wait()
        assert wire.texts() == ["y", "z"]
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    gone = Wire("gone")
    async with office(gone, store=store) as here:
        await here.quiet.wait()
    assert len(gone.delivered) == 2 * BATCH + 1


async def test_without_any_channel_it_is_quiet(autojump_clock: MockClock) -> None:
    """Nothing can be sent, so nothing is waited for."""
    store = new_store()
    for number in range(2 * BATCH):
        await put(store, "x", chat=f"{number}")
    async with office(store=store) as here:
        await here.quiet.wait()


async def test_it_is_not_quiet_while_something_rests(autojump_clock: MockClock) -> None:
    """Whoever waits until all is said waits for a chat that will be reached again."""
    wire = Wire()
    wire.errors["dm"] = [ChannelError("away", retry_after_s=7)]
    async with office(wire) as here:
        await here.put("1")
        await wait_all_tasks_blocked()
        assert not here.quiet.now
        await here.quiet.wait()
    assert wire.texts() == ["1"]


async def test_a_reply_that_vanishes_is_not_waited_for(autojump_clock: MockClock) -> None:
    """Its tenant was removed while its chat rested."""
    wire = Wire()
    wire.errors["dm"] = [ChannelError("away", retry_after_s=7)]
    async with office(wire) as here:
        await here.put("1")
        await wait_all_tasks_blocked()
        (reply,) = await here.store.outbox(1)
        await here.store.sent(reply.id, failed="gone")
        here.outbound.poke()
        await here.quiet.wait()
    assert wire.texts() == []


async def test_nothing_is_kept_of_addresses_that_are_done(autojump_clock: MockClock) -> None:
    """Neither task nor memory, once the pace has let them go."""
    wire, store = Wire(pace=Pace(address_s=1)), new_store()
    for number in range(3 * BATCH):
        await put(store, "x", chat=f"{number}")
        wire.errors[f"{number}"] = [ChannelError("away")]
    async with office(wire, store=store) as here:
        await here.quiet.wait()
        await trio.sleep(2)
        outbound = here.outbound
        assert not outbound._trouble
        assert not list(outbound._pauses)
        assert not any(way.lines or way.busy for way in outbound._ways.values())
    assert len(wire.delivered) == 3 * BATCH


async def test_an_idle_outbound_never_wakes_up(autojump_clock: MockClock) -> None:
    """Idle costs nothing. (P13)"""

    class Counting(MemoryStoreView):
        looks = 0

        async def outbox(self, limit: int, skip: object = ()) -> tuple[Reply, ...]:
            self.looks += 1
            return await self.inner.outbox(limit, skip)  # type: ignore[arg-type]

    store = Counting(new_store())
    here = Office(store, Wire())  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.outbound.run)
        await here.put("1")
        await trio.sleep(100)
        looks = store.looks
        await trio.sleep(10_000)
        assert store.looks == looks <= 3
        nursery.cancel_scope.cancel()


async def test_a_second_run_takes_up_what_the_first_left(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A supervisor may start it again after a crash."""
    caplog.set_level(logging.CRITICAL)
    wire = Wire()
    wire.takes_s["dm"] = 5
    here = Office(new_store(), wire)
    await put(here.store, "1", "2")
    for seconds in (2, 100):
        with trio.move_on_after(seconds):
            await here.outbound.run()
    assert wire.texts() == ["1", "2"]
    assert here.quiet.now
