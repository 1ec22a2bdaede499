"""One live scheduler and the model beside it.

Every verb goes through here: the model is asked first what must come of it, then the scheduler does it, and what it
says and does is compared. Callbacks of the scheduler swallow exceptions, so nothing here raises: whatever is wrong
becomes a complaint.
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
    Reason,
    Request,
    Run,
    Scheduler,
    Stopped,
    Ticket,
    open_scheduler,
)
from tests.unit.scheduler.machine import plans
from tests.unit.scheduler.machine.acting import Actor
from tests.unit.scheduler.machine.model import Model
from tests.unit.scheduler.machine.parts import (
    FENCED_AFTER_S,
    HAIR_S,
    TOLD_AFTER_S,
    Counts,
    Message,
    Place,
    Running,
    Turn,
)

if TYPE_CHECKING:
    from tests.unit.scheduler.machine.plans import Plan, Stop

LOG_LINES = 100


class World:
    scheduler: Scheduler

    def __init__(self, nursery: trio.Nursery) -> None:
        self.complaints: list[str] = []
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self.model = Model(plans.LIMITS, self.complain)
        self.settled = False
        self.left = False  # the block of the scheduler has been left without closing it first
        self.lingering = 0  # tasks that handlers have left behind
        self.nursery = nursery
        self.actor = Actor(self)
        self._ready = trio.Event()
        self._leaving = trio.Event()
        self._keeper: trio.lowlevel.Task | None = None
        self._by_ticket: dict[int, Message] = {}
        self._arriving: Message | None = None
        self._closed: tuple[int, int] | None = None

    async def open(self) -> None:
        self.nursery.start_soon(self._keep)
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

    @property
    def tasks(self) -> int:
        """How many tasks the scheduler has: its workers, and the one with the timers."""
        nurseries = self._keeper.child_nurseries if self._keeper is not None else []
        return sum(len(nursery.child_tasks) for nursery in nurseries)

    @property
    def quiet(self) -> bool:
        """Every message has ended and every handler is over."""
        alive = any(not run.over for run in self.model.runs)
        return not alive and not self.lingering and all(message.told for message in self.model.messages)

    def leave(self) -> None:
        """Leave the block of the scheduler as it is, without closing it first."""
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
            due = talk.window is not None and talk.window.closes_at <= now and not talk.steps
            if due and self.scheduler.session_statistics(talk.key).buffered == 0:
                self.model.close_window(talk)
            self.model.follow(talk, self._has_started, now)

    def _sync_closing(self) -> None:
        if self.scheduler.closed and not self.model.closed:
            self._closed = self.model.close(trio.current_time())

    def _has_started(self, turn: Turn) -> bool:
        """The only thing that the model is told about the scheduler's choices: this turn has its slot.

        Asked of the ticket, because events come last. One that is just arriving has no ticket yet: it has started if
        more runs have than the others can account for.
        """
        leader = turn.leader
        if leader.ticket is not None:
            return leads_a_run(leader)
        talk = self.model.talk(leader.key)
        started = self.scheduler.session_statistics(talk.key).running - len(talk.runs)
        unknown = (Place.NEW, Place.WINDOW, Place.QUEUE)
        others = sum(m.key == talk.key and m.place in unknown and leads_a_run(m) for m in self.model.messages)
        return started > others

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
            handler=self.actor.handle,
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
        self.nursery.start_soon(self._close, grace_s)

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
                self.complain(
                    f"{event.detail} from {leader} on got a slot, not the head of {self.model.talk(leader.key)}"
                )

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
            if run.sealed or event.at < run.started_at + timeout_s - HAIR_S:
                self.complain(f"{run} was stopped for its time limit before that was up, or while sealed")
            self.model.time_out(run, event.at)
        if run.reason is not event.detail:
            self.complain(f"{run} was cancelled: {event.detail}, expected {run.reason}")

    def _ended(self, ticket: Ticket) -> None:
        if self.complaints:
            return
        self.sync()
        message: Message = ticket.request.payload
        message.ticket = ticket
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
            self.stop(then, message.key)
        elif then is not None:
            self.schedule(then)

    def stop(self, step: Stop, own: str) -> None:
        self.cancel(step.session or own, None, everything=step.everything)


def leads_a_run(message: Message) -> bool:
    ticket = message.ticket
    return ticket is not None and ticket._run is not None and ticket._run.request is ticket.request
