"""A context that behaves like the gateway's, and a model that follows a script."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from gateway.agents.models import Finished, ModelRequest, ModelTrouble, TextPiece, ToolCall
from gateway.protocols import AgentError, Tool, ToolResult, Turn, Usage
from store.records import SessionKey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from gateway.agents.models import ModelEvent
    from store.records import Said

SESSION = SessionKey("default", "main", "terminal", "", "local")
ECHO = Tool("echo", "Says it again.", {"type": "object", "properties": {"text": {"type": "string"}}})
FAIL = Tool("fail", "Fails.", {"type": "object", "properties": {}})


def a_turn(*texts: str, history: tuple[Said, ...] = (), depth: int = 0, **environ: str) -> Turn:
    return Turn(SESSION, texts or ("hello",), history, environ, depth)


async def echo(arguments: Mapping[str, object]) -> ToolResult:
    return ToolResult(f"echo: {arguments.get('text')}")


async def fail(arguments: Mapping[str, object]) -> ToolResult:
    return ToolResult("it failed", ok=False)


@dataclass
class ActingContext:
    """Tools by name, steps and tokens that run out, and a list of all that was done."""

    doing: dict[str, Callable[[Mapping[str, object]], Awaitable[ToolResult]]] = field(
        default_factory=lambda: {"echo": echo, "fail": fail}
    )
    tools: tuple[Tool, ...] = (ECHO, FAIL)
    steps: int = 50
    tokens: int = 1_000_000
    said_meanwhile: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    called: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    spent: Usage = field(default_factory=Usage)
    has_shown: trio.Event = field(default_factory=trio.Event)

    def show(self, text: str) -> None:
        self.has_shown.set()
        self.shown.append(text)

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolResult:
        await trio.lowlevel.checkpoint()
        self.called.append((tool, dict(arguments)))
        if tool not in self.doing:
            return ToolResult(f"there is no tool {tool}", ok=False)
        return await self.doing[tool](arguments)

    async def steering(self) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        heard, self.said_meanwhile = tuple(self.said_meanwhile), []
        return heard

    @contextmanager
    def asking(self, model: str) -> Iterator[None]:
        if len(self.asked) >= self.steps:
            raise AgentError(f"this needs more than {self.steps} steps")
        self.asked.append(model)
        yield

    def spend(self, usage: Usage) -> None:
        self.spent += usage
        if self.spent.total > self.tokens:
            raise AgentError("this costs more tokens than a turn may")


Script = list["ModelEvent | Exception"]


def says(*pieces: str, reason: str = "end") -> Script:
    return [*map(TextPiece, pieces), Finished(Usage(10, 5), reason)]  # type: ignore[arg-type]


def calls(*wanted: ToolCall, text: str = "") -> Script:
    return [*([TextPiece(text)] if text else []), *wanted, Finished(Usage(10, 5), "tools")]


def call(call_id: str, name: str = "echo", **arguments: object) -> ToolCall:
    return ToolCall(call_id, name, arguments, "{}")


class ScriptedModel:
    """Answers each request with the next script, the last one for ever."""

    name = "scripted"

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.requests: list[ModelRequest] = []
        self.closed = 0

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncIterator[AsyncIterator[ModelEvent]]:
        self.requests.append(request)
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        reading = self._read(script)
        try:
            yield reading
        finally:
            self.closed += 1
            with trio.CancelScope(shield=True):
                await reading.aclose()  # type: ignore[attr-defined]

    async def _read(self, script: Script) -> AsyncIterator[ModelEvent]:
        for event in script:
            await trio.lowlevel.checkpoint()
            if isinstance(event, Exception):
                raise event
            yield event


def overloaded(retry_after_s: float | None = None) -> ModelTrouble:
    return ModelTrouble("the model's server is overloaded (429)", retry_after_s=retry_after_s)
