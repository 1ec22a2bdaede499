"""What agents may ask the gateway to do, through a whole gateway: helpers, other agents, jobs, and their limits."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from gateway.app import Parts, open_gateway
from gateway.crew import Crew, Member
from gateway.protocols import AgentReply, ToolResult, Usage
from store.jobs import JobStatus
from tests.flow.edges import FakeChannel
from tests.flow.test_cron import chat_side, whole_store
from tests.flow.world import DEBOUNCED_S, Told, cron_parts, incoming, settings_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from gateway.app import Gateway
    from gateway.protocols import AgentContext, Turn
    from store.memory import MemoryStore

    Act = Callable[[Turn, AgentContext], Awaitable[str]]


@dataclass
class Acting:
    """An agent that does what its test says."""

    act: Act
    can_steer: bool = True
    turns: list[Turn] = field(default_factory=list)

    async def run(self, turn: Turn, context: AgentContext) -> AgentReply:
        self.turns.append(turn)
        return AgentReply(await self.act(turn, context))


@dataclass
class Place:
    gateway: Gateway
    channel: FakeChannel
    whole: MemoryStore

    async def say(self, text: str, **about: object) -> None:
        await self.gateway.receive([incoming(text, **about)])  # type: ignore[arg-type]

    async def ask(self, text: str) -> str:
        await self.say(text)
        await self.gateway.drained()
        return self.channel.replies()[-1]


@asynccontextmanager
async def opened(*members: Member, **variables: object) -> AsyncIterator[Place]:
    settings = settings_of(**variables)
    whole, channel = whole_store(), FakeChannel()
    crew = Crew({member.name: member for member in members})
    parts = Parts(chat_side(whole), whole, crew, [channel], cron_parts(whole, Told(), settings))
    async with open_gateway(settings, parts) as gateway:
        await wait_all_tasks_blocked()
        yield Place(gateway, channel, whole)


async def echo(turn: Turn, context: AgentContext) -> str:
    return f"{turn.session.agent} depth {turn.depth}: {turn.texts[0]}"


# ── helpers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lane", [1, 4])
async def test_helpers_work_side_by_side_on_their_lane(autojump_clock: MockClock, lane: int) -> None:
    """Four helpers of a second each take a second on a lane of four, and four on a lane of one. (P3, P8)"""

    async def act(turn: Turn, context: AgentContext) -> str:
        if turn.depth:
            await trio.sleep(1)
            return turn.texts[0]
        results: dict[int, ToolResult] = {}

        async def ask(number: int) -> None:
            results[number] = await context.call("spawn_subagent", {"task": f"part {number}"})

        async with trio.open_nursery() as nursery:
            for number in range(4):
                nursery.start_soon(ask, number)
        return " ".join(results[number].text for number in range(4))

    async with opened(Member("main", Acting(act)), lane_subagent=lane, queue_debounce=0) as place:
        before = trio.current_time()
        assert await place.ask("go") == "part 0 part 1 part 2 part 3"
        assert trio.current_time() - before == 4 / lane


async def test_helpers_may_have_helpers_only_so_deep(autojump_clock: MockClock) -> None:
    """The deepest is told why, has no such tool in its list, and the answer still comes. (S24)"""
    offered: dict[int, bool] = {}

    async def dig(turn: Turn, context: AgentContext) -> str:
        offered[turn.depth] = "spawn_subagent" in {tool.name for tool in context.tools}
        result = await context.call("spawn_subagent", {"task": "dig on"})
        return f"{turn.depth} < {result.text}"

    async with opened(Member("main", Acting(dig), depth=2)) as place:
        assert await place.ask("dig") == "0 < 1 < 2 < helpers may not have helpers more than 2 deep: do it yourself"
        assert offered == {0: True, 1: True, 2: False}


async def test_work_is_handed_to_another_agent_by_its_name(autojump_clock: MockClock) -> None:
    """On the lane of its own, and only to agents that it may hand work to."""

    async def act(turn: Turn, context: AgentContext) -> str:
        name, _, task = turn.texts[0].partition(" ")
        result = await context.call("delegate", {"agent": name, "task": task})
        return f"{result.ok} {result.text}"

    main = Member("main", Acting(act), delegates=frozenset({"research"}))
    others = [Member(name, Acting(echo)) for name in ("research", "secret")]
    async with opened(main, *others) as place:
        assert await place.ask("research tea") == "True research depth 1: tea"
        assert await place.ask("secret tea") == "False main cannot hand work to 'secret', only to research"
        assert await place.ask("nobody tea") == "False main cannot hand work to 'nobody', only to research"
        assert place.gateway.scheduler.lanes["delegate"].started == 1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("dance", {}), "there is no tool"),
        (("spawn_subagent", {}), "task: Field required"),
        (("spawn_subagent", {"task": ["x"]}), "task: Input should be a valid string"),
        (("read_file", {"path": "a"}), "there is no workspace here"),
        (("schedule", {"when": "whenever", "message": "x"}), "whenever"),
        (("schedule", {"when": "in 1 hour", "message": " "}), "message: String should have at least 1 character"),
        (("schedule_hint", {"reason": "x"}), "say which job"),
        (("schedule_history", {"job": 99}), "#99 not found"),
    ],
)
async def test_a_wrong_call_is_a_result_that_says_why(
    autojump_clock: MockClock, call: tuple[str, dict[str, object]], said: str
) -> None:
    """A model that calls rubbish reads what was wrong with it; nothing is raised and nothing is done."""

    async def act(turn: Turn, context: AgentContext) -> str:
        result = await context.call(*call)
        return f"{result.ok}: {result.text}"

    async with opened(Member("main", Acting(act))) as place:
        answer = await place.ask("go")
        assert answer.startswith("False: ")
        assert said in answer


async def test_a_tool_that_is_not_allowed_is_neither_offered_nor_carried_out(autojump_clock: MockClock) -> None:
    """What an agent may do is decided outside of it, and holds for its helpers too. (S22)"""

    async def act(turn: Turn, context: AgentContext) -> str:
        assert {tool.name for tool in context.tools} == {"spawn_subagent"}
        if not turn.depth:
            return (await context.call("spawn_subagent", {"task": "try it"})).text
        return (await context.call("schedule", {"when": "in 1 hour", "message": "x"})).text

    async with opened(Member("main", Acting(act), tools=frozenset({"spawn_subagent"}))) as place:
        assert await place.ask("go") == "the agent main may not use schedule"
        assert await place.whole.cron.jobs("default") == ()


# ── budgets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_turn_may_cost_only_so_much_helpers_included(autojump_clock: MockClock) -> None:
    """The person reads in one line why it was ended."""

    async def act(turn: Turn, context: AgentContext) -> str:
        if turn.depth:
            context.spend(Usage(300, 300))
            return "helped"
        await context.call("spawn_subagent", {"task": "x"})
        context.spend(Usage(300, 300))
        return "never said"

    async with opened(Member("main", Acting(act), tokens=1000)) as place:
        answer = await place.ask("go")
        assert answer == '"go" did not work: this took 1,200 tokens, more than the 1,000 that one turn may cost'


async def test_a_model_that_loops_for_ever_is_ended(autojump_clock: MockClock) -> None:
    """After as many requests as a run may make."""

    async def act(turn: Turn, context: AgentContext) -> str:
        while True:
            with context.asking("model"):
                await trio.lowlevel.checkpoint()

    async with opened(Member("main", Acting(act), steps=7)) as place:
        assert "asked 7 times and had not finished" in await place.ask("go")
        assert (await place.ask("/status")).startswith("Here: 0 running")


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_agent_schedules_itself_and_the_job_fires(autojump_clock: MockClock) -> None:
    """What it says then comes to the chat in which it was asked."""

    async def act(turn: Turn, context: AgentContext) -> str:
        if turn.texts[0] == "tea is ready":
            return "Your tea!"
        return (await context.call("schedule", {"when": "in 10 minutes", "message": "tea is ready"})).text

    async with opened(Member("main", Acting(act))) as place:
        assert (await place.ask("tea please")).startswith("Scheduled #1: ")
        (job,) = await place.whole.cron.jobs("default")
        assert (job.spec.made_by_agent, job.spec.owner, job.spec.agent) == (True, "ann", "main")
        await trio.sleep(601)
        assert place.channel.replies()[-1] == "Your tea!"


async def test_a_schedule_line_of_an_answer_is_carried_out_and_answered(autojump_clock: MockClock) -> None:
    """The line is taken out of the answer; one in a code block is text; a bad one is told."""

    async def act(turn: Turn, context: AgentContext) -> str:
        return "I will.\n/schedule in 1 hour: look again\n```\n/schedule in 2 hours: text\n```\n/schedule whenever: x"

    async with opened(Member("main", Acting(act))) as place:
        answer = await place.ask("go")
        (job,) = await place.whole.cron.jobs("default")
        assert (job.spec.message, job.spec.made_by_agent) == ("look again", True)
        assert answer.startswith("I will.\n```\n/schedule in 2 hours: text\n```\n\nScheduled #1: ")
        assert "Not done: /schedule whenever: x (" in answer


async def test_a_run_of_a_job_makes_no_jobs_and_says_so(autojump_clock: MockClock) -> None:
    """A job that schedules itself would never end. (39)"""

    async def act(turn: Turn, context: AgentContext) -> str:
        return "/schedule in 1 minute: again"

    async with opened(Member("main", Acting(act))) as place:
        await place.say("/schedule in 1 minute: begin")
        await trio.sleep(200)
        jobs = await place.whole.cron.jobs("default")
        assert [job.status for job in jobs] == [JobStatus.COMPLETED]
        assert "a run of a job may not make jobs" in place.channel.replies()[-1]


async def test_a_job_is_paced_paused_and_read_by_its_agent(autojump_clock: MockClock) -> None:
    """Hints and history are about its own job, without saying which. (C11, C21)"""

    async def act(turn: Turn, context: AgentContext) -> str:
        history = await context.call("schedule_history", {"limit": 3})
        hint = await context.call("schedule_hint", {"interval": "5m", "reason": "it is busy"})
        return f"{hint.text} | {history.text.splitlines()[-1]}"

    async with opened(Member("main", Acting(act))) as place:
        await place.say("/schedule every 2 hours: look")
        await trio.sleep(2 * 3600 + 1)
        first = place.channel.replies()[-1]
        assert first.startswith("Noted for job #1; it counts for its next run. | ")
        await trio.sleep(301)
        assert place.channel.replies()[-1] == f"Noted for job #1; it counts for its next run. | {first}"


async def test_another_agents_job_is_not_there(autojump_clock: MockClock) -> None:
    """Neither to be read nor to be changed. (S25)"""

    async def act(turn: Turn, context: AgentContext) -> str:
        results = [
            await context.call("schedule_history", {"job": 1}),
            await context.call("schedule_hint", {"job": 1, "pause": "in 2 hours", "reason": "x"}),
        ]
        return f"{[result.ok for result in results]}\n/schedule cancel 1"

    async with opened(Member("main", Acting(echo)), Member("other", Acting(act))) as place:
        await place.say("/schedule every hour: look")
        await trio.sleep(DEBOUNCED_S)
        asked = incoming("go")
        await place.gateway.receive([replace(asked, session=replace(asked.session, agent="other"))])
        await place.gateway.drained()
        assert place.channel.replies()[-1].startswith("[False, False]\n\nNot done: /schedule cancel 1")
        assert [job.status for job in await place.whole.cron.jobs("default")] == [JobStatus.ACTIVE]
