"""Agents that are programs, through a whole gateway: the example in the docs, plain text, failures, rubbish."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.script import CallTool, Rule, Say, rules
from tests.flow.models import DM, OPEN, WEATHER, asked_in, limits, open_talk, program, thinking, told

if TYPE_CHECKING:
    from pathlib import Path

SUNNY = "It is sunny, and I noted that you asked."
AT_ONCE = ("env", "WEATHER_SECONDS=0", str(WEATHER))


def shell(*lines: str) -> str:
    """The agent `main`, a program of these lines."""
    return program("sh", "-c", "\n".join(lines))


# ── the example ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_example_answers_as_main(tmp_path: Path) -> None:
    """As it stands in the docs: work in progress, a tool, an answer; beside the file that names it."""
    shutil.copy(WEATHER, tmp_path)
    async with open_talk(tmp_path, program("./weather.sh")) as talk:
        assert await talk.ask("a hat?") == f"You asked: a hat?. {SUNNY}"
        assert talk.channel.shown() == ["looking outside … ", f"You asked: a hat?. {SUNNY}"]
        assert talk.channel.live() == ""
    assert (tmp_path / "data/workspace/main/asked.txt").read_text() == "somebody asked"
    assert len(WEATHER.read_text().splitlines()) <= 10


async def test_the_example_answers_the_words_that_it_was_asked(tmp_path: Path) -> None:
    """Quotes, line ends and other tongues included, also where there is a past."""
    async with open_talk(tmp_path, program(*AT_ONCE)) as talk:
        for text in ('"quoted" \\ text', "two\nlines", "schönes Wetter 🌞", '"texts": ["x"]', "100 % %s $HOME `id`"):
            assert await talk.ask(text) == f"You asked: {text}. {SUNNY}"


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_the_example_answers_a_model(kind: str, tmp_path: Path) -> None:
    """Three at once on the lane of delegates, each with its own task."""
    towns = ("Rome", "Oslo", "Lima")
    script = rules(
        Rule("towns", [CallTool("delegate", {"agent": "weather", "task": town}) for town in towns], "user"),
        Rule("sunny", [Say("Sunny everywhere.")], "tool"),
    )
    async with OPEN[kind](script) as server:
        agents = thinking(kind, server) + program(*AT_ONCE, name="weather")
        async with open_talk(tmp_path, agents) as talk:
            assert await talk.ask("the towns") == "Sunny everywhere."
        results = told(asked_in(server)[1])[-1][1].splitlines()
        assert results == [f"You asked: {town}. {SUNNY}" for town in towns]


# ── plain programs ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_a_plain_program_prints_is_the_answer(tmp_path: Path) -> None:
    async with open_talk(tmp_path, shell("echo hello", "echo", "echo '  world'")) as talk:
        assert await talk.ask("hi") == "hello\n\n  world"


async def test_a_program_knows_what_was_said_before(tmp_path: Path) -> None:
    """Until a new conversation begins."""
    async with open_talk(tmp_path, shell("read -r turn", 'printf "heard %s" "$turn"')) as talk:

        async def heard(text: str) -> dict[str, Any]:
            return dict(json.loads((await talk.ask(text)).removeprefix("heard ")))

        turn = await heard("one")
        assert (turn["texts"], turn["history"], turn["depth"]) == (["one"], [], 0)
        again = await heard("two")
        assert [line["role"] for line in again["history"]] == ["user", "assistant"]
        assert again["history"][0]["text"] == "one"
        await talk.ask("/new")
        assert (await heard("three"))["history"] == []


async def test_a_program_finds_no_secrets_in_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOCLAW_TELEGRAM_TOKEN", "12345:not-for-programs")
    async with open_talk(tmp_path, shell("env")) as talk:
        answer = await talk.ask("what do you see?")
        assert "GOCLAW_TRACE_ID=" in answer
        assert "not-for-programs" not in answer


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["echo half", "echo first >&2", "echo 'no key found' >&2", "exit 3"], "sh failed with status 3: no key found"),
        (["exit 1"], "sh failed with status 1"),
        (["kill -9 $$"], "sh was ended by signal 9"),
        (["cat <<'END'", '{"type":"error","text":"I give\\nup"}', "END"], "I give up"),
        (['echo \'{"type":"text","text":"a"}\'', "echo rubbish"], "no JSON object with a type: 'rubbish'"),
        (['echo \'{"type":"dance"}\''], "a line of unknown type 'dance'"),
        (['echo \'{"type":"usage","tokens_in":2000}\''], "this took 2,000 tokens, more than the 1,000"),
    ],
    ids=["status", "silent", "signal", "error", "rubbish", "type", "budget"],
)
async def test_a_program_that_fails_is_told_in_one_line(tmp_path: Path, lines: list[str], words: str) -> None:
    """With the last that it said; nothing of its half answer stays, and the next turn is a new process."""
    async with open_talk(tmp_path, shell(*lines) + limits(tokens=1_000)) as talk:
        for _ in range(2):
            answer = await talk.ask("go")
            assert answer.startswith('"go" did not work: ')
            assert words in answer
            assert "\n" not in answer
            assert "Traceback" not in answer
            assert talk.channel.live() == ""
        assert await talk.store.transcript(DM) == ()


@pytest.mark.parametrize("name", ["./none.sh", "no-such-program-anywhere"])
async def test_a_program_that_is_not_there_is_told_in_one_line(tmp_path: Path, name: str) -> None:
    async with open_talk(tmp_path, program(name)) as talk:
        answer = await talk.ask("go")
        assert "was not found: check command in agents.toml" in answer
        assert "\n" not in answer


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_a_model_reads_how_its_delegate_failed(kind: str, tmp_path: Path) -> None:
    """And goes on without it."""
    script = rules(
        Rule("ask", [CallTool("delegate", {"agent": "broken", "task": "x"})], "user"),
        Rule("failed with status 3: no key", [Say("It is broken.")], "tool"),
    )
    async with OPEN[kind](script) as server:
        broken = program("sh", "-c", "echo no key >&2; exit 3", name="broken")
        async with open_talk(tmp_path, thinking(kind, server) + broken) as talk:
            assert await talk.ask("ask it") == "It is broken."


# ── rubbish ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text", ["", "long " * 40_000, "\x00\x01\x1b[2J", "half \ud83d", "\u202e\U0001f9d1\u200d\U0001f680", '"}]}'],
    ids=["empty", "200 kB", "control", "surrogate", "unicode", "json"],
)  # fmt: skip
async def test_whatever_people_send_reaches_the_program(tmp_path: Path, text: str) -> None:
    """And whatever it makes of that is an answer."""
    counting = shell("read -r turn", 'printf "%s" "$turn" | wc -c')
    async with open_talk(tmp_path, counting) as talk:
        assert int(await talk.ask(text)) > len(text)
        assert int(await talk.ask("again")) > len(text)


@pytest.mark.parametrize(
    ("prints", "answer"),
    [
        (r"printf '\377\376 bytes'", "\ufffd\ufffd bytes"),
        (r"printf 'a\000b'", "a\ufffdb"),
        ("true", "The program gave no answer."),
        ("""echo '{"type":"answer","text":"\\ud800"}'""", "\ufffd"),
        ("""echo '{"no":"type"}'""", '{"no":"type"}'),
    ],
)
async def test_whatever_a_program_prints_can_be_sent_and_kept(tmp_path: Path, prints: str, answer: str) -> None:
    async with open_talk(tmp_path, shell(prints)) as talk:
        assert await talk.ask("go") == answer
        assert await talk.ask("go") == answer
        assert (await talk.store.transcript(DM))[1].said.text == answer
