"""Commands: what counts as one, and the words they are answered with."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.commands import COMMANDS, Command, help_text, parse_command, status_text, stop_text, unknown_text
from gateway.plain import counted, excerpt, joined
from scheduler import LaneStatistics, SchedulerStatistics, SessionStatistics, Stopped, WaitTimes

counts = st.integers(min_value=0, max_value=3)
stops = st.builds(Stopped, counts, counts, counts, counts, counts, counts, counts, counts)

FREE = LaneStatistics("main", 2, 0, 0, 0, 0, 0, {}, WaitTimes(0, 0, 0, 0), 0)
QUIET = SchedulerStatistics((FREE,), 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "text",
    [
        "/stop",
        "/STOP",
        "/Stop",
        "/stop ",
        " /stop",
        "\t/stop\n",
        "/stop\r\n",
        "/stop!",
        "/stop...",
        "/stop…",
        "/stop ?!",
        "/stop@goclaw_bot",
        "/STOP@GoClaw_Bot",
        "/stop@goclaw_bot!",
        "/stop@bot now",
        "/stop now",
        "/stop, please",
        "\xa0/stop\xa0",
        "/stop\u3000",
        "/stop\nplease",
        "/stop; 🙏",
    ],
)
def test_stop_is_understood_as_people_type_it(text: str) -> None:
    """Upper case, the bot's name, blanks and punctuation do not matter. (lesson 20)"""
    command = parse_command(text)
    assert command is not None
    assert (command.name, command.stops, command.known) == ("stop", True, True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "/",
        "//",
        "stop",
        "please /stop",
        "/etc/hosts",
        "/usr/bin/env python",
        "/stop/",
        "/stop/all",
        "/a.b",
        "/1",
        "/_x",
        "/-h",
        "/ stop",
        "/stop-it",
        "/stop@",
        "/stop@a/b",
        "http://x.org/stop",
        "./stop",
        "\\stop",
        "/стоп",
        "/停止",
        "/\u017ftop",
        "/sto\u0440",
        "/\u200bstop",
        "\u2215stop",
        "x\n/stop",
    ],
)
def test_everything_else_is_text(text: str) -> None:
    """Paths, sums, other alphabets and words behind other words go to the agent as they are."""
    assert parse_command(text) is None


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("/x", ""),
        ("/x  a b ", "a b"),
        ("/x@bot a", "a"),
        ("/x\na\n b\n", "a\n b"),
        ("/x: a: b", "a: b"),
        ("/x /y", "/y"),
    ],
)
def test_what_follows_a_command_is_kept(text: str, rest: str) -> None:
    """The rest comes without the blanks around it, line ends inside it included."""
    assert parse_command(text) == Command("x", rest)


@given(st.sampled_from(sorted(COMMANDS)), st.sampled_from(["", "@bot", "@A_1"]), st.text(" \t\n.,;:!?…", max_size=6))
def test_no_ending_hides_a_command(name: str, bot: str, ending: str) -> None:
    """Whatever blanks and punctuation follow, the command is recognised. (lesson 20)"""
    command = parse_command(f"/{name.upper()}{bot}{ending}")
    assert command is not None
    assert command.name == name


@given(st.text())
def test_any_text_is_read_without_trouble(text: str) -> None:
    """Whatever people send is a command or a text, never an error; a command's name is plain."""
    command = parse_command(text)
    assert command is None or re.fullmatch("[a-z][a-z0-9_]*", command.name)


def test_the_list_names_every_command() -> None:
    """What can be typed is in the list, each on a line of its own, and an unknown command is answered with it."""
    listed = [line.split()[0] for line in help_text().splitlines()[1:]]
    assert listed == [f"/{name}" for name in COMMANDS]
    unknown = Command("stpo")
    assert not unknown.known
    assert unknown_text(unknown) == f"There is no command /stpo.\n{help_text()}"


def test_a_very_long_unknown_command_is_not_repeated_in_full() -> None:
    """The answer to nonsense stays short enough for any channel."""
    assert len(unknown_text(Command("x" * 10_000))) < 1000


@pytest.mark.parametrize(
    ("stopped", "text"),
    [
        (Stopped(), "Nothing to stop: nothing runs or waits here."),
        (Stopped(running=1), "Stopped 1 run."),
        (Stopped(running=2), "Stopped 2 runs."),
        (Stopped(running=1, left=1), "Stopped 1 run; 1 message still waiting."),
        (Stopped(running=1, left=2), "Stopped 1 run; 2 messages still waiting."),
        (Stopped(buffered=1), "Stopped 1 waiting message."),
        (Stopped(queued=1), "Stopped 1 waiting message."),
        (Stopped(waiting=1), "Stopped 1 waiting message."),
        (Stopped(buffered=1, queued=2, waiting=1), "Stopped 4 waiting messages."),
        (Stopped(children=1), "Stopped 1 helper."),
        (Stopped(running=1, children=3), "Stopped 1 run and 3 helpers."),
        (Stopped(running=1, queued=1), "Stopped 1 run and 1 waiting message."),
        (Stopped(running=2, children=1, waiting=3), "Stopped 2 runs, 1 helper and 3 waiting messages."),
        (Stopped(stopping=1), "Already stopping."),
        (Stopped(stopping=1, left=1), "Already stopping; 1 message still waiting."),
        (Stopped(finishing=1), "Too late to stop: the answer is on its way."),
        (Stopped(finishing=1, left=2), "Too late to stop: the answer is on its way; 2 messages still waiting."),
        (Stopped(stopping=1, finishing=1), "Already stopping."),
        (Stopped(running=1, stopping=1, finishing=1), "Stopped 1 run."),
    ],
)
def test_a_stop_says_what_it_did(stopped: Stopped, text: str) -> None:
    """One sentence with true counts, whatever was found. (Q8, L10)"""
    assert stop_text(stopped) == text


def test_what_came_together_with_the_stop_is_counted() -> None:
    """Messages of the same batch that never reached a queue are part of the count. (Q8)"""
    assert stop_text(Stopped(), also_messages=1) == "Stopped 1 waiting message."
    assert stop_text(Stopped(running=1, queued=1), also_messages=1) == "Stopped 1 run and 2 waiting messages."


@given(stops, counts)
def test_the_words_of_a_stop_fit_its_counts(stopped: Stopped, more: int) -> None:
    """One line, one full stop, singular and plural where they belong, every number true. (Q8)"""
    text = stop_text(stopped, also_messages=more)
    assert re.fullmatch(r"[A-Z][^.\n]*\.", text)
    assert not re.search(
        r"\b1 (runs|helpers|(waiting )?messages)\b|\b[023456789] (run|helper|(waiting )?message)\b", text
    )
    messages = stopped.messages + more
    told = {"run": stopped.running, "helper": stopped.children, "waiting message": messages}
    for noun, number in told.items():
        assert (f"{counted(number, noun)}" in text) == bool(number)


@given(stops)
@example(Stopped(left=2))
def test_nothing_waits_is_said_only_when_nothing_waits(stopped: Stopped) -> None:
    """A member whose own work is done, while that of others waits, is not told that nothing waits. (Q8, lesson 23)"""
    text = stop_text(stopped)
    assert ("nothing runs or waits here" in text) <= (stopped.left == 0)
    assert bool(re.search("still wait", text)) == bool(stopped.left)


@pytest.mark.parametrize(
    ("here", "line"),
    [
        (SessionStatistics("s"), "Here: 0 running, 0 waiting."),
        (SessionStatistics("s", buffered=1, waiting=2, steering=3), "Here: 0 running, 6 waiting."),
        (SessionStatistics("s", running=2, stopping=1), "Here: 2 running (1 stopping), 0 waiting."),
        (
            SessionStatistics("s", running=1, throttled=True),
            "Here: 1 running, 0 waiting; one at a time because the history is long.",
        ),
    ],
)
def test_the_status_begins_with_this_conversation(here: SessionStatistics, line: str) -> None:
    """What runs and what waits here, wherever it waits, and why it may be slow."""
    assert status_text(here, QUIET).splitlines()[0] == line


@pytest.mark.parametrize(
    ("lane", "line"),
    [
        (FREE, "  main       0 of 2 running"),
        (replace(FREE, active=2, waiting=1, oldest_wait_s=0.4), "  main       2 of 2 running, 1 waiting"),
        (
            replace(FREE, active=2, waiting=3, oldest_wait_s=61.4),
            "  main       2 of 2 running, 3 waiting, the oldest for 61 s",
        ),
        (replace(FREE, parked=1), "  main       0 of 2 running, 1 waiting for helpers"),
        (replace(FREE, active=1, stuck=1), "  main       1 of 2 running, 1 stuck"),
        (replace(FREE, name="subagent", limit=4), "  subagent   0 of 4 running"),
    ],
)
def test_the_status_has_a_line_for_each_lane(lane: LaneStatistics, line: str) -> None:
    """Limit, use, and what is out of the ordinary; nothing is said about what is zero. (L1)"""
    text = status_text(SessionStatistics("s"), replace(QUIET, lanes=(FREE, lane)))
    assert text.splitlines()[1:] == ["Lanes:", "  main       0 of 2 running", line]


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("", ""),
        ("hello", "hello"),
        ("  two\n\nlines\t here ", "two lines here"),
        ("x" * 40, "x" * 40),
        ("x" * 41, "x" * 39 + "…"),
        ("a word " * 10, "a word a word a word a word a word a wo…"),
        ("x" * 38 + " yz", "x" * 38 + "…"),
    ],
)
def test_an_excerpt_is_one_short_line(text: str, short: str) -> None:
    """Enough to recognise a message by, never more than forty characters."""
    assert excerpt(text) == short


@given(st.text(), st.integers(min_value=2, max_value=60))
def test_an_excerpt_is_never_longer_than_asked(text: str, length: int) -> None:
    """Whatever the text, it fits, stays on one line, and a short text is whole."""
    short = excerpt(text, length)
    assert len(short) <= length
    assert "\n" not in short
    if len(" ".join(text.split())) <= length:
        assert short.split() == text.split()


def test_lists_read_like_sentences() -> None:
    """One, two and three things."""
    assert joined(["a"]) == "a"
    assert joined(["a", "b"]) == "a and b"
    assert joined(["a", "b", "c"]) == "a, b and c"
