"""Any history of verbs, restarts and failed writes: the store must give the answers that the model gives.

The machine runs in a thread beside one live trio program and calls into it. What it draws are plain picks, so that a
failing history reads as a program and can be played again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from store.memory import MemoryStore
from store.protocols import RuleBroken, StoreUnavailable
from store.records import CHAT_LEASE, Incoming, Tidied
from tests.contract.backends import Wall
from tests.contract.picture import picture
from tests.contract.pools import (
    CENTURY,
    KEYS,
    NAMES,
    PLACES,
    SESSIONS,
    WORKERS,
    incoming,
    said,
    spans,
    troubles,
)
from tests.contract.sides import Side, Sides, as_it_is

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import timedelta

    from store.records import Said
    from tests.contract.lives import Life

    Verb = Callable[[Side], Awaitable[object]]
    View = int | str | None

TRIES = 8
NOTHING = Tidied(0, 0, 0)


class StoreMachine(RuleBasedStateMachine):
    """What every history has; the verbs come with a subclass, `life` in `play`."""

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


async def end_the_lease(side: Side) -> object:
    held = await side.whole.lease(CHAT_LEASE)
    return held is not None and await side.whole.release(held)


async def tidy(side: Side) -> Tidied:
    return await side.whole.tidy()


async def everything(side: Side) -> object:
    return await picture(side.whole, side.view(0), places=PLACES, workers=WORKERS, leases=NAMES)


async def play(
    theme: type[StoreMachine], life: Life, histories: int, steps: int, *, fixed: bool, shrink: bool = True
) -> None:
    """So many histories; the same ones every time if they are fixed."""
    machine = type(theme.__name__, (theme,), {"life": life})
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
