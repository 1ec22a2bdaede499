"""One live scheduler whose handlers act out their plans and report what they see to the model.

Every verb goes through here: the model is asked first what must come of it, then the scheduler does it, and what it
says and does is compared. Handlers report their first step, their last step and each wait in between. Callbacks of the
scheduler swallow exceptions, so nothing here raises: whatever is wrong becomes a complaint.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import trio

from scheduler import (
    Closed,
    End,
    Event,
    Kind,
    LaneStatistics,
    Reason,
    Request,
    Run,
    Scheduler,
    Stopped,
    Ticket,
    WaitRefused,
    open_scheduler,
)
from tests.unit.scheduler.machine import plans
from tests.unit.scheduler.machine.model import FENCED_AFTER_S, TOLD_AFTER_S, Counts, Message, Model, Running, Turn, Wait

if TYPE_CHECKING:
    from tests.unit.scheduler.machine.plans import Plan, Step, Stop

LOG_LINES = 100


class Mishap(Exception):
    """What a handler raises that is told to fail."""


class World:
    scheduler: Scheduler

    def __init__(self, nursery: trio.Nursery) -> None:
        self.complaints: list[str] = []
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self.model = Model(plans.LIMITS, self.complain)
        self.settled = False
        self.left = False  # the block of the scheduler has been left without closing it first
        self.lingering = 0
        self._nursery = nursery
        self._ready = trio.Event()
        self._leaving = trio.Event()
        self._keeper: trio.lowlevel.Task | None = None
        self._by_ticket: dict[int, Message] = {}
        self._arriving: Message | None = None
        self._closed: tuple[int, int] | None = None

    async def open(self) -> None:
        self._nursery.start_soon(self._keep)
        await self._ready.wait()

    async def _keep(self) -> None:
        self._keeper = trio.lowlevel.current_task()
        try:
            async with open_scheduler(
                plans.LIMITS, told_after_s=TOLD_AFTER_S, fenced_after_s=FENCED_AFTER_S
            ) as self.scheduler:
                self.scheduler.observe(self._observe)
                self._ready.set()
                await self._leaving.wait()
                self.sync()
                self.model.close(trio.current_time())
        except* Exception as broken:  # noqa: BLE001 - a broken scheduler is what this test looks for
            self.complain(f"the scheduler broke: {broken.exceptions!r}")

    def leave(self) -> None:
        self.left = True
        self._leaving.set()

    def complain(self, text: str) -> None:
        """Only the first one counts: what follows from it is noise."""
        if self.complaints:
            return
        self.note(f"!! {text}")
        self.complaints.append(text)

    def note(self, text: str) -> None:
        self.log.append(f"{trio.current_time():9.2f}  {text}")

    # ── verbs ────────────────────────────────────────────────────────────────────────────────────────────────────

    def sync(self) -> None:
        """Have the model follow what nobody asks for: windows close by the clock, turns get slots, `close` goes on."""
        self.settled = False
        now = trio.current_time()
        self._sync_closing()
        for talk in self.model.talks.values():
            if talk.window is not None and talk.window.closes_at <= now:
                if self.scheduler.session_statistics(talk.key).buffered == 0:
                    self.model.close_window(talk)
            self.model.follow(talk, self._has_started, now)

    def _sync_closing(self) -> None:
        if self.scheduler.closed and not self.model.closed:
            self._closed = self.model.close(trio.current_time())

    def _has_started(self, turn: Turn) -> bool:
        """The only thing that the model is told about the scheduler's choices: this turn has its slot.

        Asked of the ticket, because events come last; or of the session, for one whose ticket is not there yet.
        """
        ticket = turn.leader.ticket
        if ticket is not None:
            return ticket._run is not None and ticket._run.request is ticket.request
        talk = self.model.talk(turn.leader.key)
        return self.scheduler.session_statistics(talk.key).running > len(talk.runs)

    def schedule(self, plan: Plan, parent: tuple[Running, Run] | None = None) -> Message:
        self.sync()
        message = self.model.message(plan, parent[0] if parent else None)
        self.note(f"{message} arrives in {message.key!r}: {plan!r}")
        talk = self.model.talk(message.key)
        if talk.key not in self.scheduler.sessions:
            talk.throttled = False
            if talk.busy:
                self.complain(f"{talk.key!r} was forgotten while it had {talk}")
        self.model.accept(message, trio.current_time())
        self._arriving = message
        request = Request(
            session=message.key,
            handler=self._handle,
            payload=message,
            lane=plan.lane,
            tenant=f"tenant of {plan.session}",
            sender=plan.sender,
            thread=plan.thread,
            policy=plan.policy,
            context_used=plan.context_used,
            steerable=plan.steerable,
            resumed=plan.resumed,
            on_end=self._ended,
        )
        message.ticket = parent[1].schedule(request) if parent else self.scheduler.schedule(request)
        self._by_ticket[message.ticket.id] = message
        self.sync()
        return message

    def cancel(self, key: str, sender: str | None, *, everything: bool) -> None:
        self.sync()
        talk = self.model.talk(key)
        now = trio.current_time()
        self.note(f"cancel {'all' if everything else 'oldest'} of {sender or 'anybody'} in {key!r}")
        if everything:
            expected = self.model.cancel_all(talk, sender, now)
        else:
            expected = self.model.cancel_oldest(talk, sender, now)
        told = (self.scheduler.cancel_all if everything else self.scheduler.cancel_oldest)(key, sender)
        self._compare(expected, told)

    def _compare(self, expected: Counts, told: Stopped) -> None:
        sums = (told.buffered, told.queued, told.waiting, told.running + told.children)
        rest = (told.stopping, told.finishing, told.left)
        must = (expected.buffered, expected.queued, expected.waiting, expected.cancelled)
        if (*sums, *rest) != (*must, expected.stopping, expected.finishing, expected.left):
            self.complain(f"a cancel said {told}, expected {expected}")
        reached = {request.payload for request in told.reached}
        if reached != {*expected.taken, *expected.ending}:
            self.complain(f"a cancel said it reached {reached}, expected {expected}")

    def flush(self, key: str) -> None:
        self.sync()
        self.note(f"flush {key!r}")
        self.model.close_window(self.model.talk(key))
        self.scheduler.flush(key)

    def resize(self, lane: str, limit: int) -> None:
        self.sync()
        self.note(f"resize {lane!r} to {limit}")
        self.model.resize(lane, limit)
        self.scheduler.lanes.resize(lane, limit)

    def close(self, grace_s: float) -> None:
        self.sync()
        self._nursery.start_soon(self._close, grace_s)

    async def _close(self, grace_s: float) -> None:
        self.sync()
        self.note(f"close within {grace_s} s")
        unstarted = self.model.begin_closing()
        closed = await self.scheduler.close(grace_s)
        self.sync()
        if self._closed is None:
            return
        late, cancelled = self._closed
        abandoned = sum(run.stuck_at is not None and not run.over for run in self.model.runs)
        expected = Closed(cancelled, abandoned, unstarted + late)
        if closed != expected:
            self.complain(f"closing said {closed}, expected {expected}")

    # ── what the scheduler tells ─────────────────────────────────────────────────────────────────────────────────

    def _observe(self, event: Event) -> None:
        if self.complaints:
            return
        if event.kind is Kind.QUEUED and self._arriving is not None:
            self._by_ticket.setdefault(event.ticket, self._arriving)
        leader = self._by_ticket.get(event.ticket)
        self._sync_closing()
        if leader is not None and leader.run is not None:
            self._hear_of(leader.run, event)
        self.sync()
        if event.kind is Kind.STARTED and leader is not None:
            self.note(f"{leader} got a slot: {leader.run}")
            if leader.run is None or leader.run.leader is not leader or leader.run.size != event.detail:
                self.complain(f"{leader} got a slot with {event.detail} messages, expected {self.model.talk(leader.key)}")

    def _hear_of(self, run: Running, event: Event) -> None:
        if event.kind in (Kind.CANCELLING, Kind.STUCK, Kind.FENCED):
            self.note(f"{run}: {event.kind}, {event.detail}")
        if event.kind is Kind.CANCELLING:
            self._cancelling(run, event)
        elif event.kind is Kind.STUCK:
            self.model.get_stuck(run, event.at)
        elif event.kind is Kind.FENCED:
            self.model.fence(run, event.at)

    def _cancelling(self, run: Running, event: Event) -> None:
        """Known before, except for a timeout: that comes by the clock."""
        timeout_s = run.leader.plan.policy.timeout_s
        if run.reason is None and event.detail is Reason.TIMEOUT and timeout_s is not None:
            if run.sealed or event.at < run.started_at + timeout_s:
                self.complain(f"{run} was stopped for its time limit before that was up, or while sealed")
            self.model.time_out(run, event.at)
        if run.reason is not event.detail:
            self.complain(f"{run} was cancelled: {event.detail}, expected {run.reason}")

    def _ended(self, ticket: Ticket) -> None:
        if self.complaints:
            return
        self.sync()
        message: Message = ticket.request.payload
        outcome = ticket.outcome
        message.told += 1
        if outcome is None or message.told > 1:
            self.complain(f"{message} was told {message.told} times that it had ended: {outcome}")
            return
        self.note(f"{message} ended: {outcome.end}, {outcome.reason}")
        if (outcome.end, outcome.reason) != message.due:
            self.complain(f"{message} in {message.place} ended: {outcome}, expected {message.due}")
        if outcome.end is End.DONE and (message.run is None or outcome.value != message.run.number):
            self.complain(f"{message} of {message.run} was given the value {outcome.value}")
        self._think_after(message)

    def _think_after(self, message: Message) -> None:
        then = message.plan.then
        if isinstance(then, plans.Stop):
            self._stop(then, message.key)
        elif then is not None:
            self.schedule(then)

    def _stop(self, step: Stop, own: str) -> None:
        self.cancel(step.session or own, None, everything=step.everything)

    # ── handlers ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _handle(self, live: Run) -> int:
        if self.complaints:
            return 0
        self.sync()
        run = live.request.payload.run
        if run is None:
            self.complain(f"{live.request.payload} began without a slot")
            return 0
        self.note(f"{run} begins")
        self.model.begin(run, [request.payload for request in live.requests])
        try:
            await self._act(run, live)
        except Exception:
            run.raised = True
            raise
        finally:
            self.sync()
            self.note(f"{run} is over")
            self.model.finish(run)
        return run.number

    async def _act(self, run: Running, live: Run) -> None:
        plan = run.leader.plan
        try:
            for step in () if self.complaints else plan.script:
                await self._do(step, run, live)
        except trio.Cancelled:
            if plan.unwind_s:
                with trio.CancelScope(shield=True):
                    await trio.sleep(plan.unwind_s)
            raise

    async def _do(self, step: Step, run: Running, live: Run) -> None:
        match step:
            case plans.Pause(checkpoints):
                for _ in range(checkpoints):
                    await trio.lowlevel.checkpoint()
            case plans.Sleep(seconds):
                await trio.sleep(seconds)
            case plans.Deaf(seconds):
                with trio.CancelScope(shield=True):
                    await trio.sleep(seconds)
            case plans.Fail():
                raise Mishap
            case plans.Steer():
                self._take_steering(run, live)
            case plans.Seal():
                self._seal(run, live)
            case plans.Stop():
                self._stop(step, run.key)
            case plans.Await(back):
                await self._wait(run, self.model.messages[-1 - back % len(self.model.messages)])
            case _:
                await self._nest(step, run, live)

    async def _nest(self, step: Step, run: Running, live: Run) -> None:
        match step:
            case plans.Nest(child):
                await self._wait(run, self.schedule(child, (run, live)))
            case plans.Hurry(child, patience_s):
                with trio.move_on_after(patience_s) as patience:
                    await self._wait(run, self.schedule(child, (run, live)), patience)
            case plans.Detach(child):
                self.schedule(child, (run, live))
            case plans.Linger(child):
                self.lingering += 1
                self._nursery.start_soon(self._linger, child, run, live)
            case plans.Twins(first, second, lag_s):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._later, 0.0, first, run, live)
                    nursery.start_soon(self._later, lag_s, second, run, live)

    async def _later(self, lag_s: float, child: Plan, run: Running, live: Run) -> None:
        await trio.sleep(lag_s)
        await self._wait(run, self.schedule(child, (run, live)))

    async def _linger(self, child: Plan, run: Running, live: Run) -> None:
        try:
            await self._wait(run, self.schedule(child, (run, live)))
            self.schedule(child, (run, live))
        finally:
            self.lingering -= 1

    def _take_steering(self, run: Running, live: Run) -> None:
        self.sync()
        expected = self.model.steer(run)
        taken = [request.payload for request in live.take_steering()]
        self.note(f"{run} takes {taken}")
        if taken != expected:
            self.complain(f"{run} took {taken}, expected {expected}")

    def _seal(self, run: Running, live: Run) -> None:
        self.sync()
        run.sealed = run.reason is None or run.sealed
        self.note(f"{run} seals")
        if live.seal() is not run.sealed:
            self.complain(f"{run} sealed: {live.sealed}, expected {run.sealed}")

    async def _wait(self, run: Running, message: Message, patience: trio.CancelScope | None = None) -> None:
        """Wait for a message as this run. Refused exactly where the wait could not end."""
        self.sync()
        if message.ticket is None:
            self.complain(f"{message} has no ticket")
            return
        if message.ticket.outcome is not None or run.over:
            await message.ticket.wait()
            return
        wait = Wait(message, patience)
        certain = self.model.waits_in_circle(run, message, broken_off=False)
        possible = self.model.waits_in_circle(run, message, broken_off=True)
        self.note(f"{run} waits for {message}{', to be refused' if certain else ''}")
        self.model.lend(run, wait)
        try:
            await message.ticket.wait()
        except WaitRefused:
            self.model.take_back(run, wait)
            if not possible:
                self.complain(f"{run} may not wait for {message}")
        except BaseException:
            self._go_on(run, wait)
            raise
        else:
            self._go_on(run, wait)
            if certain:
                self.complain(f"{run} was let wait for {message}, which waits for it")

    def _go_on(self, run: Running, wait: Wait) -> None:
        self.sync()
        self.note(f"{run} has waited for {wait.message}")
        self.model.regain(run, wait)

    # ── invariants ───────────────────────────────────────────────────────────────────────────────────────────────

    async def check(self) -> None:
        settled = self.settled
        self.sync()
        self.settled = settled
        if not self.complaints:
            self._check_sessions()
            self._check_lanes()
            if settled:
                self.model.settle()
                self._check_rest()
        if self.complaints:
            raise AssertionError("\n".join(["", *self.complaints, "", "What happened, last things last:", *self.log]))

    def _check_sessions(self) -> None:
        busy = {key for key, talk in self.model.talks.items() if talk.busy}
        if busy != set(self.scheduler.sessions):
            self.complain(f"sessions kept: {sorted(self.scheduler.sessions)}, busy: {sorted(busy)}")
        for key in sorted(busy):
            talk, told = self.model.talks[key], self.scheduler.session_statistics(key)
            expected = {
                "limit": talk.limit,
                "throttled": talk.throttled,
                "buffered": talk.buffered,
                "waiting": talk.waiting,
                "steering": talk.steering,
                "running": len(talk.runs),
                "stopping": sum(run.reason is not None for run in talk.runs),
                "children": len(talk.children) + sum(len(run.children) for run in talk.runs),
            }
            for name, value in expected.items():
                if getattr(told, name) != value:
                    self.complain(f"{key!r} has {name} = {getattr(told, name)}, expected {value}: {talk}")

    def _check_lanes(self) -> None:
        told = self.scheduler.statistics()
        if told.callback_errors:
            self.complain(f"{told.callback_errors} callbacks raised")
        for lane in told.lanes:
            waiting = sum(turn.leader.lane == lane.name for talk in self.model.talks.values() for turn in talk.queue)
            stuck = sum(run.lane == lane.name and run.stuck_at is not None and not run.over for run in self.model.runs)
            if (lane.waiting, lane.stuck) != (waiting, stuck):
                self.complain(f"{lane}: expected {waiting} waiting and {stuck} stuck")

    def _check_rest(self) -> None:
        """With every task blocked nothing is on its way: slots, tasks and ends must be exactly where they belong."""
        now = trio.current_time()
        for message in self.model.messages:
            if message.due is not None and message.told != 1:
                self.complain(f"{message} is over, but was told {message.told} times")
        for run in self.model.runs:
            if run.over:
                continue
            if not run.begun:
                self.complain(f"{run} has a slot but does not begin")
            if run.overdue(now) and not self.left:
                self.complain(f"{run} ignores its cancellation since {run.watched_at}, nothing is done about it")
        for talk in self.model.talks.values():
            if talk.window is not None and talk.window.closes_at <= now:
                self.complain(f"the window of {talk.key!r} is open since {talk.window.closes_at}")
        for lane in self.scheduler.statistics().lanes:
            self._check_lane_at_rest(lane)
        self._check_tasks()

    def _check_lane_at_rest(self, lane: LaneStatistics) -> None:
        here = [run for run in self.model.runs if run.lane == lane.name and not run.over]
        held = sum(run.slot for run in here)
        unsure = sum(run.slot_unsure for run in here)
        returning = [run for run in here if run.in_line]
        parked = sum(run.parked for run in here)
        if not held <= lane.active <= held + unsure:
            self.complain(f"{lane.name!r} has {lane.active} active, expected {held} to {held + unsure}: {here}")
        if not parked <= lane.parked <= parked + unsure:
            self.complain(f"{lane.name!r} has {lane.parked} parked, expected {parked} to {parked + unsure}: {here}")
        if lane.active >= self.model.limits[lane.name] or self.model.closed:
            return
        if returning:
            self.complain(f"{lane.name!r} has a free slot that {returning} waits for")
        for talk in self.model.talks.values():
            if talk.ready and talk.queue[0].leader.lane == lane.name:
                self.complain(f"{lane.name!r} has a free slot that {talk.queue[0].messages} waits for")

    def _check_tasks(self) -> None:
        if self.left or self._keeper is None:
            return
        tasks = sum(len(nursery.child_tasks) for nursery in self._keeper.child_nurseries)
        alive = sum(not run.over for run in self.model.runs)
        if tasks - alive not in ((0,) if self.model.closed and not self.scheduler.sessions else (1,)):
            self.complain(f"{tasks} tasks for {alive} runs")

    def check_end(self) -> None:
        """Nothing is left of anything."""
        for message in self.model.messages:
            if message.told != 1 or message.ticket is None or message.ticket.outcome is None:
                self.complain(f"{message} never ended: it is in {message.place}, {message.run}")
        for lane in self.scheduler.statistics().lanes:
            if lane.active or lane.parked or lane.waiting or lane.stuck:
                self.complain(f"at the end: {lane}")
        if self.scheduler.sessions or len(self.scheduler.timers):
            self.complain(f"at the end: {self.scheduler.sessions}, {len(self.scheduler.timers)} timers")
        if self.lingering:
            self.complain(f"{self.lingering} tasks still wait for a message")

    @property
    def quiet(self) -> bool:
        """Every message has ended and every handler is over."""
        alive = any(not run.over for run in self.model.runs)
        return not alive and not self.lingering and all(message.told for message in self.model.messages)


