"""The script for use by hand does what its words say."""

from __future__ import annotations

import math

import pytest

from tests.fakes.script import (
    Asked,
    Begin,
    Call,
    CallTool,
    Disconnect,
    Message,
    Pause,
    Result,
    Say,
    Status,
    Steps,
    Tool,
    rules,
)
from tests.fakes.script_file import read_step
from tests.fakes.words import by_hand

TOOL = Tool("weather", "", {"type": "object"})
CALLED = (Message("assistant", calls=(Call("c", "weather", "{}"),)), Message("tool", results=(Result("c", "sunny"),)))


def asked(text: str, *more: Message, attempt: int = 1) -> Asked:
    return Asked("m", "", (Message("user", text), *more), (TOOL,), attempt=attempt)


def spoken(steps: Steps) -> str:
    return "".join(step.text for step in steps if isinstance(step, Say))


def test_other_words_are_echoed() -> None:
    assert spoken(by_hand(asked("how do I change this?"))) == "You said: how do I change this?"


def test_it_counts_slowly() -> None:
    """Number by number, with a pause after each; also in a line that names its author."""
    steps = by_hand(asked("[noon]\nAnn: count to 3"))
    assert spoken(steps) == "1 2 3 I counted to 3."
    assert sum(isinstance(step, Pause) for step in steps) == 3


def test_it_calls_a_tool_and_repeats_what_that_said() -> None:
    assert by_hand(asked('tool weather {"city": "Rome"}')) == [CallTool("weather", raw='{"city": "Rome"}')]
    assert spoken(by_hand(asked("tool weather", *CALLED))) == "weather said: sunny"


def test_it_calls_a_tool_for_ever() -> None:
    for more in ((), CALLED, CALLED * 2):
        assert by_hand(asked("loop", *more)) == [CallTool("weather", raw="{}")]


@pytest.mark.parametrize("attempt", [1, 2])
def test_it_fails_once_or_always(attempt: int) -> None:
    assert by_hand(asked("fail 429", attempt=attempt)) == [Status(429, {"retry-after": "1"})]
    once = by_hand(asked("fail 500 once", attempt=attempt))
    assert (once == [Status(500)]) == (attempt == 1)


def test_it_hangs_and_drops() -> None:
    assert by_hand(asked("hang")) == [Begin(), Pause(math.inf)]
    assert by_hand(asked("drop"))[-1] == Disconnect()


def test_a_request_that_no_rule_fits_is_an_error_that_says_so() -> None:
    (step,) = rules()(asked("hello"))
    assert isinstance(step, Status)
    assert "'hello'" in step.message


@pytest.mark.parametrize(
    ("written", "step"),
    [
        ("text", Say("text")),
        ({"say": "x", "chunk": 1, "pause_s": 0.5}, Say("x", 1, 0.5)),
        ({"tool": "a", "raw": "{"}, CallTool("a", raw="{")),
        ({"hang": True}, Pause(math.inf)),
        ({"disconnect": "reset"}, Disconnect(reset=True)),
        ({"status": 429, "headers": {"a": "b"}}, Status(429, {"a": "b"})),
    ],
)
def test_steps_can_be_written_as_json(written: object, step: object) -> None:
    assert read_step(written) == step
