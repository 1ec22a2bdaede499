"""The built-in agent: no key, no model, a small script that drives the real paths.

It answers, counts slowly (so that `/stop` can be tried), asks helpers, hands work to another agent, schedules, fails on
request, all by the same tools that a model would call. What a person adds while it counts reaches it between two
numbers, if the queue mode is `steer`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import trio

from gateway.protocols import AgentError, AgentReply

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.protocols import AgentContext, Turn

    Act = Callable[["DemoAgent", re.Match[str], AgentContext], Awaitable[str]]

STEP_S = 0.5
HELPER_STEPS = 3
HIGHEST = 1000
LONGEST_ORDER = 500
"""Longer texts are no orders; patterns are not tried on them, since that may take for ever."""
GREETINGS = {"", "hi", "hello", "help", "?"}

ABOUT = (
    "I am the demo agent, built in so that you can try things without a key. Try:\n"
    "  count to 10                   I count slowly; /stop stops me\n"
    "  ask helpers about tea         two helpers work at the same time\n"
    "  ask research about tea        another agent works on it\n"
    "  remind me in 1 minute to eat  I schedule a message to myself\n"
    "  fail                          something goes wrong on purpose"
)


class DemoAgent:
    can_steer = True

    async def run(self, turn: Turn, context: AgentContext) -> AgentReply:
        if turn.depth:
            return AgentReply(await self._help(turn.texts[0], context))
        lines: list[str] = []
        lost = False
        for said in map(str.strip, turn.texts):
            answer = await self._answer(said, context)
            lost |= answer is None
            if answer is not None:
                lines.append(answer)
            elif said.lower() not in GREETINGS:
                lines.append(f"You said: {said}")
        return AgentReply("\n".join([*lines, ABOUT] if lost else lines))

    async def _answer(self, said: str, context: AgentContext) -> str | None:
        if len(said) > LONGEST_ORDER:
            return None
        for pattern, act in ACTS.items():
            if found := re.fullmatch(pattern, said, re.IGNORECASE):
                return await act(self, found, context)
        return None

    async def _help(self, task: str, context: AgentContext) -> str:
        for _ in range(HELPER_STEPS):
            await trio.sleep(STEP_S)
        context.show(f"[{task}: done] ")
        return f"{task}: looked into it for {HELPER_STEPS * STEP_S:g} s and found it interesting."

    async def _count(self, found: re.Match[str], context: AgentContext) -> str:
        to = min(int(found["to"] or 10), HIGHEST)
        added: list[str] = []
        for number in range(1, to + 1):
            context.show(f"{number} ")
            await trio.sleep(STEP_S)
            added += await context.steering()
        answer = f"I counted to {to}."
        return "\n".join([answer, *(f"Meanwhile you said: {text}" for text in added)])

    async def _ask_helpers(self, found: re.Match[str], context: AgentContext) -> str:
        topic = found["topic"].strip() or "everything"
        answers: dict[str, str] = {}

        async def ask(side: str) -> None:
            answers[side] = (await context.call("spawn_subagent", {"task": f"{topic}, {side} side"})).text

        context.show("asking two helpers … ")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "the good")
            nursery.start_soon(ask, "the other")
        return f"My helpers say:\n  {answers['the good']}\n  {answers['the other']}"

    async def _delegate(self, found: re.Match[str], context: AgentContext) -> str:
        name, task = found["agent"].lower(), found["topic"].strip() or "everything"
        context.show(f"asking {name} … ")
        result = await context.call("delegate", {"agent": name, "task": task})
        return f"{name} says: {result.text}" if result.ok else f"That did not work: {result.text}."

    async def _remind(self, found: re.Match[str], context: AgentContext) -> str:
        message = f"remember to {found['what'].strip()}"
        result = await context.call("schedule", {"when": found["when"].strip(), "message": message})
        return result.text if result.ok else f"That did not work: {result.text}"

    async def _remember(self, found: re.Match[str], context: AgentContext) -> str:
        await trio.lowlevel.checkpoint()
        return f"This is your reminder: {found['what'].strip()}."

    async def _fail(self, found: re.Match[str], context: AgentContext) -> str:
        await trio.lowlevel.checkpoint()
        raise AgentError("the demo agent was asked to fail, and did", retriable=True)


ACTS: dict[str, Act] = {
    r"count(?: slowly)?(?: (?:up )?to (?P<to>\d{1,9}))?(?: slowly)?[.!]?": DemoAgent._count,
    r"ask(?: two| your| the)? helpers?(?: (?:about|for))? ?(?P<topic>.*?)[.!?]?": DemoAgent._ask_helpers,
    r"ask (?P<agent>[a-z][\w-]*) (?:about|for|to) (?P<topic>.+?)[.!?]?": DemoAgent._delegate,
    r"remind me (?P<when>.+?) to (?P<what>.+?)[.!]?": DemoAgent._remind,
    r"remember to (?P<what>.+?)[.!]?": DemoAgent._remember,
    r"fail[.!]?": DemoAgent._fail,
}
