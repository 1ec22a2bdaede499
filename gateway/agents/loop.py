"""An agent that is a model with tools.

    ask ──> text alone ──> the answer
     ^          │
     │          └ with calls ──> all at once ──> results in the order of the calls ──> what the person added meanwhile
     └───────────────────────────────────────────────────────────────────────────────────────────┘

A request that fails before anything of its answer was shown is tried again, after a pause that grows; the person sees
nothing of it but the time. Once something was shown, a failure is told: an answer is never shown twice. What a model
does wrong (a tool that does not exist, arguments that are no JSON) is told to the model, which mostly mends it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from gateway.agents.models import (
    Finished,
    ModelRequest,
    ModelTrouble,
    TextPiece,
    ToolCall,
    calling,
    clean_text,
    repair,
    result_of,
)
from gateway.agents.one_voice import open_nursery
from gateway.protocols import AgentError, AgentReply, ToolResult, Usage
from store.records import Role, Said

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from gateway.agents.models import Model, Reason
    from gateway.agents.spec import AgentSpec
    from gateway.protocols import AgentContext, Turn

ATTEMPTS = 5
BASE_S = 1.0
LONGEST_S = 30.0
LONGEST_ASKED_S = 60.0
MOST_CALLS = 32
"""Calls in one answer; a model that is stuck writes hundreds."""

NO_ANSWER = "The model gave no answer. Ask again, or put it differently."
NOTHING_TO_ADD = "Done; the model had nothing to add."
REFUSED = "The model declined to answer this."


@dataclass(slots=True)
class _Answer:
    """What has come of one request so far."""

    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    reason: Reason | None = None


class ModelAgent:
    can_steer = True

    def __init__(
        self,
        spec: AgentSpec,
        model: Model,
        *,
        sleep: Callable[[float], Awaitable[None]] = trio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._spec = spec
        self._model = model
        self._sleep = sleep
        self._chance = chance

    async def run(self, turn: Turn, context: AgentContext) -> AgentReply:
        said = [Said(Role.USER, clean_text(text)) for text in turn.texts]
        shown = False
        while True:
            answer = await self._ask(self._request(turn, said, context), context, new_line=shown)
            shown = shown or bool(answer.text)
            if not answer.calls:
                break
            said.append(calling(answer.text, answer.calls))
            said += await self._call_all(answer.calls, context)
            said += [Said(Role.USER, clean_text(text)) for text in await context.steering()]
        acted = any(line.role is Role.TOOL for line in said)
        filled = min(1.0, answer.usage.total / self._spec.window)
        return AgentReply(self._words(answer, acted=acted), tuple(said), filled)

    def _request(self, turn: Turn, said: Sequence[Said], context: AgentContext) -> ModelRequest:
        place = f"You are the agent {self._spec.name}"
        if turn.depth:
            place += f", working as a helper (depth {turn.depth}): your answer goes to the agent that asked you"
        system = f"{self._spec.instructions.strip()}\n\n{place}."
        return ModelRequest(system, repair([*turn.history, *said]), context.tools, self._spec.max_answer)

    def _words(self, answer: _Answer, *, acted: bool) -> str:
        text = answer.text.strip()
        if answer.reason == "length":
            return f"{text}\n\n(The answer ends here: it has reached {self._spec.max_answer} tokens.)".strip()
        if answer.reason == "refused":
            return f"{text}\n\n({REFUSED})" if text else REFUSED
        return text or (NOTHING_TO_ADD if acted else NO_ANSWER)

    # ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _ask(self, request: ModelRequest, context: AgentContext, *, new_line: bool) -> _Answer:
        attempt = 1
        while True:
            answer = _Answer()
            try:
                with context.asking(self._model.name):
                    await self._listen(request, answer, context, new_line=new_line)
            except ModelTrouble as trouble:
                if answer.text:
                    raise AgentError(f"the model's answer broke off: {trouble}", retriable=True) from trouble
                if not trouble.retriable:
                    raise AgentError(f"the model cannot answer: {trouble}") from trouble
                if attempt == ATTEMPTS:
                    lasting = f"{trouble} and did not recover within {ATTEMPTS} tries; try again later"
                    raise AgentError(lasting, retriable=True) from trouble
                await self._sleep(self._pause(attempt, trouble.retry_after_s))
                attempt += 1
            else:
                context.spend(answer.usage)
                return answer

    async def _listen(self, request: ModelRequest, answer: _Answer, context: AgentContext, *, new_line: bool) -> None:
        async with self._model.stream(request) as events:
            async for event in events:
                if isinstance(event, TextPiece):
                    piece = clean_text(event.text)
                    if piece:
                        context.show(f"\n\n{piece}" if new_line and not answer.text else piece)
                    answer.text += piece
                elif isinstance(event, ToolCall):
                    answer.calls.append(event)
                elif isinstance(event, Finished):
                    answer.usage, answer.reason = event.usage, event.reason
        if answer.reason is None:
            raise ModelTrouble("the model's server ended its answer in the middle")

    def _pause(self, attempt: int, asked_s: float | None) -> float:
        """Half of it by chance, so that many who failed together do not come back together."""
        longest = min(LONGEST_S, BASE_S * 2.0 ** (attempt - 1))
        pause = longest * (0.5 + self._chance() / 2)
        return max(pause, min(asked_s or 0.0, LONGEST_ASKED_S))

    # ── acting ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _call_all(self, calls: Sequence[ToolCall], context: AgentContext) -> list[Said]:
        results: dict[int, ToolResult] = {}

        async def call_one(index: int, call: ToolCall) -> None:
            results[index] = await self._call(index, call, context)

        async with open_nursery() as nursery:
            for index, call in enumerate(calls):
                nursery.start_soon(call_one, index, call)
        return [result_of(call, self._cut(results[index])) for index, call in enumerate(calls)]

    async def _call(self, index: int, call: ToolCall, context: AgentContext) -> ToolResult:
        known = [tool.name for tool in context.tools]
        if index >= MOST_CALLS:
            return ToolResult(f"not called: at most {MOST_CALLS} tools can be called at once", ok=False)
        if call.name not in known:
            there = ", ".join(known) or "none"
            return ToolResult(f"there is no tool {call.name[:64]!r}; the tools are: {there}", ok=False)
        if call.arguments is None:
            return ToolResult(f"not called: the arguments are not a JSON object: {call.raw[:200]}", ok=False)
        return await context.call(call.name, call.arguments)

    def _cut(self, result: ToolResult) -> ToolResult:
        """No result fills more than about a quarter of the window: there are some four characters to a token."""
        if len(result.text) <= self._spec.window:
            return result
        left = len(result.text) - self._spec.window
        return ToolResult(f"{result.text[: self._spec.window]}\n[{left} more characters were left out]", result.ok)
