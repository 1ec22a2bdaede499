"""Fires what is due. One loop sleeps until the next due time or a poke, and claims no more than can begin.

    sleep ──▶ due, or poked? ──▶ claim (at most the free slots) ──▶ a task of its own for each claim (`cron.run`)
      ▲            │ no                                                     │ its slot is free: poke
      └────────────┴────────────────────────────────────────────────────────┘

The loop looks at the wall clock at least every second, because clocks are set and machines sleep; a look costs nothing
but reading it. The store is asked only when something is due or may have changed: after a word from the store (`DUE`,
`JOBS`), a poke, or the poll that makes up for words that were not heard.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import trio

from cron.errors import AlreadyRunning, SchedulerShutdownError
from cron.run import LAST_WORDS_S, Runs
from cron.upkeep import Upkeep
from store.cron_protocol import DUE, JOBS
from store.protocols import POLL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from cron.options import Options
    from cron.run import Held, Persist, Runner
    from cron.telling import Tell
    from store.protocols import Store

LOOK_S = 1.0
"""The wall clock is looked at this often."""
AGAIN_S = 0.05
"""What is due and could not be claimed is tried again after this, then after twice as long, up to LOOK_S."""
AT_ONCE = 20
"""So many are claimed with one question: a full lane of a hundred took the store ten milliseconds in one step."""
JUMP = timedelta(seconds=2)
"""What the wall clock may differ from the other one between two looks before it counts as set."""
STOP_WITHIN = timedelta(seconds=30)


class Status(StrEnum):
    STOPPED = "stopped"
    RUNNING = "running"
    STOPPING = "stopping"


class CronState(NamedTuple):
    status: Status
    started_at: datetime | None
    check_count: int
    trigger_count: int
    last_check_at: datetime | None


class CronService:
    def __init__(
        self,
        store: Store,
        runner: Runner,
        options: Options,
        *,
        worker: str,
        now: Callable[[], datetime],
        persist: Persist,
        tell: Tell,
        new_id: Callable[[], str],
        random: Callable[[], float],
        settled: Callable[[], None] = lambda: None,
        lanes: Callable[[], Mapping[str, object]] = dict,
        look_s: float = LOOK_S,
    ) -> None:
        """``lanes`` goes into what is kept about the machine. ``look_s`` is for simulations of years, in which nobody
        sets a clock unawares.
        """
        self._store = store
        self._cron = store.cron
        self._runner = runner
        self._options = options
        self._worker = worker
        self._now = now
        self._look_s = look_s
        self._persist = persist
        self._tell = tell
        self._random = random
        self._look_s = look_s
        self._runs = Runs(
            self._cron,
            runner,
            options,
            persist=persist,
            tell=tell,
            new_id=new_id,
            random=random,
            freed=self._freed,
            settled=settled,
        )
        self._upkeep = Upkeep(
            store, self._runs, options, worker=worker, persist=persist, tell=tell, new_id=new_id, lanes=lanes
        )
        self._status = Status.STOPPED
        self._started_at: datetime | None = None
        self._check_count = self._trigger_count = 0
        self._last_check_at: datetime | None = None
        self._poked = trio.Event()
        self._look = True
        """The store may know of something sooner than we do."""
        self._due_at: datetime | None = None
        self._blocked_s = self._last_wait_s = 0.0
        self._last_tenant = ""
        self._unsure = False
        """An answer to a claim was lost: the store may have leased us something."""
        self._clocks: tuple[datetime, float] | None = None
        self._went_back = False
        self._everything = trio.CancelScope()
        self._ended = trio.Event()
        self._idle = trio.Event()

    # ── for others ───────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def status(self) -> Status:
        return self._status

    @property
    def is_running(self) -> bool:
        return self._status is Status.RUNNING

    def state(self) -> CronState:
        return CronState(self._status, self._started_at, self._check_count, self._trigger_count, self._last_check_at)

    @property
    def due_at(self) -> datetime | None:
        """When the next trigger is due, as far as was known at the last look; None: none is."""
        return self._due_at

    def running(self, agent: str | None = None) -> int:
        """How many runs go on here, of one agent or of all."""
        return self._runs.count(agent)

    def poke(self) -> None:
        """There may be something due sooner than was known."""
        self._look = True
        self._poked.set()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until stopped. A second one at the same time is refused."""
        if self._status is not Status.STOPPED:
            raise AlreadyRunning
        self._status, self._started_at = Status.RUNNING, self._now()
        self._everything, self._ended = trio.CancelScope(), trio.Event()
        ready = False
        try:
            with self._everything:
                async with trio.open_nursery() as nursery:
                    await self._recover(nursery)
                    nursery.start_soon(self._runs.keep_leases)
                    nursery.start_soon(self._upkeep.run)
                    nursery.start_soon(self._listen)
                    nursery.start_soon(self._poll)
                    task_status.started()
                    ready = True
                    await self._loop(nursery)
            if not ready:  # stopped before it was
                task_status.started()
        finally:
            self._status = Status.STOPPED
            with trio.move_on_after(LAST_WORDS_S, shield=True):
                await self._upkeep.leave()
            self._ended.set()

    async def stop(self, *, wait: bool = True, within: timedelta = STOP_WITHIN) -> None:
        """Nothing new begins; what runs may finish within that span, then it is given back at no cost of an attempt.

        Raises `SchedulerShutdownError` with their number if runs were left.
        """
        if self._status is Status.STOPPED:
            return
        self._status = Status.STOPPING
        self._runs.give_back_waiting()
        self.poke()
        if wait:
            with trio.move_on_after(within.total_seconds()):
                await self._drained()
        left = len(self._runs.holding)
        self._runs.close()
        with trio.move_on_after(LAST_WORDS_S):
            await self._drained()
        self._everything.cancel()
        await self._ended.wait()
        if left and wait:
            raise SchedulerShutdownError(timed_out=True, running=left, after=within)

    async def _drained(self) -> None:
        while self._runs.holding:
            self._idle = trio.Event()
            await self._idle.wait()

    # ── the loop ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _loop(self, nursery: trio.Nursery) -> None:
        while self._status is Status.RUNNING:
            self._poked = trio.Event()
            try:
                await self._check(nursery)
            except Exception as error:  # noqa: BLE001 - one check that fails is told, and the next one comes
                self._tell("check_failed", level="error", error=f"Error during schedule check: {error!r}")
                self._look = True
                self._blocked_s = LOOK_S
            with trio.move_on_after(self._sleep_s()):
                await self._poked.wait()
        await trio.sleep_forever()  # until `stop` has seen the runs end

    async def _check(self, nursery: trio.Nursery) -> None:
        self._check_count += 1
        now = self._last_check_at = self._now()
        if self._has_jumped(now):
            # By the new time our leases may be over although we live: nobody, we included, shall take them for lost.
            await self._runs.renew(list(self._runs.holding.values()))
        if self._went_back:
            await self._upkeep.bring_back()
            self._went_back = False
        self._blocked_s = 0.0
        if not self._look and (self._due_at is None or self._due_at > now):
            return
        self._look = False
        if self._unsure:
            await self._find_lost_claims(nursery)
        await self._claim_all(nursery)
        await self._plan_sleep(full=self._room() <= 0)

    async def _claim_all(self, nursery: trio.Nursery) -> None:
        """As many as there is room for; a claim that fails takes none of those before it along."""
        mine: list[Held] = []
        try:
            while (room := min(self._room(), AT_ONCE)) > 0:
                some = await self._claim(room)
                mine += some
                if len(some) < room:
                    break
        finally:
            self._begin(nursery, mine)

    async def _claim(self, room: int) -> list[Held]:
        asked_at = trio.current_time()
        self._unsure = True
        claims = await self._cron.claim(
            self._worker, room, self._options.lease, after=self._last_tenant, room=self._agents_room()
        )
        self._unsure = False
        if claims:
            self._last_tenant = claims[-1].trigger.tenant
        return [self._runs.hold(claim, asked_at) for claim in claims]

    def _begin(self, nursery: trio.Nursery, many: Sequence[Held]) -> None:
        """Each in a task of its own, so that a slow one delays nobody; many at once are spread out."""
        spread = self._options.max_jitter.total_seconds() if len(many) > self._options.jitter_threshold else 0.0
        self._trigger_count += len(many)
        for held in many:
            nursery.start_soon(self._runs.carry, held, self._random() * spread)

    async def _plan_sleep(self, *, full: bool) -> None:
        """When the next one is due by our clock, the store's own being the measure."""
        asked_at = self._now()  # before the question: an answer that took its time must not make us late
        span = await self._cron.next_due()
        self._due_at = None if span is None else asked_at + span
        if span is not None and span <= timedelta(0):
            # Due, and yet not claimed: the lane or an agent is busy, or another process was looking at it.
            self._look = True
            self._blocked_s = self._look_s if full else min(max(AGAIN_S, 2 * self._last_wait_s), LOOK_S)
        self._last_wait_s = self._blocked_s

    def _sleep_s(self) -> float:
        if self._blocked_s:
            return self._blocked_s
        if self._look:
            return 0.0
        if self._due_at is None:
            return float("inf")
        return min(max((self._due_at - self._now()).total_seconds(), 0.0), self._look_s)

    def _room(self) -> int:
        return self._runner.room() - self._runs.waiting

    def _agents_room(self) -> dict[str, int]:
        return {agent: max(most - self._runs.count(agent), 0) for agent, most in self._options.agents.items()}

    def _freed(self) -> None:
        self._idle.set()
        self.poke()

    def _has_jumped(self, now: datetime) -> bool:
        """A clock that was set, or a machine that slept: what is due may have changed by that."""
        before, steady = self._clocks, trio.current_time()
        self._clocks = now, steady
        if before is None:
            return False
        jump = (now - before[0]) - timedelta(seconds=steady - before[1])
        if abs(jump) <= JUMP:
            return False
        self._tell("clock_jumped", level="warning", seconds=jump.total_seconds())
        self._look = True
        self._went_back = self._went_back or jump < timedelta(0)
        return True

    # ── beside the loop ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _recover(self, nursery: trio.Nursery) -> None:
        """What an earlier life of this worker held is over, unless it had not begun: then it begins now."""
        await self._find_lost_claims(nursery)
        await self._upkeep.first()

    async def _find_lost_claims(self, nursery: trio.Nursery) -> None:
        asked_at = trio.current_time()
        claims = await self._persist(partial(self._cron.held, self._worker))
        unknown = [claim for claim in claims if claim.trigger.id not in self._runs.holding]
        mine = [self._runs.hold(claim, asked_at) for claim in unknown]
        await self._persist(partial(self._runs.renew, mine))
        for held in mine:
            nursery.start_soon(self._runs.carry, held)
        self._unsure = False

    async def _listen(self) -> None:
        async with self._store.listen() as words:
            async for word in words:
                if word in (POLL, DUE, JOBS):
                    self.poke()

    async def _poll(self) -> None:
        while True:
            await trio.sleep(self._options.poll.total_seconds())
            self.poke()
