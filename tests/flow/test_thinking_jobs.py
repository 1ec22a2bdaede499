"""Agents that think and plan: jobs that a model makes fire, and what it says then reaches the chat. Real time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from store.jobs import JobStatus
from tests.fakes.script import Asked, CallTool, Rule, Say, Status, Steps, Wait, rules
from tests.flow.models import KINDS, OPEN, asked_in, limits, open_talk, talking, thinking, told

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.parametrize("kind", KINDS)

TOOL = CallTool("schedule", {"when": "in 1 second", "message": "tell me that tea is ready"})


@pytest.mark.parametrize("by", ["tool", "line"])
async def test_a_job_that_a_model_makes_fires(kind: str, tmp_path: Path, by: str) -> None:
    """By a call or by a line of its answer; the job is told whose it is, and its answer comes to the chat. (C20)"""
    line = Say("Of course.\n/schedule in 1 second: tell me that tea is ready")
    script = rules(
        Rule("tell me that tea is ready", [Say("Tea is ready.")], "user"),
        Rule("remind me", [TOOL if by == "tool" else line], "user"),
        Rule("Scheduled #1", [Say("Of course.")], "tool"),
    )
    async with talking(kind, script, tmp_path) as (talk, server):
        answer = await talk.ask("remind me of my tea")
        assert answer.startswith("Of course.")
        assert ("Scheduled #1" in answer) == (by == "line")
        assert "/schedule" not in answer
        await talk.channel.until(lambda: len(talk.replies()) == 2)
        assert "Tea is ready." in talk.replies()[1]
        assert "tell me that tea is ready" in told(asked_in(server)[-1])[-1][1]
        (job,) = await talk.store.cron.jobs("default")
        assert (job.spec.made_by_agent, job.status) == (True, JobStatus.COMPLETED)


async def test_a_job_that_was_made_before_a_crash_is_not_made_again(kind: str, tmp_path: Path) -> None:
    """The turn is taken up anew and schedules the same anew: there is one job. (P4)"""
    call = CallTool("schedule", {"when": "in 1 hour", "message": "tea"})
    let_go = trio.Event()

    def answer(asked: Asked) -> Steps:
        return [Wait(let_go), Say("Of course.")] if asked.last.role == "tool" else [call]

    async with OPEN[kind](answer) as server:
        agents = thinking(kind, server)
        with trio.CancelScope() as crash:
            async with open_talk(tmp_path, agents) as talk:
                await talk.say("remind me")
                await server.until(lambda: len(server.requests) == 2)  # the second tells what came of the first
                crash.cancel()
                await trio.lowlevel.checkpoint()
        let_go.set()
        async with open_talk(tmp_path, agents) as talk:
            assert talk.gateway.taken_up == 1
            await talk.gateway.drained()
            assert talk.replies() == ["Of course."]
            assert len(await talk.store.cron.jobs("default")) == 1


async def test_a_job_goes_on_as_often_as_its_agent_may(kind: str, tmp_path: Path) -> None:
    """What it said before is there to be read; a person ends it. (C11)"""

    def answer(asked: Asked) -> Steps:
        if "look around" not in asked.last_user:
            if asked.last.role == "tool":
                return [Say("I will look.")]
            return [CallTool("schedule", {"when": "every 1 second", "message": "look around"})]
        if asked.last.role == "tool":
            return [Say("Nothing new." if "attempt 1" in asked.last.all_text else "All quiet.")]
        return [CallTool("schedule_history", {"limit": 1})]

    async with talking(kind, answer, tmp_path, limits(shortest_interval="1s")) as (talk, server):
        assert await talk.ask("watch it") == "I will look."
        await talk.channel.until(lambda: any("Nothing new." in reply for reply in talk.replies()))
        assert "All quiet." in talk.replies()[1]
        await talk.say("/cron cancel 1")
        await talk.channel.until(lambda: any(reply.startswith("Cancelled #1") for reply in talk.replies()))
        (job,) = await talk.store.cron.jobs("default")
        assert job.status is JobStatus.CANCELLED
        asked_in(server)


async def test_what_is_too_often_is_told_to_the_model(kind: str, tmp_path: Path) -> None:
    """And by a line in the answer to the person; no job is made. (S25)"""
    script = rules(
        Rule("by tool", [CallTool("schedule", {"when": "every 1 second", "message": "x"})], "user"),
        Rule("by line", [Say("Sure.\n/schedule every 1 second: x")], "user"),
        Rule("1 minute", [Say("I may not.")], "tool"),
    )
    async with talking(kind, script, tmp_path) as (talk, _):
        assert await talk.ask("by tool") == "I may not."
        assert (await talk.ask("by line")).startswith("Sure.\n\nNot done: /schedule every 1 second: x (")
        assert await talk.store.cron.jobs("default") == ()


async def test_a_job_whose_model_refuses_is_told_once(kind: str, tmp_path: Path) -> None:
    """A key that is wrong stays wrong: it is not tried again and again."""
    script = rules(Rule("say tea", [Status(401)], "user"))
    async with talking(kind, script, tmp_path) as (talk, server):
        await talk.say("/schedule in 1 second: say tea")
        await talk.channel.until(lambda: len(talk.replies()) == 2)
        assert "the model's server refuses the key (401): check api_key_env in [agent.main]" in talk.replies()[1]
        assert "Traceback" not in talk.replies()[1]
        assert len(server.requests) == 1
