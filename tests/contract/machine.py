"""Any history of verbs, restarts and failed writes: the store must give the answers that the model gives.

The machine runs in a thread beside one live trio program and calls into it. What it draws are plain picks, so that a
failing history reads as a program and can be played again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import trio
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from store.memory import MemoryStore
from store.protocols import RuleBroken, StoreUnavailable
from store.records import CHAT_LEASE, Incoming, MessageState, NewToken, Tidied, WorkerStatus
from tests.contract.backends import Wall
from tests.contract.picture import picture
from tests.contract.pools import (
    CENTURY,
    KEYS,
    NAMES,
    PLACES,
    SESSIONS,
    WORKERS,
    cursors,
    data,
    digests,
    ends,
    figures,
    incoming,
    leases,
    limits,
    notes,
    pick,
    picks,
    policies,
    readings,
    said,
    sessions,
    spans,
    tenants,
    texts,
    troubles,
    turns,
    usual_sessions,
    views,
    workers,
)
from tests.contract.sides import Side, Sides, as_it_is

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import timedelta

    from store.records import Cursor, DeliveryKey, Note, Reading, Said, SessionKey, SessionPolicy
    from tests.contract.lives import Life

    Verb = Callable[[Side], Awaitable[object]]
    View = int | str | None

TRIES = 8
NOTHING = Tidied(0, 0, 0)


class StoreMachine(RuleBasedStateMachine):
    """`life` is given by a subclass; see `play`."""

    life: Life

    def __init__(self) -> None:
        super().__init__()
        self.wall = Wall()
        self.sides: Sides
        self.differed = True

    # ── both are asked ───────────────────────────────────────────────────────────────────────────────────────────────

    def ask(self, verb: Verb) -> None:
        """The same question to both, and the same answer of both."""
        trio.from_thread.run(self._ask, verb)

    async def _ask(self, verb: Verb) -> None:
        found = await self._answer(verb, self._nothing_changed)
        self._compare(await outcome(verb, self.sides.model), found)

    async def _answer(self, verb: Verb, failed: Callable[[], Awaitable[None]]) -> object:
        """A verb that fails is repeated until it succeeds, as a caller would."""
        for _ in range(TRIES):
            try:
                return await outcome(verb, self.sides.tried)
            except StoreUnavailable:
                await failed()
        raise AssertionError(f"it did not get over its trouble in {TRIES} tries")

    async def _nothing_changed(self) -> None:
        """After a failure the store is as it was, so it is still what the model is."""
        self._compare(await everything(self.sides.model), await self._answer(everything, trio.lowlevel.checkpoint))

    def _compare(self, expected: object, found: object) -> None:
        self.sides.learn(expected, found)
        self.differed = self.sides.translated(found) != as_it_is(expected)
        assert self.sides.translated(found) == as_it_is(expected)

    # ── openings and endings ─────────────────────────────────────────────────────────────────────────────────────────

    @initialize()
    def start(self) -> None:
        self.sides = Sides(Side(MemoryStore(self.wall)), Side(trio.from_thread.run(self.life.start, self.wall)))
        self.ask(lambda side: side.whole.acquire(CHAT_LEASE, "a", CENTURY))
        self.ask(lambda side: side.whole.create_tenant("t", "Tea"))

    @rule()
    def reopen(self) -> None:
        self.sides.tried.whole = trio.from_thread.run(self.life.reopen)

    @rule()
    def crash(self) -> None:
        self.sides.tried.whole = trio.from_thread.run(self.life.crash)

    @rule(kinds=troubles)
    def trouble(self, kinds: Sequence[int]) -> None:
        for kind in kinds:
            trio.from_thread.run(self.life.trouble, kind)

    @rule(kinds=troubles, batch=st.lists(incoming, min_size=1, max_size=3), words=said)
    def write_in_trouble(self, kinds: Sequence[int], batch: Sequence[Incoming], words: Sequence[Said]) -> None:
        """It fails now, so that not only the store's own work meets it."""
        self.trouble(kinds)
        self.ask(lambda side: side.view(None).accept(batch))
        self.trouble(kinds)
        self.ask(lambda side: side.whole.remember(SESSIONS[0], words))

    @rule(span=spans)
    def time_passes(self, span: timedelta) -> None:
        self.wall.pass_by(span)

    @rule()
    def look(self) -> None:
        self.ask(everything)

    def teardown(self) -> None:
        try:
            if not self.differed:
                self.look_at_everything()
        finally:
            trio.from_thread.run(self.life.end)

    def look_at_everything(self) -> None:
        """What can be read, what is known of every delivery, and that it is all there after a crash."""
        self.look()
        self.crash()
        self.ask(end_the_lease)
        self.ask(lambda side: side.whole.acquire(CHAT_LEASE, "z", CENTURY))
        self.look()
        self.ask(lambda side: side.view(0).accept([Incoming(key, SESSIONS[0], "", "") for key in KEYS]))
        self.ask(lambda side: side.view(0).resume())

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(view=views, batch=st.lists(incoming, max_size=4), cursor=cursors)
    def accept(self, view: View, batch: Sequence[Incoming], cursor: Cursor | None) -> None:
        self.ask(lambda side: side.view(view).accept(batch, cursor))

    @rule(view=views, batch=st.lists(incoming, min_size=1, max_size=3), turn=turns)
    def accept_and_begin(self, view: View, batch: Sequence[Incoming], turn: str) -> None:
        self.ask(lambda side: side.view(None).accept(batch))
        self.ask(lambda side: side.view(view).begin(turn, side.those(range(len(batch)))))

    @rule(view=views, turn=turns, those=picks)
    def begin(self, view: View, turn: str, those: Sequence[int]) -> None:
        self.ask(lambda side: side.view(view).begin(turn, side.those(those)))

    @rule(view=views, turn=turns, those=picks, end=ends, replies=notes, words=said, context=figures)
    def settle(
        self,
        view: View,
        turn: str,
        those: Sequence[int],
        end: MessageState,
        replies: Sequence[Note],
        words: Sequence[Said],
        context: float | None,
    ) -> None:
        self.ask(lambda side: side.view(view).settle(turn, side.those(those), end, replies, words, context))

    @rule(session=usual_sessions, turn=turns, key=st.sampled_from(KEYS), replies=notes, words=said, context=figures)
    def answer(
        self,
        session: SessionKey,
        turn: str,
        key: DeliveryKey,
        replies: Sequence[Note],
        words: Sequence[Said],
        context: float | None,
    ) -> None:
        """The usual way of a message, from beginning to end."""
        self.ask(lambda side: side.view(None).accept([Incoming(key, session, "ann", "hello")]))
        self.ask(lambda side: side.view(0).begin(turn, side.those([0])))
        self.ask(lambda side: side.view(0).settle(turn, side.those([0]), MessageState.DONE, replies, words, context))

    @rule(
        view=views,
        session=usual_sessions,
        upto=pick,
        sender=st.sampled_from([None, None, "ann", "bob"]),
        only=st.none() | picks,
    )
    def stop(self, view: View, session: SessionKey, upto: int, sender: str | None, only: Sequence[int] | None) -> None:
        self.ask(
            lambda side: side.view(view).stop(
                session, side.message(upto), sender=sender, only=None if only is None else side.those(only)
            )
        )

    @rule(view=views, turn=turns, those=picks)
    def put_back(self, view: View, turn: str, those: Sequence[int]) -> None:
        self.ask(lambda side: side.view(view).put_back(turn, side.those(those)))

    @rule(view=views)
    def resume(self, view: View) -> None:
        self.ask(lambda side: side.view(view).resume())

    @rule(view=views)
    def waiting(self, view: View) -> None:
        self.ask(lambda side: side.view(view).waiting())

    @rule(view=views, those=st.lists(sessions, max_size=3))
    def standings(self, view: View, those: Sequence[SessionKey]) -> None:
        self.ask(lambda side: side.view(view).standings(those))

    @rule(view=views, limit=limits, skip=st.lists(sessions, max_size=2))
    def outbox(self, view: View, limit: int, skip: Sequence[SessionKey]) -> None:
        self.ask(lambda side: side.view(view).outbox(limit, [session.address for session in skip]))

    @rule(view=views, reply=pick, parts=st.integers(min_value=0, max_value=3), live=texts)
    def progress(self, view: View, reply: int, parts: int, live: str) -> None:
        self.ask(lambda side: side.view(view).progress(side.reply(reply), parts, live))

    @rule(view=views, reply=pick)
    def sent(self, view: View, reply: int) -> None:
        self.ask(lambda side: side.view(view).sent(side.reply(reply)))

    # ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @rule(key=sessions, policy=policies)
    def set_policy(self, key: SessionKey, policy: SessionPolicy) -> None:
        self.ask(lambda side: side.whole.set_policy(key, policy))

    @rule(key=sessions, words=said)
    def remember(self, key: SessionKey, words: Sequence[Said]) -> None:
        self.ask(lambda side: side.whole.remember(key, words))

    @rule(key=sessions, after=st.integers(min_value=0, max_value=8), limit=limits)
    def read(self, key: SessionKey, after: int, limit: int) -> None:
        self.ask(lambda side: side.whole.transcript(key, after=after, limit=limit))
        self.ask(lambda side: side.whole.newest(key, limit))
        self.ask(lambda side: side.whole.session(key))

    @rule(tenant=tenants, limit=limits, after=st.just("") | sessions.map(str))
    def list_sessions(self, tenant: str, limit: int, after: str) -> None:
        self.ask(lambda side: side.whole.sessions(tenant, limit=limit, after=after))

    @rule(key=sessions, upto=st.integers(min_value=0, max_value=8))
    def trim(self, key: SessionKey, upto: int) -> None:
        self.ask(lambda side: side.whole.trim(key, upto))

    @rule(key=sessions)
    def forget(self, key: SessionKey) -> None:
        self.ask(lambda side: side.whole.forget(key))

    # ── tenants and tokens ───────────────────────────────────────────────────────────────────────────────────────────

    @rule(tenant=tenants, name=texts)
    def create_tenant(self, tenant: str, name: str) -> None:
        self.ask(lambda side: side.whole.create_tenant(tenant, name))

    @rule(tenant=tenants, enabled=st.booleans())
    def enable_tenant(self, tenant: str, enabled: bool) -> None:
        self.ask(lambda side: side.whole.enable_tenant(tenant, enabled))

    @rule(tenant=tenants)
    def delete_tenant(self, tenant: str) -> None:
        self.ask(lambda side: side.whole.delete_tenant(tenant))

    @rule(
        name=st.sampled_from(["k1", "k2"]),
        tenant=tenants,
        digest=digests,
        scopes=st.lists(texts, max_size=2).map(tuple),
        lasts=st.none() | spans,
    )
    def add_token(self, name: str, tenant: str, digest: str, scopes: tuple[str, ...], lasts: timedelta | None) -> None:
        expires = None if lasts is None else self.wall() + lasts
        self.ask(lambda side: side.whole.add_token(NewToken(name, tenant, "", digest, scopes, expires)))

    @rule(digest=digests)
    def token_for(self, digest: str) -> None:
        self.ask(lambda side: side.whole.token_for(digest))

    @rule(tenant=tenants, name=st.sampled_from(["k1", "k2"]))
    def revoke_token(self, tenant: str, name: str) -> None:
        self.ask(lambda side: side.whole.revoke_token(tenant, name))

    # ── workers and leases ───────────────────────────────────────────────────────────────────────────────────────────

    @rule(worker=workers, status=st.sampled_from(WorkerStatus), run=texts, context=st.none() | data)
    def beat(self, worker: str, status: WorkerStatus, run: str, context: dict[str, object] | None) -> None:
        self.ask(lambda side: side.whole.beat(worker, status, run=run, context=context))

    @rule(worker=workers)
    def leave(self, worker: str) -> None:
        self.ask(lambda side: side.whole.leave(worker))

    @rule(reading=readings)
    def record(self, reading: Reading) -> None:
        self.ask(lambda side: side.whole.record(reading))

    @rule(name=st.sampled_from(NAMES), owner=st.sampled_from("ab"), span=leases)
    def acquire(self, name: str, owner: str, span: timedelta) -> None:
        self.ask(lambda side: side.whole.acquire(name, owner, span))

    @rule(lease=pick, span=leases)
    def renew(self, lease: int, span: timedelta) -> None:
        self.ask(lambda side: renew(side, lease, span))

    @rule(lease=pick)
    def release(self, lease: int) -> None:
        self.ask(lambda side: release(side, lease))

    @rule()
    def tidy(self) -> None:
        """All rounds together: how much one of them removes is the store's own business."""
        trio.from_thread.run(self._tidy)

    async def _tidy(self) -> None:
        rounds = []
        while (removed := await self._answer(tidy, trio.lowlevel.checkpoint)) != NOTHING:
            rounds.append(removed)
        expected = await self.sides.model.whole.tidy()
        assert tuple(map(sum, zip(NOTHING, *rounds, strict=True))) == expected


async def outcome(verb: Verb, side: Side) -> object:
    """What the verb answers; a refusal that is meant for its caller is an answer too."""
    try:
        return await verb(side)
    except ValueError as refused:
        return type(refused).__name__
    except RuleBroken as refused:
        return type(refused).__name__


async def renew(side: Side, pick: int, span: timedelta) -> object:
    lease = side.lease(pick)
    renewed = None if lease is None else await side.whole.renew(lease, span)
    return None if renewed is None else replace(renewed, token=0)


async def release(side: Side, pick: int) -> object:
    lease = side.lease(pick)
    return lease is not None and await side.whole.release(lease)


async def end_the_lease(side: Side) -> object:
    held = await side.whole.lease(CHAT_LEASE)
    return held is not None and await side.whole.release(held)


async def tidy(side: Side) -> Tidied:
    return await side.whole.tidy()


async def everything(side: Side) -> object:
    return await picture(side.whole, side.view(0), places=PLACES, workers=WORKERS, leases=NAMES)


async def play(life: Life, histories: int, steps: int, *, fixed: bool, shrink: bool = True) -> None:
    """So many histories; the same ones every time if they are fixed."""
    machine = type("StoreMachine", (StoreMachine,), {"life": life})
    phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
    how = settings(
        max_examples=histories,
        stateful_step_count=steps,
        derandomize=fixed,
        database=None,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    await trio.to_thread.run_sync(lambda: run_state_machine_as_test(machine, settings=how))
