"""Commands that change how a conversation is treated, who may use them, and what people are told while they wait."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gateway.app import Parts, open_gateway
from gateway.crew import Crew, Member
from gateway.loading import load_settings
from gateway.protocols import AgentReply
from store.records import Role, SessionKey, SessionPolicy
from tests.flow.edges import FakeChannel, Scripted
from tests.flow.test_cron import cron_world, whole_store
from tests.flow.world import incoming, new_store, open_world, whole_of

if TYPE_CHECKING:
    from gateway.protocols import AgentContext, Turn

DM = SessionKey("default", "main", "fake", "bot", "dm")


# ── /new ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Remembering:
    """An agent that answers with what it was told of the past."""

    can_steer = False

    async def run(self, turn: Turn, context: AgentContext) -> AgentReply:
        past = [said.text for said in turn.history]
        return AgentReply(f"I know {past}", context=0.75)


async def test_a_new_conversation_stops_everything_and_forgets_nothing(autojump_clock: MockClock) -> None:
    """The agent is not told of what was said before; the transcript keeps it, and the figure begins anew."""
    store, channel = new_store(), FakeChannel()
    whole = whole_of(store)
    crew = Crew({"main": Member("main", Remembering(), window=10_000)})
    parts = Parts(store, whole, crew, [channel])
    async with open_gateway(load_settings({}, None).settings, parts) as gateway:
        for text in ("one", "two", "/new", "three"):
            await gateway.receive([incoming(text)])
            await gateway.drained()
    assert channel.replies() == [
        "I know []",
        "I know ['one', 'I know []']",
        "A new conversation. What was said before is kept, but the agent does not look at it any more.",
        "I know []",
    ]
    lines = await whole.transcript(DM)
    assert [line.said.text for line in lines if line.said.role is Role.USER] == ["one", "two", "three"]


async def test_a_new_conversation_reaches_what_runs_and_waits(autojump_clock: MockClock) -> None:
    """It is `/stopall` first, and says so. (22)"""
    async with open_world() as world:
        await world.start("long", "second")
        answer = await world.ask("/new")
        assert answer.startswith("Stopped 1 run and 1 waiting message. A new conversation.")
        await world.gateway.drained()
        assert not any(reply.startswith("re:") for reply in world.replies())


async def test_only_admins_begin_a_new_conversation_in_a_group(autojump_clock: MockClock) -> None:
    """A member's own run goes on, since nothing was stopped. (23)"""
    async with open_world() as world:
        await world.start("long", group=True)
        assert await world.ask("/new", group=True) == "Only an admin of this group may use /new here."
        assert world.agent.alive["dm"] == 1
        await world.gateway.receive([incoming("/new", group=True, admin=True)])
        await wait_all_tasks_blocked()
        assert world.agent.alive["dm"] == 0


# ── /queue and /tz ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_how_messages_wait_is_shown_set_and_kept(autojump_clock: MockClock) -> None:
    """What is set counts from the next message on, and is there after a restart."""
    store = new_store()
    async with open_world(store, queue_cap=7) as world:
        shown = await world.ask("/queue")
        assert "cap       7 waiting\n" in shown
        assert "set for this chat" not in shown
        answer = await world.ask("/queue steer")
        assert "mode      steer (set for this chat)" in answer
        await world.ask("/queue cap 3 debounce 0")
    async with open_world(store) as world:
        assert "cap       3 waiting (set for this chat)" in await world.ask("/queue")
        await world.say("listen")
        await trio.sleep(1.5)
        await world.say("more")
        await world.gateway.drained()
        assert world.replies()[-1] == "re: listen | more"
        assert "set for this chat" not in await world.ask("/queue reset")
    known = await whole_of(store).session(DM)
    assert known is not None
    assert known.standing.policy == SessionPolicy()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("mode fast", '"fast" is no mode: expected queue, followup, collect, steer, interrupt'),
        ("drop both", '"both" is no drop: expected old, new'),
        ("cap 0", '"0" is no cap: expected a whole number from 1'),
        ("cap ten", '"ten" is no cap'),
        ("cap", "cap needs a value"),
        ("speed 5", '"speed" is not something that can be set'),
        ("debounce -1", '"-1" is no debounce'),
        ("debounce 99999999999999999999", "is no debounce"),
    ],
)
async def test_what_cannot_be_set_is_told_and_nothing_changes(autojump_clock: MockClock, words: str, said: str) -> None:
    store = new_store()
    async with open_world(store) as world:
        answer = await world.ask(f"/queue {words}")
        assert said in answer
        assert "/queue reset." in answer
    known = await whole_of(store).session(DM)
    assert known is None or known.standing.policy == SessionPolicy()


async def test_a_chat_has_a_time_zone_of_its_own(autojump_clock: MockClock) -> None:
    """What is scheduled here is meant there; what was scheduled before keeps its zone. (35)"""
    async with cron_world(cron_timezone="Europe/Berlin") as here:
        assert (await here.ask("/tz")).startswith("Times are in Europe/Berlin, as everywhere here.")
        assert "(Europe/Berlin)" in await here.ask("/schedule every day at 9am: x")
        assert (await here.ask("/tz Asia/Kolkata")).startswith("Times in this chat are in Asia/Kolkata from now on.")
        assert "(Asia/Kolkata)" in await here.ask("/schedule every day at 9am: y")
        assert "Mars" in await here.ask("/tz Mars/Olympus")
        assert (await here.ask("/tz")).startswith("Times are in Asia/Kolkata, set for this chat.")
        await here.ask("/tz reset")
        assert (await here.ask("/tz")).startswith("Times are in Europe/Berlin")
        assert [job.spec.timing.zone for job in await here.whole.cron.jobs("default")] == [
            "Europe/Berlin",
            "Asia/Kolkata",
        ]


@pytest.mark.parametrize("command", ["/queue", "/queue steer", "/tz", "/tz UTC"])
async def test_what_changes_a_group_is_for_its_admins(autojump_clock: MockClock, command: str) -> None:
    async with open_world() as world:
        answer = await world.ask(command, group=True)
        assert answer == f"Only an admin of this group may use {command.split()[0]} here."


async def test_others_jobs_are_changed_by_admins_only(autojump_clock: MockClock) -> None:
    """In a group everybody may schedule; what somebody else scheduled is theirs. (S25)"""
    async with cron_world(whole_store()) as here:
        gateway = here.world.gateway
        for text, sender, admin in (
            ("/schedule every hour: look", "ann", False),
            ("/cron cancel 1", "bob", False),
            ("/cron pause 1", "bob", True),
        ):
            await gateway.receive([incoming(text, sender=sender, group=True, admin=admin)])
            await wait_all_tasks_blocked()
        scheduled, refused, paused = here.replies()
        assert scheduled.startswith("Scheduled #1")
        assert "was made by somebody else" in refused
        assert paused.startswith("Paused #1")


# ── who, what, next ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_people_can_find_out_who_they_are(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        assert await world.ask("/whoami") == (
            "You are ann (yourself) in fake chat dm.\nThe agent main answers here, for the tenant default."
        )
        assert (await world.ask("/start")).startswith("Hello.")


async def test_the_status_shows_what_is_next(autojump_clock: MockClock) -> None:
    async with cron_world() as here:
        assert "Next jobs" not in await here.ask("/status")
        await here.ask("/schedule every day at 9am: look at the plants")
        await here.ask("/schedule in 1 hour: tea")
        lines = (await here.ask("/status")).splitlines()
        after = lines[lines.index("Next jobs:") + 1 :]
        assert [line.split()[0] for line in after] == ["#2", "#1"]


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def hints(channel: FakeChannel, chat: str = "dm") -> list[str]:
    return [seen.text for seen in channel.seen if seen.kind == "hint" and seen.chat == chat]


async def test_who_waits_is_told_how_many_are_before(autojump_clock: MockClock) -> None:
    """After two seconds, once; who is answered before hears nothing of it."""
    async with open_world(queue_debounce=0) as world:
        await world.say("long one")
        await world.say("two")
        await world.say("three")
        await trio.sleep(1.9)
        assert hints(world.channel) == []
        await trio.sleep(0.2)
        assert hints(world.channel) == ["Queued, 1 before you.", "Queued, 2 before you."]
        await trio.sleep(30)
        assert len(hints(world.channel)) == 2


async def test_who_waits_for_a_slot_only_is_told_that(autojump_clock: MockClock) -> None:
    async with open_world(queue_debounce=0, lane_main=1) as world:
        await world.say("long one", chat="other")
        await world.say("hello")
        await trio.sleep(2.1)
        assert hints(world.channel) == ["Queued: every slot is taken. You are next in this chat."]
        assert hints(world.channel, "other") == []


async def test_messages_that_became_one_turn_wait_once(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        await world.start("long one")
        await world.say("two", "three")
        await trio.sleep(5)
        assert hints(world.channel) == ["Queued, 1 before you."]


async def test_an_agent_that_is_gone_is_told_in_words(autojump_clock: MockClock) -> None:
    """A chat whose agent was taken out of the file gets an answer that says so. (P6)"""
    async with open_world() as world:
        asked = incoming("hello")
        await world.gateway.receive([replace(asked, session=replace(asked.session, agent="gone"))])
        await world.gateway.drained()
        assert world.replies() == [
            "\"hello\" did not work: there is no agent 'gone' any more; these are there: main, research"
        ]


async def test_a_long_history_lets_a_group_run_one_at_a_time(autojump_clock: MockClock) -> None:
    """The figure of the context goes with each request: at 60 % of the window a group has one run at a time. (L5)"""
    store = new_store()
    await whole_of(store).set_policy(replace(DM, chat="room"), SessionPolicy(debounce_ms=0))
    agent = Full()
    async with open_world(store, agent) as world:
        await world.say("first", chat="room", group=True)
        await world.gateway.drained()
        for sender in ("ann", "bob", "cem"):
            await world.say("slow down", chat="room", group=True, sender=sender)
        await wait_all_tasks_blocked()
        assert world.gateway.scheduler.session_statistics(str(replace(DM, chat="room"))).limit == 1
        await world.gateway.drained()
        assert agent.most["room"] == 1


class Full(Scripted):
    """Says that its window is nearly full."""

    async def run(self, turn: Turn, context: AgentContext) -> AgentReply:
        reply = await super().run(turn, context)
        return AgentReply(reply.text, context=0.7)
