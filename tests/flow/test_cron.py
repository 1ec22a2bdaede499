"""Scheduling in a chat: what is asked for is told, fired, answered and kept, and the conversation does not notice."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from cron import report
from cron.jobs import Wish
from cron.service import CronService
from gateway.app import look_around
from gateway.protocols import ChannelError
from store.jobs import Delivery, JobStatus, RunState
from store.memory import MemoryStore
from store.protocols import OUTBOX, StoreError
from store.records import CHAT_LEASE, Note, Reply, SessionKey
from tests.flow.edges import FakeChannel, Scripted, TroubledStore
from tests.flow.world import Told, World, cron_parts, incoming, open_world, settings_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from store.jobs import Job, Run
    from store.protocols import MessageStore

BEGINNING = datetime(2026, 3, 2, 12, tzinfo=UTC)  # a Monday
HERE = SessionKey("default", "main", "fake", "bot", "dm")


def whole_store() -> MemoryStore:
    return MemoryStore(lambda: BEGINNING + timedelta(seconds=trio.current_time()))


def chat_side(whole: MemoryStore) -> MessageStore:
    return whole.messages(whole.grant(CHAT_LEASE, "flow", timedelta(days=36_500)))


class CronWorld:
    """A gateway with cron at work."""

    def __init__(self, world: World, whole: MemoryStore, told: Told) -> None:
        self.world = world
        self.whole = whole
        self.told = told
        self.agent = world.agent
        self.ask = world.ask
        self.say = world.say
        self.start = world.start
        self.replies = world.replies

    @property
    def service(self) -> CronService:
        assert self.world.gateway.timetable is not None
        return self.world.gateway.timetable.service

    async def job(self, number: int = 1) -> Job:
        job = await self.whole.cron.job("default", number)
        assert job is not None
        return job

    async def runs(self, number: int = 1) -> list[Run]:
        """Oldest first."""
        return list(reversed(await self.whole.cron.runs("default", job=number)))

    async def add(self, when: str, message: str, **wish: object) -> Job:
        assert self.world.gateway.timetable is not None
        tenant, agent = str(wish.pop("tenant", "default")), str(wish.pop("agent", "main"))
        chat = replace(HERE, tenant=tenant)
        made = Wish(tenant, agent, message, when, deliver_to=chat, **wish)  # type: ignore[arg-type]
        return await self.world.gateway.timetable.jobs.create(made)


@asynccontextmanager
async def cron_world(
    whole: MemoryStore | None = None,
    agent: Scripted | None = None,
    channel: FakeChannel | None = None,
    store: MessageStore | None = None,
    **variables: object,
) -> AsyncIterator[CronWorld]:
    whole, told = whole or whole_store(), Told()
    parts = cron_parts(whole, told, settings_of(**variables))
    async with open_world(store or chat_side(whole), agent, channel, parts, **variables) as world:
        await wait_all_tasks_blocked()
        yield CronWorld(world, whole, told)


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_was_understood_is_said_at_once(autojump_clock: MockClock) -> None:
    """Words, the next three times and their zone, so that a misunderstanding shows before it matters. (A17, A18)"""
    async with cron_world(cron_timezone="Europe/Berlin") as here:
        assert (await here.ask("/schedule every monday at 09:00: the week")).splitlines() == [
            "Scheduled #1: At 09:00 on Mondays (Europe/Berlin)",
            "Next: Mon 2026-03-09 09:00, Mon 2026-03-16 09:00, Mon 2026-03-23 09:00 (Europe/Berlin)",
            "Message: the week",
            "/cron cancel 1 takes it back.",
        ]
        job = await here.job()
        assert (job.spec.deliver_to, job.spec.session, job.spec.owner, job.spec.agent) == (HERE, "fresh", "ann", "main")


async def test_a_job_fires_and_its_answer_comes_to_the_chat(autojump_clock: MockClock) -> None:
    """At its time, once, without anybody asking again; a one-shot is over then. (L14)"""
    async with cron_world() as here:
        await here.ask("/schedule in 10 minutes: tea")
        await trio.sleep(599)
        assert "re: tea" not in here.replies()
        await trio.sleep(2)
        assert here.replies()[-1] == "re: tea"
        await trio.sleep(3600)
        assert here.replies().count("re: tea") == 1
        assert (await here.job()).status is JobStatus.COMPLETED
        (run,) = await here.runs()
        assert (run.state, run.delivery) == (RunState.SUCCEEDED, Delivery.DELIVERED)


async def test_the_lines_of_a_message_stay_lines(autojump_clock: MockClock) -> None:
    """What comes after the colon is the message as it was written."""
    async with cron_world() as here:
        await here.ask("/Schedule@goclaw_bot in 1 minute: first\n  second: 2\nthird ")
        assert (await here.job()).spec.message == "first\n  second: 2\nthird"


async def test_the_list_and_the_help(autojump_clock: MockClock) -> None:
    """`/cron` alone lists, `/schedule` alone tells how it is said, an empty list gives an example."""
    async with cron_world() as here:
        assert (await here.ask("/cron")).startswith("Nothing is scheduled. For instance: /schedule ")
        await here.ask("/schedule every 15 minutes: look")
        line = "#1 Every 15 minutes; next Mon 2026-03-02 12:15. look"
        assert [await here.ask(text) for text in ("/cron", "/cron list", "/schedule list")] == [line] * 3
        told = await here.ask("/schedule")
        assert "/schedule <phrase>: <message>" in told
        assert "every 15 minutes" in told


async def test_commands_of_one_batch_keep_their_order(autojump_clock: MockClock) -> None:
    """The list shows what was asked for before it and not what comes after. (14)"""
    async with cron_world() as here:
        await here.say("/schedule in 1 hour: a", "/cron", "/schedule in 2 hours: b", "/cron cancel 1", "/cron")
        await wait_all_tasks_blocked()
        first, listed, second, cancelled, rest = here.replies()
        assert first.startswith("Scheduled #1")
        assert second.startswith("Scheduled #2")
        assert cancelled == "Cancelled #1: it will not run again."
        assert (listed[:2], len(listed.splitlines()), rest[:2], len(rest.splitlines())) == ("#1", 1, "#2", 1)


async def test_text_before_a_schedule_is_not_overtaken(autojump_clock: MockClock) -> None:
    """What still waited for more text starts before the command is carried out. (14)"""
    async with cron_world() as here:
        await here.say("hello")
        assert here.agent.started == []
        assert (await here.ask("/schedule in 1 hour: x")).startswith("Scheduled #1")
        assert here.agent.started == [("hello",)]


@pytest.mark.parametrize(
    ("text", "said", "lists_forms"),
    [
        ("/schedule nonsense: x", 'Unrecognised schedule phrase: "nonsense"', True),
        ("/schedule every monday at 25:00: x", "invalid HH:MM", True),
        ("/schedule on 2020-01-01: x", "Scheduled time is in the past", False),
        ("/schedule in 1 hour:", "Empty phrase or message", False),
        ("/schedule cancel", "Usage: /schedule cancel <id>", False),
        ("/cron why x", "Usage: /cron why <id>", False),
        ("/cron pause 7", "There is no job #7. /cron list shows", False),
        ("/cron run 7", "There is no job #7. /cron list shows", False),
        (f"/schedule in 1 hour: {'x' * 20_000}", "more than 16,000", False),
    ],
)
async def test_what_cannot_be_meant_is_told_and_nothing_is_kept(
    autojump_clock: MockClock, text: str, said: str, lists_forms: bool
) -> None:
    """The reason first, and for a bad phrase the list of what is understood. (A16)"""
    async with cron_world() as here:
        answer = await here.ask(text)
        assert said in answer.splitlines()[0]
        assert ("Accepted forms:" in answer) == lists_forms
        assert await here.whole.cron.jobs("default") == ()


async def test_another_tenants_job_is_not_there(autojump_clock: MockClock) -> None:
    """Its number means nothing here: not found, not listed, not stopped. (P11)"""
    whole = MemoryStore(lambda: BEGINNING + timedelta(seconds=trio.current_time()), ("default", "other"))
    async with cron_world(whole) as here:
        await here.add("every 15 minutes", "secret", tenant="other")
        for verb in ("cancel", "pause", "resume", "run", "why"):
            assert await here.ask(f"/cron {verb} 1") == "There is no job #1. /cron list shows those that there are."
        assert "secret" not in await here.ask("/cron")
        job = await whole.cron.job("other", 1)
        assert job is not None
        assert job.status is JobStatus.ACTIVE


async def test_without_cron_it_is_said(autojump_clock: MockClock) -> None:
    """A gateway that fires nothing does not promise to. (A2)"""
    async with open_world() as world:
        assert await world.ask("/schedule in 1 hour: x") == (
            "Nothing can be scheduled here: this gateway runs without cron."
        )


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_pause_resume_and_cancel(autojump_clock: MockClock) -> None:
    """A paused job is silent, a resumed one goes on, a cancelled one is gone; each is said. (A17)"""
    async with cron_world() as here:
        await here.ask("/schedule every 10 minutes: tea")
        assert await here.ask("/cron pause #1") == "Paused #1. /cron resume 1 lets it go on."
        await trio.sleep(3600)
        assert "re: tea" not in here.replies()
        assert (await here.ask("/schedule resume 1")).startswith("Job #1 goes on. Next: Mon 2026-03-02 13:10")
        await trio.sleep(601)
        assert here.replies().count("re: tea") == 1
        assert await here.ask("/cron cancel 1") == "Cancelled #1: it will not run again."
        await trio.sleep(3600)
        assert here.replies().count("re: tea") == 1
        assert await here.ask("/cron cancel 1") == "Cancelled #1: it will not run again."
        assert await here.ask("/cron pause 1") == "Job #1 is over (cancelled). /schedule makes a new one."


async def test_a_run_that_is_asked_for_leaves_the_schedule_alone(autojump_clock: MockClock) -> None:
    """Run now runs now, on a lane of one too, and the next time stays what it was. (J1)"""
    async with cron_world(lane_cron=1) as here:
        await here.ask("/schedule every day at 09:00: tea")
        planned = (await here.job()).next_at
        assert (await here.ask("/cron run 1")).startswith("Job #1 runs as soon as there is a free slot")
        assert here.replies()[-1] == "re: tea"
        assert (await here.job()).next_at == planned


async def test_run_now_while_the_lane_is_full(autojump_clock: MockClock) -> None:
    """It is answered at once, waits for the slot, and nothing locks. (J1)"""
    async with cron_world(lane_cron=1) as here:
        await here.ask("/schedule every day at 09:00: long one")
        await here.ask("/schedule every day at 10:00: tea")
        await here.ask("/cron run 1")
        await here.ask("/cron run 2")
        await here.ask("/cron run 1")
        await trio.sleep(200)
        assert [one for one in here.replies() if one.startswith("re:")] == [
            "re: long one",
            "re: tea",
            "re: long one",
        ]


async def test_why_tells_the_last_and_the_next_run(autojump_clock: MockClock) -> None:
    """Both with their reason, before and after a run. (A17)"""
    async with cron_world() as here:
        await here.ask("/schedule every 15 minutes: look")
        assert (await here.ask("/cron why 1")).splitlines() == [
            "Job #1: Every 15 minutes",
            "It has not run yet.",
            "Next run: Mon 2026-03-02 12:15 (UTC), because that is its interval after the run before.",
        ]
        await trio.sleep(901)
        _, last, following = (await here.ask("/cron why 1")).splitlines()
        assert last.startswith("Last run: Mon 2026-03-02 12:15, because that is its interval")
        assert "succeeded" in last
        assert "was delivered" in last
        assert following.startswith("Next run: Mon 2026-03-02 12:30 (UTC)")


# ── once, and kept ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_second_delivery_makes_no_second_job(autojump_clock: MockClock) -> None:
    """The same message again is the same job, also when it comes in one batch with the first. (lesson 15)"""
    async with cron_world() as here:
        command = incoming("/schedule in 1 hour: x", number="7")
        await here.world.gateway.receive([command, command])
        await wait_all_tasks_blocked()
        await here.world.gateway.receive([command])
        await wait_all_tasks_blocked()
        assert len(await here.whole.cron.jobs("default")) == 1
        assert len(here.replies()) == 1


@pytest.mark.parametrize("command", ["/schedule in 1 hour: x", "/cron run 1"])
async def test_a_process_that_dies_over_a_command_carries_it_out_once(autojump_clock: MockClock, command: str) -> None:
    """Dead between the job and the answer: after the next start it is answered, and there is still one of it. (P1)"""
    whole = whole_store()
    if command == "/cron run 1":
        async with cron_world(whole) as here:
            await here.ask("/schedule on 2027-01-01: x")
    stuck = TroubledStore(chat_side(whole))
    with trio.move_on_after(5):
        async with cron_world(whole, store=stuck) as here:
            stuck.held["begin"] = trio.Event()
            await here.say(command)
            await trio.sleep_forever()
    async with cron_world(whole) as here:
        await trio.sleep(1)
        assert len(here.replies()) == (1 if command.startswith("/schedule") else 1 + here.replies().count("re: x"))
        assert len(await whole.cron.jobs("default")) == 1
        triggers = await whole.cron.triggers("default", 1)
        assert len(triggers) == (1 if command.startswith("/schedule") else 2)


async def test_a_time_that_passed_before_the_command_was_carried_out(autojump_clock: MockClock) -> None:
    """Accepted at noon for one o'clock, carried out at two: it is made, and runs at once, late but not lost. (J4)"""
    whole = whole_store()
    await chat_side(whole).accept([incoming("/schedule in 1 hour: tea")])
    await trio.sleep(7200)
    async with cron_world(whole) as here:
        await trio.sleep(5)
        assert here.replies()[0].startswith("Scheduled #1")
        assert here.replies()[-1] == "re: tea"


async def test_jobs_outlive_the_process(autojump_clock: MockClock) -> None:
    """What came due while nobody was there runs once, the rest goes on. (A1, J4-J6, 25)"""
    whole = whole_store()
    async with cron_world(whole) as here:
        await here.ask("/schedule every hour: tea")
        await here.ask("/schedule in 2 hours: once")
    await trio.sleep(5 * 3600)
    async with cron_world(whole) as here:
        await trio.sleep(60)
        assert sorted(here.replies()) == ["re: once", "re: tea"]
        await trio.sleep(3600)
        assert here.replies().count("re: tea") == 2


# ── beside the conversation ──────────────────────────────────────────────────────────────────────────────────────────


async def test_a_full_cron_lane_does_not_delay_the_chat(autojump_clock: MockClock) -> None:
    """A job that takes a minute holds its own lane only; messages and commands are answered at once. (29, L3)"""
    async with cron_world(lane_cron=1, lane_main=1) as here:
        await here.ask("/schedule in 1 minute: long job")
        await here.ask("/schedule in 1 minute: second job")
        await trio.sleep(62)
        assert here.agent.started == [("long job",)]
        await here.start("hello")
        assert here.replies()[-1] == "re: hello"
        assert (await here.ask("/cron")).count("\n") == 1
        await trio.sleep(60)
        assert here.replies()[-2:] == ["re: long job", "re: second job"]


async def test_a_full_chat_does_not_delay_a_job(autojump_clock: MockClock) -> None:
    """Jobs have a lane of their own. (L3)"""
    async with cron_world(lane_main=1) as here:
        await here.ask("/schedule in 1 minute: tea")
        await trio.sleep(50)
        await here.start("long talk")
        await trio.sleep(15)
        assert here.replies()[-1] == "re: tea"
        assert here.agent.finished == [("tea",)]


@pytest.mark.parametrize("stop", ["/stop", "/stopall"])
async def test_a_stop_in_a_chat_does_not_stop_its_jobs(autojump_clock: MockClock, stop: str) -> None:
    """A run that stands alone is nobody's conversation; the chat is idle and says so."""
    async with cron_world() as here:
        await here.ask("/schedule in 1 minute: long job")
        await trio.sleep(70)
        assert not here.world.gateway.busy
        assert await here.ask(stop) == "Nothing to stop: nothing runs or waits here."
        await trio.sleep(60)
        assert here.replies()[-1] == "re: long job"


async def test_a_stop_reaches_a_job_that_talks_in_the_chat(autojump_clock: MockClock) -> None:
    """Its run belongs to the conversation: it is stopped by a person, not retried, and the job goes on."""
    async with cron_world() as here:
        await here.add("every 1 hour", "long job", session="chat")
        await trio.sleep(3610)
        assert await here.ask("/stop") == "Stopped 1 run."
        await trio.sleep(600)
        (run,) = await here.runs()
        assert run.state is RunState.CANCELLED
        assert (await here.job()).status is JobStatus.ACTIVE
        await here.start("hello")
        assert here.replies()[-1] == "re: hello"


async def test_a_job_in_the_chat_and_a_message_take_turns(autojump_clock: MockClock) -> None:
    """One conversation, one run at a time, and the transcript has both. (P2)"""
    async with cron_world() as here:
        await here.add("in 1 minute", "long job", session="chat")
        await trio.sleep(65)
        await here.start("long talk")
        assert here.agent.most["dm"] == 1
        await trio.sleep(120)
        assert here.replies()[-2:] == ["re: long job", "re: long talk"]
        assert here.agent.most["dm"] == 1
        assert [line.said.text for line in await here.whole.newest(HERE, 9)] == [
            "long job",
            "re: long job",
            "long talk",
            "re: long talk",
        ]


async def test_a_job_whose_message_is_a_command_makes_no_job(autojump_clock: MockClock) -> None:
    """Inside a run it is only text: nothing schedules itself. (N1, 39)"""
    async with cron_world() as here:
        await here.ask("/schedule every 1 minute: /schedule every 1 minute: again")
        await trio.sleep(600)
        assert len(await here.whole.cron.jobs("default")) == 1
        assert len(await here.runs()) in (9, 10)


async def test_an_answer_that_another_gateway_left_is_sent(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may be carried out where nobody sends: the word from the store is enough. (L15)"""
    whole = whole_store()
    words, heard = trio.open_memory_channel[str](1)

    @asynccontextmanager
    async def listen() -> AsyncIterator[AsyncIterator[str]]:
        yield heard

    async with cron_world(whole) as here, trio.open_nursery() as nursery:
        reply = Reply(next(whole.ids), Note(HERE, "from afar"), ())
        whole.outbox[reply.id] = reply
        monkeypatch.setattr(whole, "listen", listen)
        nursery.start_soon(look_around, whole, here.world.gateway)
        await wait_all_tasks_blocked()
        assert here.replies() == []
        words.send_nowait(OUTBOX)
        await wait_all_tasks_blocked()
        assert here.replies() == ["from afar"]
        nursery.cancel_scope.cancel()


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_failing_job_is_tried_again_and_then_told(autojump_clock: MockClock) -> None:
    """Four attempts, one message, and the one-shot has failed, not vanished. (L16, J4)"""
    async with cron_world() as here:
        await here.ask("/schedule in 1 minute: fail")
        await trio.sleep(300)
        assert len(await here.runs()) == 4
        assert here.replies()[1:] == [
            "Job #1 failed after 4 attempts: it went wrong. It will not run again; /schedule makes a new one."
        ]
        assert (await here.job()).status is JobStatus.FAILED


async def test_a_run_that_takes_too_long_is_ended(autojump_clock: MockClock) -> None:
    """Its time counts from its slot; the chat is told. (3)"""
    async with cron_world(cron_run_timeout=10, cron_max_retries=0) as here:
        await here.ask("/schedule in 1 minute: long job")
        await trio.sleep(80)
        (run,) = await here.runs()
        assert run.state is RunState.TIMEOUT
        assert "took longer than 10 s" in here.replies()[-1]


async def test_a_missing_agent_pauses_its_job(autojump_clock: MockClock) -> None:
    """It is told once and not tried again and again. (A23)"""
    async with cron_world() as here:
        await here.add("every 10 minutes", "x", agent="nobody")
        await trio.sleep(3600)
        job = await here.job()
        assert (job.status, len(await here.runs())) == (JobStatus.PAUSED, 1)
        assert here.replies() == [
            'Job #1 failed: there is no agent "nobody". It is paused; /cron resume 1 when that is mended.'
        ]


async def test_an_answer_that_cannot_be_delivered_is_no_failed_run(autojump_clock: MockClock) -> None:
    """The run succeeded, its delivery did not: both are told apart, and nothing runs again for it. (37, 38)"""
    channel = FakeChannel()
    async with cron_world(channel=channel) as here:
        await here.ask("/schedule in 1 minute: tea")
        channel.refuse["dm"] = [ChannelError("blocked by the person", retriable=False)]
        await trio.sleep(300)
        (run,) = await here.runs()
        assert (run.state, run.delivery, run.delivery_error) == (
            RunState.SUCCEEDED,
            Delivery.FAILED,
            "blocked by the person",
        )
        assert (await here.job()).status is JobStatus.COMPLETED


async def test_an_answer_for_a_channel_that_is_not_connected(autojump_clock: MockClock) -> None:
    """It is not called delivered: it waits for a start that connects the channel. (37)"""
    async with cron_world() as here:
        assert here.world.gateway.timetable is not None
        elsewhere = SessionKey("default", "main", "pigeon", "", "loft")
        wish = Wish("default", "main", "tea", "in 1 minute", deliver_to=elsewhere)
        await here.world.gateway.timetable.jobs.create(wish)
        await trio.sleep(61)
        (run,) = await here.runs()
        assert run.delivery is Delivery.WAITING
        await here.world.gateway.drained()  # nobody waits for it
    loft = FakeChannel("pigeon")
    async with cron_world(here.whole, channel=loft) as here:
        await here.world.gateway.drained()
        (run,) = await here.runs()
        assert (run.delivery, loft.replies("loft")) == (Delivery.DELIVERED, ["re: tea"])


async def test_a_shutdown_gives_runs_back(autojump_clock: MockClock) -> None:
    """After the grace the run ends, costs no attempt, and begins anew at the next start. (P1)"""
    whole = whole_store()
    async with cron_world(whole, shutdown_grace=10) as here:
        await here.ask("/schedule in 1 minute: long job")
        await trio.sleep(65)
        before = trio.current_time()
        closing = here
    assert trio.current_time() - before < 16
    assert "runs_given_back" in closing.told.names
    async with cron_world(whole) as here:
        await trio.sleep(70)
        assert here.replies() == ["re: long job"]
        trigger = (await whole.cron.triggers("default", 1))[0]
        assert trigger.attempt == 1


async def test_a_shutdown_lets_runs_finish_within_the_grace(autojump_clock: MockClock) -> None:
    """What is nearly done is done, and its answer still goes out."""
    channel = FakeChannel()
    async with cron_world(channel=channel, shutdown_grace=100) as here:
        await here.ask("/schedule in 1 minute: long job")
        await trio.sleep(65)
    assert channel.replies()[-1] == "re: long job"


async def test_leaving_does_not_wait_for_jobs(autojump_clock: MockClock) -> None:
    """The end of the input waits for messages, not for what is scheduled or runs for cron."""
    async with cron_world(shutdown_grace=0) as here:
        await here.ask("/schedule in 1 hour: x")
        await here.ask("/schedule in 1 minute: long job")
        await trio.sleep(61)
        before = trio.current_time()
        await here.world.gateway.drained()
        assert trio.current_time() == before


async def test_a_crash_of_cron_leaves_the_chat_alone(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is logged, cron starts again after a rest, longer each time, and its jobs run then. (44)"""
    whole = whole_store()
    crashes = 3

    async def crash(self: object) -> None:
        nonlocal crashes
        crashes -= 1
        if crashes >= 0:
            raise RuntimeError("a bug")
        await trio.sleep_forever()

    monkeypatch.setattr(CronService, "_poll", crash)
    async with cron_world(whole) as here:
        await here.ask("/schedule in 1 minute: tea")
        await here.start("hello")
        assert here.replies()[-1] == "re: hello"
        await trio.sleep(61)
        assert here.replies()[-1] == "re: tea"
        rests = [facts["again_in_s"] for name, facts in here.told.events if name == "service_failed"]
        assert rests == [1, 2, 4]


async def test_a_mistake_over_a_command_is_answered(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It does not end the gateway, nor come back with every start; the log has the rest."""

    def broken(*_: object) -> str:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(report, "created", broken)
    async with cron_world() as here:
        answer = await here.ask("/schedule in 1 hour: x")
        assert answer == "That did not work: a mistake inside goclaw. Its log tells more."
        assert "ZeroDivisionError" in caplog.text
        await here.start("hello")
        assert here.replies()[-1] == "re: hello"


async def test_a_long_list_is_cut(autojump_clock: MockClock) -> None:
    """And says how many more there are."""
    async with cron_world() as here:
        for _ in range(53):
            await here.add("in 1 hour", "x")
        lines = (await here.ask("/cron")).splitlines()
        assert (len(lines), lines[-1]) == (51, "… and 3 more jobs.")


async def test_a_shutdown_while_cron_rests_after_a_crash(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not come back to life, and nobody waits for it."""

    async def crash(self: object) -> None:
        raise StoreError("gone", retriable=False)

    monkeypatch.setattr(CronService, "_poll", crash)
    async with cron_world() as here:
        await trio.sleep(20)
        before, failures = trio.current_time(), len(here.told.events)
    assert trio.current_time() == before
    assert len(here.told.events) == failures
