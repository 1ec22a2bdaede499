"""One claim from its lease to its settling.

    claim ──▶ passed over? ──▶ work item ──▶ start (a run, an attempt) ──▶ runner ──▶ settle
                 │                                  │ the lease is lost or the process ends: the run dies here
                 └──────────────────────────────────┴───────────────────────────────▶ settle

Everything between claim and settling happens inside one cancel scope whose deadline lies a second before the lease's
end. Each renewal moves it. An owner that was frozen finds its time run out when it wakes, and its run dies before
anything else of it happens; what it still wants to write is refused by the store, because its token is stale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import trio

from cron.errors import AgentMissing, BadInput, PermanentFailure, RunStopped, RunTimedOut
from cron.outcome import NO_WORK, SHUTDOWN, Concluding, answered_in, pass_over
from cron.retry import should_retry
from cron.settled import Settled
from cron.together import Together
from cron.work import open_source, prompt
from store.jobs import Ended, RunState, Start
from store.protocols import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import datetime, timedelta
    from typing import TypeVar

    from cron.options import Options
    from cron.telling import Tell
    from cron.work import WorkItem, WorkSource
    from store.cron_protocol import CronStore
    from store.jobs import Change, Claim, Job, Run, Trigger
    from store.records import SessionKey

    Answered = TypeVar("Answered")

    class Persist(Protocol):
        """Have the store do it, however often it takes."""

        def __call__(self, verb: Callable[[], Awaitable[Answered]]) -> Awaitable[Answered]: ...


EARLY_S = 1.0
"""A process trusts its lease so much less than the store does."""
LAST_WORDS_S = 5.0


@dataclass(frozen=True, slots=True)
class Work:
    """One attempt, as whoever carries it out sees it."""

    job: Job
    run: Run
    prompt: str
    session: str
    """The scheduler's session: runs of one job that share a conversation share it."""
    place: SessionKey | None
    """The conversation that it belongs to, if it does not stand alone."""
    timeout: timedelta
    """Counted from when it has its slot."""
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    tokens_in: int = 0
    tokens_out: int = 0


class Runner(Protocol):
    """Who carries attempts out."""

    def room(self) -> int:
        """How many could begin now."""

    async def run(self, work: Work) -> Answer:
        """Carry it out. Raises `RunTimedOut`, `RunStopped` (by a person), `AgentMissing`, `PermanentFailure`, or what
        went wrong; cancelling it ends it."""


@dataclass(slots=True, eq=False)
class Held:
    """A claim that this process holds."""

    claim: Claim
    scope: trio.CancelScope
    run: Run | None = None
    in_lane: bool = False
    """The runner has it, or had: it takes no room that the runner does not know of."""
    closing: bool = False
    item_of: WorkSource | None = None


class Runs:
    """All claims that this process holds."""

    def __init__(
        self,
        store: CronStore,
        runner: Runner,
        options: Options,
        *,
        persist: Persist,
        tell: Tell,
        new_id: Callable[[], str],
        random: Callable[[], float],
        freed: Callable[[], None],
        settled: Callable[[], None],
    ) -> None:
        self._store = store
        self._runner = runner
        self._options = options
        self._persist = persist
        self._tell = tell
        self._new_id = new_id
        self._freed = freed
        self._settled = settled
        self._conclude = Concluding(options, new_id, random)
        self._starts = Together(store.start)
        self._settles: Together[Ended, Settled] = Together(self._settle_all)
        self.holding: dict[str, Held] = {}

    @property
    def waiting(self) -> int:
        """Claims on their way to the runner."""
        return sum(not held.in_lane for held in self.holding.values())

    def count(self, agent: str | None = None) -> int:
        return sum(agent in (None, held.claim.job.spec.agent) for held in self.holding.values())

    def trusted_until(self, asked_at: float) -> float:
        return asked_at + self._options.lease.total_seconds() - EARLY_S

    def hold(self, claim: Claim, asked_at: float) -> Held:
        """From now on this process answers for the claim, and not for an older one of the same trigger."""
        older = self.holding.get(claim.trigger.id)
        if older is not None:
            older.scope.cancel()
        held = Held(claim, trio.CancelScope(deadline=self.trusted_until(asked_at)))
        self.holding[claim.trigger.id] = held
        return held

    async def carry(self, held: Held, wait_s: float = 0.0) -> None:
        """To its end, whatever that is."""
        ended = None
        try:
            ended = await self._attempt(held, wait_s)
            if ended is not None:
                await self._settle(held, ended)
        except trio.Cancelled:
            # The process ends at once. How it ended, or that it has not, is said if the store still listens.
            with trio.move_on_after(LAST_WORDS_S, shield=True):
                await self._let_go_of_item(held, ended)
                await self._settle(held, ended or given_back(held))
            raise
        finally:
            if self.holding.get(held.claim.trigger.id) is held:
                del self.holding[held.claim.trigger.id]
            self._freed()

    async def keep_leases(self) -> None:
        """Renew all of them at a third of their span; what cannot be renewed ends by its deadline."""
        span_s = self._options.lease.total_seconds()
        wait_s = span_s / 3
        while True:
            await trio.sleep(wait_s)
            try:
                await self.renew(list(self.holding.values()))
            except StoreError as error:
                self._tell("renewal_failed", level="warning", error=str(error))
                wait_s = span_s / 15
            else:
                wait_s = span_s / 3

    async def renew(self, mine: list[Held]) -> None:
        if not mine:
            return
        asked_at = trio.current_time()
        answers = await self._store.renew([held.claim for held in mine], self._options.lease)
        for held, kept in zip(mine, answers, strict=True):
            if kept:
                held.scope.deadline = self.trusted_until(asked_at)
            elif self.holding.get(held.claim.trigger.id) is held:
                self._tell("lease_lost", level="warning", claim=held.claim)
                held.scope.cancel()

    def give_back_waiting(self) -> None:
        """Nothing new begins: what has not begun is somebody else's."""
        for held in self.holding.values():
            if held.run is None:
                held.closing = True
                held.scope.cancel()

    def close(self) -> None:
        """Give everything back that has not ended: it costs no attempt."""
        for held in self.holding.values():
            held.closing = True
            held.scope.cancel()

    async def settle_lost(self, claim: Claim) -> None:
        """The run that an earlier owner had begun is over; its item may be had by others."""
        await self._settle(None, await self._lost(claim))

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _attempt(self, held: Held, wait_s: float) -> Ended | None:
        claim, ended = held.claim, None
        if claim.lost is not None:
            return await self._lost(claim)
        reason = pass_over(claim, self._options)
        if reason is not None:
            return Ended(claim, reason=reason)
        run = self._new_id()
        with held.scope:
            await trio.sleep(wait_s)
            ended = await self._begin(held, run)
        await self._let_go_of_item(held, ended)
        if held.scope.cancelled_caught:
            return given_back(held) if held.closing or held.run is None else lease_lost(held)
        return ended

    async def _begin(self, held: Held, run: str) -> Ended | None:
        """Get the item, write the run down, have it carried out. None if somebody else has the trigger by now."""
        claim = held.claim
        try:
            item = await self._item(held)
        except Exception as error:  # noqa: BLE001 - whatever a work source raises is the end of the run it was asked for
            held.run = await self._start(claim, run)
            permanent = isinstance(error, (BadInput, PermanentFailure))
            return None if held.run is None else failure(held, error, permanent=permanent)
        if claim.job.spec.work_source and item is None:
            return Ended(claim, reason=NO_WORK)
        held.run = await self._start(claim, run)
        if held.run is None:
            self._tell("claim_lost", level="warning", claim=claim)
            return None
        late_s = held.run.lateness.total_seconds()
        self._tell("run_started", claim=claim, run_id=run, attempt=held.run.attempt, lateness_s=late_s)
        return await self._carried_out(held, held.run, item)

    async def _item(self, held: Held) -> WorkItem | None:
        name = held.claim.job.spec.work_source
        if not name:
            return None
        source, key = open_source(name), held.claim.trigger.id
        await source.release(key)  # what an owner before us had taken and could not give back
        held.item_of = source
        return await source.next(key)

    async def _let_go_of_item(self, held: Held, ended: Ended | None) -> None:
        """Done, failed for good, or for somebody else: also when the run died."""
        source, held.item_of = held.item_of, None
        if source is None:
            return
        key = held.claim.trigger.id
        with trio.CancelScope(shield=True):
            try:
                if ended is not None and ended.state is RunState.SUCCEEDED:
                    await source.done(key)
                elif ended is not None and ended.state is not RunState.CANCELLED and self._last(held, ended):
                    await source.failed(key, ended.error)
                else:
                    await source.release(key)
            except Exception as error:  # noqa: BLE001 - the run is over in any case; its item is named in the log
                self._tell("item_stuck", level="error", claim=held.claim, error=one_line(error))

    def _last(self, held: Held, ended: Ended) -> bool:
        attempt = 0 if held.run is None else held.run.attempt
        return not should_retry(attempt, self._options.retries(held.claim.job.spec), ended.permanent)

    async def _start(self, claim: Claim, run: str) -> Run | None:
        return await self._persist(partial(self._starts, Start(claim, run)))

    async def _carried_out(self, held: Held, run: Run, item: WorkItem | None) -> Ended:
        job = held.claim.job
        place = answered_in(job)
        work = Work(
            job=job,
            run=run,
            prompt=prompt(job.spec.message, item),
            session=str(place) if place is not None else f"cron:{job.tenant}:{job.id}:{run.id}",
            place=place,
            timeout=self._options.timeout(job.spec),
            environ={
                "GOCLAW_TRACE_ID": run.trace,
                "GOCLAW_RUN_ID": run.id,
                "GOCLAW_TRIGGER_ID": run.trigger,
                "GOCLAW_JOB_ID": str(job.id),
            },
        )
        held.in_lane = True
        try:
            answer = await self._runner.run(work)
        except AgentMissing as error:
            return replace(failure(held, error, permanent=True), agent_missing=True)
        except PermanentFailure as error:
            return failure(held, error, permanent=True)
        except RunTimedOut as error:
            return replace(failure(held, error), state=RunState.TIMEOUT)
        except RunStopped as error:
            return replace(failure(held, error), state=RunState.CANCELLED)
        except Exception as error:  # noqa: BLE001 - whatever an agent raises is the end of its run, not of cron
            return failure(held, error)
        return Ended(
            held.claim,
            run.id,
            run.started_at,
            RunState.SUCCEEDED,
            output=readable(answer.text),
            tokens_in=answer.tokens_in,
            tokens_out=answer.tokens_out,
        )

    async def _lost(self, claim: Claim) -> Ended:
        lost = claim.lost
        if lost is None:
            return Ended(claim, reason=SHUTDOWN)
        if claim.job.spec.work_source:
            try:
                await open_source(claim.job.spec.work_source).release(claim.trigger.id)
            except Exception as error:  # noqa: BLE001 - the run is over in any case; its item is named in the log
                self._tell("item_stuck", level="error", claim=claim, error=one_line(error))
        late = claim.claimed_at >= lost.started_at + self._options.timeout(claim.job.spec)
        state, why = (RunState.TIMEOUT, "it took longer than it may, and") if late else (RunState.FAILED, "")
        text = f"orphaned: {why} the worker {lost.worker} ended or was away while it ran".replace("  ", " ")
        return Ended(claim, lost.id, lost.started_at, state, error=text)

    async def _settle_all(self, ended: Sequence[Ended]) -> tuple[Settled, ...]:
        followed: dict[str, Change] = {}

        def conclude(job: Job, trigger: Trigger, one: Ended, now: datetime) -> Change:
            followed[trigger.id] = self._conclude(job, trigger, one, now)
            return followed[trigger.id]

        kept = await self._store.settle(ended, conclude)
        many = zip(ended, kept, strict=True)
        return tuple(Settled(is_kept, followed.get(one.claim.trigger.id)) for one, is_kept in many)

    async def _settle(self, held: Held | None, ended: Ended) -> None:
        if held is not None:
            held.in_lane = True
        try:
            settled = await self._persist(partial(self._settles, ended))
        except StoreError as error:
            self._tell("settle_refused", level="error", claim=ended.claim, error=str(error))
            plain = replace(ended, state=RunState.FAILED, output="", error="its answer could not be kept")
            settled = await self._persist(partial(self._settles, plain))
        if settled.kept:
            why = ended.reason or ended.error
            self._tell(event_of(ended), claim=ended.claim, run_id=ended.run, reason=why, **settled.facts())
        else:
            self._tell("settle_stale", level="warning", claim=ended.claim, run_id=ended.run)
        self._settled()


def event_of(ended: Ended) -> str:
    if not ended.run:
        return "trigger_given_back" if ended.reason == SHUTDOWN else "trigger_skipped"
    return f"run_{ended.state.value}"


def given_back(held: Held) -> Ended:
    run = held.run
    return Ended(held.claim, run.id if run else "", run.started_at if run else None, reason=SHUTDOWN)


def lease_lost(held: Held) -> Ended:
    return failure(held, PermanentFailure("its lease was lost: this process was away, or could not reach the store"))


def failure(held: Held, error: BaseException, *, permanent: bool = False) -> Ended:
    run = held.run
    return Ended(
        held.claim,
        run.id if run else "",
        run.started_at if run else None,
        RunState.FAILED,
        error=one_line(error),
        permanent=permanent,
    )


def one_line(error: BaseException) -> str:
    """What went wrong, for people."""
    text = " ".join(readable(str(error)).split()) or type(error).__name__
    return text if len(text) <= LONGEST_ERROR else f"{text[: LONGEST_ERROR - 1]}…"


LONGEST_ERROR = 500


def readable(text: str) -> str:
    """Half characters cannot be kept by any store."""
    return text.encode(errors="replace").decode()
