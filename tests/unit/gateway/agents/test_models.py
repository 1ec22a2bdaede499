"""The promises of a repaired transcript: whatever was kept, every server accepts it."""

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agents.models import (
    NO_TEXT,
    UNKNOWN_RESULT,
    ToolCall,
    calling,
    calls_of,
    counted,
    read_call,
    repair,
    result_of,
)
from gateway.protocols import ToolResult
from store.records import Role, Said
from store.rules import copied
from tests.unit.gateway.agents.acting import call

USER, ASSISTANT, TOOL, SYSTEM = Role.USER, Role.ASSISTANT, Role.TOOL, Role.SYSTEM


def result(call_id: str, text: str = "fine") -> Said:
    return Said(TOOL, text, {"call": call_id, "name": "echo", "ok": True})


def test_a_sound_history_stays_as_it_is() -> None:
    lines = (
        Said(USER, "hi"),
        calling("let me see", [call("a", text="x"), call("b")]),
        result("b"),
        result("a"),
        Said(ASSISTANT, "done"),
        Said(USER, "thanks"),
    )
    assert repair(lines) == lines


def test_it_begins_with_a_persons_words() -> None:
    lines = (result("x"), calling("", [call("a")]), result("a"), Said(ASSISTANT, "yes"), Said(USER, "hi"))
    assert repair(lines) == (Said(USER, "hi"),)


def test_a_result_without_its_call_is_dropped() -> None:
    assert repair([Said(USER, "hi"), result("a"), Said(ASSISTANT, "yes")]) == (Said(USER, "hi"), Said(ASSISTANT, "yes"))


def test_a_call_without_its_result_is_answered() -> None:
    lines = repair([Said(USER, "hi"), calling("", [call("a"), call("b")]), result("b"), Said(USER, "well?")])
    assert [(line.role, line.text, line.data.get("call")) for line in lines[2:]] == [
        (TOOL, "fine", "b"),
        (TOOL, UNKNOWN_RESULT, "a"),
        (USER, "well?", None),
    ]
    assert lines[3].data["ok"] is False


def test_lines_of_one_speaker_become_one() -> None:
    lines = [Said(USER, "a"), Said(USER, "b"), Said(ASSISTANT, "c"), Said(ASSISTANT, "d"), Said(SYSTEM, "e")]
    assert repair(lines) == (Said(USER, "a\n\nb"), Said(ASSISTANT, "c\n\nd"), Said(USER, "[note] e"))


def test_nothing_empty_is_sent() -> None:
    lines = repair([Said(USER, " "), Said(ASSISTANT, ""), Said(USER, "x"), calling(" ", [call("a")]), result("a", "")])
    assert [line.text for line in lines] == [f"{NO_TEXT}\n\nx", "", NO_TEXT]


def test_ids_and_names_that_servers_refuse_are_replaced() -> None:
    """A model that once called a tool by an impossible name must not spoil the conversation for ever."""
    lines = repair(
        [
            Said(USER, "hi"),
            calling("", [call("a"), call("", "no such tool!"), call("a b")]),
            result("a b"),
            result("a"),
            calling("", [call("a")]),
            result("a"),
        ]
    )
    ids = [one.id for line in lines for one in calls_of(line)]
    assert len(set(ids)) == 4
    assert all(re.fullmatch("[A-Za-z0-9_-]+", one) for one in ids)
    assert calls_of(lines[1])[1].name == "no_such_tool_"
    assert sorted(str(line.data["call"]) for line in lines if line.role is TOOL) == sorted(ids)


def test_arguments_are_an_object_or_none() -> None:
    assert read_call("a", "t", "").arguments == {}
    assert read_call("a", "t", '{"x": [1, "\\ud800\\u0000"]}').arguments == {"x": [1, "\ufffd\ufffd"]}
    for raw in ("{", "[1]", "nonsense", '"text"', "[" * 100_000, "null"):
        assert read_call("a", "t", raw).arguments is None


ANYTHING = st.recursive(
    st.none() | st.text("ab", max_size=2) | st.integers(0, 2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "name", "arguments"]), inner),
    max_leaves=5,
)
IDS = st.sampled_from(["a", "b", "", "c d"])
SOUND = st.lists(IDS, min_size=1, max_size=3).map(lambda ids: calling("x", [call(one) for one in ids]))
LINES = st.one_of(
    st.builds(Said, st.sampled_from([USER, ASSISTANT, SYSTEM]), st.sampled_from(["", " ", "x", "\ud800", "\0"])),
    SOUND,
    IDS.map(result),
    st.builds(lambda data: Said(ASSISTANT, "x", {"calls": data}), ANYTHING),
    st.builds(lambda data: Said(TOOL, "x", {"call": data}), ANYTHING),
)


@given(st.lists(LINES, max_size=12))
def test_whatever_was_kept_can_be_sent(history: list[Said]) -> None:
    lines = repair([*history, Said(USER, "now")])
    assert lines[0].role is USER
    assert lines[-1].role is USER
    waiting: list[str] = []
    seen: set[str] = set()
    for before, line in zip((None, *lines), lines, strict=False):
        assert line.text.strip() or calls_of(line)
        line.text.encode()
        assert "\0" not in line.text
        if line.role is TOOL:
            waiting.remove(str(line.data["call"]))
            continue
        assert not waiting
        if before is not None and before.role is line.role:
            assert calls_of(line) or before.data
        waiting = [one.id for one in calls_of(line)]
        assert not seen & set(waiting)
        assert len(set(waiting)) == len(waiting)
        seen |= set(waiting)
    assert repair(lines) == lines


def test_a_result_is_kept_with_its_call() -> None:
    line = result_of(call("a"), ToolResult("no", ok=False))
    assert line == Said(TOOL, "no", {"call": "a", "name": "echo", "ok": False})


@pytest.mark.parametrize("depth", [1, 90, 300, 400, 600, 900, 3_000, 100_000])
def test_arguments_nested_however_deeply_are_a_call_or_none(depth: int) -> None:
    """What no store keeps is told to the model as no object; nothing breaks. (S23)"""
    read = read_call("1", "read_file", '{"path":' + "[" * depth + "]" * depth + "}")
    assert (read.arguments is not None) == (depth < 100)
    kept(read)


def kept(read: ToolCall) -> None:
    """The line of the transcript that it becomes is one that a store takes."""
    copied([calling("", [read])])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
NUMBERS = (
    "NaN",
    "-Infinity",
    "1e999",
    "-1e999",
    "9223372036854775808",
    "-9223372036854775809",
    "9" * 4_000,
    "9" * 5_000,
)


@given(st.text(), st.text(), st.dictionaries(st.text(max_size=3), JSON, max_size=3))
def test_whatever_a_model_calls_can_be_kept(call_id: str, name: str, arguments: dict[str, object]) -> None:
    """Numbers beyond all bounds, half characters in names: kept as it is, or told to the model as no object."""
    kept(read_call(call_id, name, json.dumps(arguments)))


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_that_no_store_keeps_make_no_call(number: str) -> None:
    read = read_call("\ud800", "re\ud83dad", f'{{"path": [{{"a": {number}}}]}}')
    assert read.arguments is None
    kept(read)


@pytest.mark.parametrize("told", [None, "7", -1, -0.5, math.nan, math.inf, 10**30, [7], {}])
def test_a_count_of_tokens_that_is_none_is_nothing(told: object) -> None:
    """A server that counts backwards or without end changes neither budget nor figure."""
    assert counted(told) == 0
    assert (counted(7), counted(7.0)) == (7, 7)
