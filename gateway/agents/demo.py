"""The built-in agent: no key, no model, a small script that drives the real paths.

It answers, counts slowly (so that `/stop` can be tried), asks two helpers at once, and fails on request. What a person
adds while it counts reaches it between two numbers, if the queue mode is `steer`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from gateway.protocols import AgentContext, Turn

STEP_S = 0.5
HELPER_STEPS = 3
HIGHEST = 1000
GREETINGS = {"", "hi", "hello", "help", "?"}

_COUNT = re.compile(r"count(?: slowly)?(?: (?:up )?to (?P<to>\d{1,9}))?(?: slowly)?[.!]?", re.IGNORECASE)
_ASK = re.compile(r"ask(?: two| your| the)? helpers?(?: (?:about|for))? ?(?P<topic>.*?)[.!?]?", re.IGNORECASE)
_FAIL = re.compile(r"fail[.!]?", re.IGNORECASE)

ABOUT = (
    "I am the demo agent, built in so that you can try things without a key. Try:\n"
    "  count to 10              I count slowly; /stop stops me\n"
    "  ask helpers about tea    two helpers work at the same time\n"
    "  fail                     something goes wrong on purpose"
)


class DemoFailure(Exception):
    """What `fail` raises."""


class DemoAgent:
    can_steer = True

    async def run(self, turn: Turn, context: AgentContext) -> str:
        lines: list[str] = []
        lost = False
        for said in map(str.strip, turn.texts):
            answer = await self._answer(said, context)
            lost |= answer is None
            if answer is not None:
                lines.append(answer)
            elif said.lower() not in GREETINGS:
                lines.append(f"You said: {said}")
        return "\n".join([*lines, ABOUT] if lost else lines)

    async def help(self, task: str, context: AgentContext) -> str:
        for _ in range(HELPER_STEPS):
            await trio.sleep(STEP_S)
        context.show(f"[{task}: done] ")
        return f"{task}: looked into it for {HELPER_STEPS * STEP_S:g} s and found it interesting."

    async def _answer(self, said: str, context: AgentContext) -> str | None:
        if found := _COUNT.fullmatch(said):
            return await self._count(min(int(found["to"] or 10), HIGHEST), context)
        if found := _ASK.fullmatch(said):
            return await self._ask(found["topic"].strip() or "everything", context)
        if _FAIL.fullmatch(said):
            raise DemoFailure("the demo agent was asked to fail, and did")
        return None

    async def _count(self, to: int, context: AgentContext) -> str:
        added: list[str] = []
        for number in range(1, to + 1):
            context.show(f"{number} ")
            await trio.sleep(STEP_S)
            added += await context.steering()
        answer = f"I counted to {to}."
        return "\n".join([answer, *(f"Meanwhile you said: {text}" for text in added)])

    async def _ask(self, topic: str, context: AgentContext) -> str:
        answers: dict[str, str] = {}

        async def ask(name: str, task: str) -> None:
            answers[name] = await context.ask_helper(task)

        context.show("asking two helpers … ")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "first", f"{topic}, the good side")
            nursery.start_soon(ask, "second", f"{topic}, the other side")
        return f"My helpers say:\n  {answers['first']}\n  {answers['second']}"
