"""When models, their servers or people send what nobody expects: answered or refused in one line, for both SDKs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gateway.agents import loop
from tests.fakes.script import (
    Asked,
    CallTool,
    Disconnect,
    End,
    Garbage,
    Say,
    Status,
    Step,
    Steps,
    Truncate,
    always,
    in_turn,
)
from tests.flow.models import DM, KINDS, asked_in, talking, told

if TYPE_CHECKING:
    from pathlib import Path

    from tests.flow.models import Talk

pytestmark = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "BASE_S", 0.01)


def echo(asked: Asked) -> Steps:
    return [Say(f"re: {asked.last_user}")]


def plain(talk: Talk) -> bool:
    """Nothing that people saw looks as if it came out of a program, and no reply but an answer has several lines."""
    seen = "\n".join(seen.text for seen in talk.channel.seen)
    return not any(word in seen for word in ("Traceback", "Error(", "Exception", 'File "', "httpx", "0x"))


# ── servers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "trouble",
    [
        [Status(429, {"retry-after": "0"})],
        [Status(529)],
        [Status(500, body=b"<html>oops</html>")],
        [Disconnect(reset=True)],
        [Truncate()],
        [Status(200, body="")],
        [Garbage(b"HTTP/1.1 999 \xff\xfe\r\n\r\n", bare=True), Disconnect()],
    ],
    ids=["429", "529", "500", "reset", "truncated", "nothing", "no HTTP"],
)
async def test_what_fails_before_a_word_was_shown_is_tried_again(
    kind: str, tmp_path: Path, trouble: list[Step]
) -> None:
    """The person sees the answer and nothing else."""
    script = in_turn(trouble, trouble, Say("Here I am."))
    async with talking(kind, script, tmp_path) as (talk, server):
        assert await talk.ask("hello") == "Here I am."
        assert talk.channel.shown() == ["Here I am."]
        assert len(server.requests) == 3
        assert told(asked_in(server)[2]) == [("user", "hello")]


@pytest.mark.parametrize("broken", [Disconnect(), Disconnect(reset=True), Truncate(), Status(529), Status(500)])
async def test_what_breaks_off_later_is_told_in_one_line(kind: str, tmp_path: Path, broken: Step) -> None:
    """It is not asked again: an answer is never shown twice. The next question is answered as ever."""
    async with talking(kind, in_turn([Say("I was about "), broken], Say("Here.")), tmp_path) as (talk, server):
        answer = await talk.ask("hello")
        assert answer.startswith("\"hello\" did not work: the model's answer broke off: the model's server ")
        assert "\n" not in answer
        assert talk.channel.live() == ""
        assert len(server.requests) == 1
        assert await talk.ask("again") == "Here."
        assert told(server.requests[1].asked) == [("user", "again")]
        assert plain(talk)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([Status(429)], "the model's server is overloaded (429) and did not recover within 5 tries; try again later"),
        ([Garbage(b"data: \xff\xfe\x00{]\n\n"), End()], "within 5 tries"),
        ([Garbage(b"data: [1, 2]\n\ndata: 7\n\n"), Truncate()], "within 5 tries"),
        ([Garbage(b"\x16\x03\x01\x02\x00\x01", bare=True), Disconnect()], "within 5 tries"),
        ([Status(401)], "the model's server refuses the key (401): check api_key_env in [agent.main]"),
        ([Status(404)], "the model's server does not know fake-large (404): check the model and base_url"),
        ([Status(400, message="prompt is too long: 9 > 8")], "the conversation is too long for the model"),
        ([Status(400, message="no\nsuch\nthing")], "the model's server refuses the request (400): no such thing"),
        ([Status(418, body=b"\xff\xfe" * 500)], "the model's server refuses the request (418)"),
    ],
    ids=["429", "bytes", "json", "no HTTP", "401", "404", "too long", "400", "418"],
)
async def test_a_server_that_does_not_recover_is_told_in_one_line(
    kind: str, tmp_path: Path, steps: list[Step], words: str
) -> None:
    async with talking(kind, always(*steps), tmp_path) as (talk, server):
        answer = await talk.ask("hello")
        assert answer.startswith('"hello" did not work: ')
        assert words in answer
        assert "\n" not in answer
        assert plain(talk)
        server.script = echo
        assert await talk.ask("better?") == "re: better?"


# ── models ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (CallTool("rm_rf", {"path": "/"}), "there is no tool 'rm_rf'; the tools are: spawn_subagent"),
        (CallTool("read_file", raw='{"path": '), 'not called: the arguments are not a JSON object: {"path": '),
        (CallTool("read_file", raw='["a"]'), "not called: the arguments are not a JSON object"),
        (CallTool("read_file", {"path": 7}), "read_file was called wrongly. path: "),
        (CallTool("read_file", {}), "read_file was called wrongly. path: Field required"),
        (CallTool("read_file", {"path": "a", "mode": "rw"}), "mode: Extra inputs are not permitted"),
        (CallTool("read_file", {"path": "\0"}), "There is no file"),
        (CallTool("delegate", {"agent": "nobody", "task": "x"}), "there is no tool 'delegate'"),
        (CallTool("schedule", {"when": "whenever", "message": "x"}), "whenever"),
        (CallTool("write_file", raw='{"path": "a.md", "content": "\\ud800"}'), "Wrote 3 bytes to a.md."),
        (CallTool("", {}), "there is no tool ''"),
        (CallTool("read_file", raw='{"path": NaN}'), "not called: the arguments are not a JSON object"),
        (CallTool("read_file", raw='{"path": 1e999}'), "not called: the arguments are not a JSON object"),
        (CallTool("schedule_hint", {"job": 10**30, "reason": "x"}), "not called: the arguments are not a JSON object"),
        (CallTool("read_file", raw='{"a":' * 300 + "1" + "}" * 300), "not called: the arguments are not a JSON object"),
    ],
)
async def test_a_call_that_makes_no_sense_is_told_to_the_model(
    kind: str, tmp_path: Path, call: CallTool, words: str
) -> None:
    """Which goes on, and the person sees its answer only. What was wrong stays in a history that servers take."""
    async with talking(kind, in_turn([call], Say("I see."), Say("Yes.")), tmp_path) as (talk, server):
        assert await talk.ask("go") == "I see."
        assert words in told(asked_in(server)[1])[-1][1]
        assert await talk.ask("sure?") == "Yes."
        assert len(asked_in(server)[2].messages) == 5


@pytest.mark.parametrize(
    ("steps", "answer"),
    [
        ([End()], "The model gave no answer. Ask again, or put it differently."),
        ([Say(" \n ")], "The model gave no answer. Ask again, or put it differently."),
        ([Say("It is"), End("length")], "It is\n\n(The answer ends here: it has reached 8192 tokens.)"),
        ([Say("\0 and \x1b[31m red")], "\ufffd and \x1b[31m red"),
        ([Say("x" * 100_000, chunk=9_999)], "x" * 100_000),
    ],
    ids=["nothing", "blank", "cut", "control", "long"],
)
async def test_answers_that_are_hardly_one(kind: str, tmp_path: Path, steps: list[Step], answer: str) -> None:
    async with talking(kind, in_turn(steps, Say("Fine.")), tmp_path) as (talk, server):
        assert await talk.ask("well?") == answer
        assert await talk.ask("well?") == "Fine."
        assert told(asked_in(server)[1])[0] == ("user", "well?")


# ── people ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("", "(no text)"),
        (" \n\t ", "(no text)"),
        ("long " * 40_000, "long " * 40_000),
        ("\x00\x01\x02\x1b[2J\x7f", "\ufffd\x01\x02\x1b[2J\x7f"),
        ("half \ud83d a pair \udc00", "half ? a pair ?"),
        ("\u202eright to left \U0001f9d1\u200d\U0001f680", "\u202eright to left \U0001f9d1\u200d\U0001f680"),
        ('"}]} </s> <|im_end|> \\u0000', '"}]} </s> <|im_end|> \\u0000'),
    ],
    ids=["empty", "blank", "200 kB", "control", "surrogates", "unicode", "json"],
)
async def test_whatever_people_send_reaches_the_model_and_is_kept(
    kind: str, tmp_path: Path, text: str, heard: str
) -> None:
    """It is answered, remembered, and sent again with the next question."""
    async with talking(kind, always(Say("Well.")), tmp_path) as (talk, server):
        assert await talk.ask(text) == "Well."
        assert told(asked_in(server)[0]) == [("user", heard)]
        assert await talk.ask("again") == "Well."
        assert told(asked_in(server)[1])[0] == ("user", heard)
        assert len(await talk.store.transcript(DM)) == 4
        assert plain(talk)
