"""The demo agent: which phrases it knows, and that each drives a real path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from gateway.agents.demo import ABOUT, HIGHEST, STEP_S, DemoAgent
from gateway.protocols import AgentError, ToolResult, Turn, Usage
from store.records import SessionKey

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from trio.testing import MockClock

SESSION = SessionKey("default", "main", "fake", "", "here")


class Listener:
    """An agent's context that remembers: what was shown, who was asked, and what is added meanwhile."""

    def __init__(self, *added: str) -> None:
        self.shown: list[str] = []
        self.asked: list[str] = []
        self.called: list[tuple[str, dict[str, object]]] = []
        self.added = [*added]

    def show(self, text: str) -> None:
        self.shown.append(text)

    tools = ()

    async def call(self, tool: str, arguments: Mapping[str, object]) -> ToolResult:
        self.called.append((tool, dict(arguments)))
        if tool not in ("spawn_subagent", "delegate"):
            return ToolResult("Scheduled #1")
        task = str(arguments["task"])
        self.asked.append(task)
        return ToolResult((await DemoAgent().run(Turn(SESSION, (task,), depth=1), self)).text)

    def asking(self, model: str) -> AbstractContextManager[None]:
        raise AssertionError("there is no model")

    def spend(self, usage: Usage) -> None:
        raise AssertionError("it is free")

    async def steering(self) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        return (self.added.pop(0),) if self.added else ()


async def answer(*texts: str, context: Listener | None = None) -> str:
    return (await DemoAgent().run(Turn(SESSION, texts), Listener() if context is None else context)).text


@pytest.mark.parametrize(
    ("text", "to"),
    [
        ("count", 10),
        ("Count to 3", 3),
        ("count up to 3!", 3),
        ("count slowly", 10),
        ("count slowly to 4.", 4),
        ("count to 3 slowly", 3),
        (" COUNT TO 2 ", 2),
        ("count to 0", 0),
        ("count to 999999999", HIGHEST),
    ],
)
async def test_it_counts(autojump_clock: MockClock, text: str, to: int) -> None:
    """Every number is shown and takes its time, so that there is something to stop; no count lasts for ever."""
    context, start = Listener(), trio.current_time()
    assert await answer(text, context=context) == f"I counted to {to}."
    assert context.shown == [f"{number} " for number in range(1, to + 1)]
    assert trio.current_time() - start == pytest.approx(to * STEP_S)


async def test_what_is_added_while_it_counts_is_heard(autojump_clock: MockClock) -> None:
    """A steered message reaches it between two numbers and is part of the answer."""
    heard = await answer("count to 3", context=Listener("faster", "slower"))
    assert heard == "I counted to 3.\nMeanwhile you said: faster\nMeanwhile you said: slower"


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("ask helpers about tea", "tea"),
        ("Ask two helpers about green tea?", "green tea"),
        ("ask helpers", "everything"),
        ("ask your helper for advice!", "advice"),
        ("ask the helpers tea", "tea"),
    ],
)
async def test_it_asks_two_helpers_at_once(autojump_clock: MockClock, text: str, topic: str) -> None:
    """Both work at the same time, and both answers are in the reply, in the same order each time."""
    context, start = Listener(), trio.current_time()
    said = await answer(text, context=context)
    assert sorted(context.asked) == [f"{topic}, the good side", f"{topic}, the other side"]
    assert trio.current_time() - start == pytest.approx(3 * STEP_S)
    first, good, other = said.splitlines()
    assert first == "My helpers say:"
    assert good.startswith(f"  {topic}, the good side:")
    assert other.startswith(f"  {topic}, the other side:")


@pytest.mark.parametrize("text", ["fail", "FAIL!", " fail. "])
async def test_it_fails_on_request(text: str) -> None:
    """So that people can see how a failure is told."""
    with pytest.raises(AgentError, match="asked to fail"):
        await answer(text)


@pytest.mark.parametrize("text", ["hi", "Hello", "help", "?", ""])
async def test_it_says_what_it_can_do(text: str) -> None:
    """A greeting is answered with what there is to try, each line of which works."""
    assert await answer(text) == ABOUT


@pytest.mark.parametrize(
    "text", ["failure", "count me in", "counting", "count to ten", "ask", "x\ny", "🦀", "count to -1"]
)
async def test_it_repeats_what_it_does_not_know(text: str) -> None:
    """Everything else is repeated, followed by what there is to try."""
    assert await answer(text) == f"You said: {text}\n{ABOUT}"


async def test_everything_in_its_list_can_be_typed(autojump_clock: MockClock) -> None:
    """The examples that it offers are understood."""
    for line in ABOUT.splitlines()[1:]:
        phrase = line.strip().split("   ")[0]
        if phrase == "fail":
            continue
        assert "You said" not in await answer(phrase)


async def test_several_texts_are_answered_in_order(autojump_clock: MockClock) -> None:
    """One turn of three messages gets one answer with three parts. (L9)"""
    assert await answer("count to 1", "count to 2") == "I counted to 1.\nI counted to 2."


@pytest.mark.parametrize("texts", [("hi", "hello"), ("one", "two", "three"), ("hi", "count to 1", "what?")])
async def test_what_there_is_to_try_is_said_once(autojump_clock: MockClock, texts: tuple[str, ...]) -> None:
    """A pasted text of many lines is not answered with as many copies of the list."""
    assert (await answer(*texts)).count(ABOUT) == 1
