"""The promises of agents that are programs: whatever the program does, nothing of it is left afterwards."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from gateway.agents import processes
from gateway.agents.command import NO_ANSWER, CommandAgent
from gateway.agents.spec import AgentSpec
from gateway.agents.workspace import Workspace
from gateway.protocols import AgentError, AgentReply, ToolResult, Turn, Usage
from store.records import Role, Said
from tests.unit.gateway.agents.acting import SESSION, ActingContext, a_turn

if TYPE_CHECKING:
    from collections.abc import Mapping

SOON_S = 20.0
TASKS = Path("/proc/self/task")

SPEAK = """
import json, sys
def hear(): return json.loads(sys.stdin.readline())
def say(type, **rest): print(json.dumps({"type": type, **rest}), flush=True)
turn = hear()
"""


class Desk:
    """A place where commands are run."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "workspace" / "main"
        self.context = ActingContext()

    def agent(self, *command: str, environ: Mapping[str, str] | None = None, stdin: str = "open") -> CommandAgent:
        spec = AgentSpec("main", "command", command=command, steer=True, stdin=stdin)  # type: ignore[arg-type]
        return CommandAgent(spec, Workspace(self.root), environ)

    async def run(self, *command: str, turn: Turn | None = None, stdin: str = "open") -> AgentReply:
        with trio.fail_after(SOON_S):
            return await self.agent(*command, stdin=stdin).run(turn or a_turn(), self.context)

    async def shell(self, script: str) -> AgentReply:
        return await self.run("sh", "-c", script)

    async def python(self, script: str, turn: Turn | None = None) -> AgentReply:
        return await self.run(sys.executable, "-I", "-c", SPEAK + textwrap.dedent(script), turn=turn)

    async def fails(self, script: str) -> str:
        with pytest.raises(AgentError) as caught:
            await self.shell(script)
        assert "\n" not in str(caught.value)
        return str(caught.value)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and only waits to be cleared away does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


# ── plain text ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_a_program_prints_is_the_answer(desk: Desk) -> None:
    reply = await desk.shell("printf 'Hello '; echo there")
    assert reply == AgentReply("Hello there")
    assert "".join(desk.context.shown) == "Hello there\n"
    assert desk.context.asked == ["sh"]


async def test_text_is_shown_before_the_program_ends(desk: Desk) -> None:
    """It is shown while the program still waits, without even a line end."""
    replies: list[AgentReply] = []

    async def run() -> None:
        replies.append(await desk.shell("printf 'one '; while ! test -e go; do sleep 0.01; done; echo two"))

    with trio.fail_after(SOON_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await desk.context.has_shown.wait()
            assert desk.context.shown == ["one "]
            await trio.Path(desk.root / "go").touch()
    assert replies[0].text == "one two"


async def test_the_program_gets_the_turn(desk: Desk) -> None:
    turn = a_turn("a", "b", history=(Said(Role.USER, "x"), Said(Role.ASSISTANT, "y")), depth=1)
    reply = await desk.python("print(json.dumps([turn]))", turn)
    (told,) = json.loads(reply.text)
    assert [told.pop("tools")[0]["name"], *told.items()] == [
        "echo",
        ("type", "turn"),
        ("agent", "main"),
        ("session", str(SESSION)),
        ("texts", ["a", "b"]),
        ("history", [{"role": "user", "text": "x"}, {"role": "assistant", "text": "y"}]),
        ("depth", 1),
    ]


async def test_the_program_works_in_the_workspace_with_an_environment_of_its_own(desk: Desk) -> None:
    secrets = {"GOCLAW_ANTHROPIC_API_KEY": "secret", "AWS_SECRET": "secret", "PATH": os.environ["PATH"], "HOME": "/h"}
    agent = desk.agent("sh", "-c", "pwd; env", environ=secrets)
    reply = await agent.run(a_turn(GOCLAW_TRACE_ID="t1"), desk.context)
    assert reply.text.splitlines()[0] == str(desk.root)
    assert "secret" not in reply.text
    assert "GOCLAW_TRACE_ID=t1" in reply.text
    assert "HOME=/h" in reply.text


async def test_bad_bytes_are_replaced(desk: Desk) -> None:
    assert (await desk.shell(r"printf 'a\377\000b'")).text == "a\ufffd\ufffdb"


@pytest.mark.parametrize("text", ["{", '{"a": 1}', '{"type": 3}', "{not json\nmore", "[1]", '{"type"'])
async def test_what_only_begins_like_json_is_text(desk: Desk, text: str) -> None:
    assert (await desk.run("printf", "%s", text)).text == text


async def test_no_output_is_told(desk: Desk) -> None:
    assert (await desk.run("true")).text == NO_ANSWER


async def test_a_program_that_reads_to_the_end_can_have_one(desk: Desk) -> None:
    reply = await desk.run("sh", "-c", "wc -l", stdin="closed")
    assert reply.text == "1"


async def test_a_program_that_never_reads_is_no_trouble(desk: Desk) -> None:
    """A turn larger than the pipe waits beside the answer, not before it."""
    huge = a_turn("x" * 1_000_000)
    assert (await desk.run("echo", "fine", turn=huge)).text == "fine"
    assert (await desk.run("sh", "-c", "exec 0<&-; echo fine", turn=huge)).text == "fine"


async def test_too_much_output_is_an_error_and_the_end(desk: Desk) -> None:
    for endless in ("yes", "yes ''", "yes ' ' | tr -d '\\n'"):
        assert "more than 1000000 characters" in await desk.fails(endless)
    assert "a line of more than" in await desk.fails("""echo '{"type":"show","text":""}'; yes | tr -d '\\n'""")


async def test_blanks_before_the_first_word_change_nothing(desk: Desk) -> None:
    assert (await desk.shell("echo; sleep 0.05; echo '  '; echo fine")).text == "fine"
    assert (await desk.shell("""echo; sleep 0.05; echo '{"type":"text","text":"fine"}'""")).text == "fine"


# ── JSON lines ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_pieces_make_the_answer_and_progress_does_not(desk: Desk) -> None:
    reply = await desk.python(
        """
        say("show", text="thinking ")
        say("text", text="Hello ")
        say("usage", tokens_in=3, tokens_out=4)
        sys.stdout.write(json.dumps({"type": "text", "text": "you"}))  # no line end
        """
    )
    assert reply == AgentReply("Hello you")
    assert desk.context.shown == ["thinking ", "Hello ", "you"]
    assert desk.context.spent == Usage(3, 4)


async def test_an_answer_takes_the_place_of_the_pieces(desk: Desk) -> None:
    assert (await desk.python('say("text", text="draft"); say("answer", text="final")')).text == "final"


async def test_tools_are_called_at_once_and_answered_by_id(desk: Desk) -> None:
    started: list[str] = []
    both = trio.Event()

    async def together(arguments: Mapping[str, object]) -> ToolResult:
        started.append(str(arguments["text"]))
        if len(started) == 2:
            both.set()
        await both.wait()
        return ToolResult(f"got {arguments['text']}")

    desk.context.doing["echo"] = together
    reply = await desk.python(
        """
        say("tool", id=1, name="echo", arguments={"text": "a"})
        say("tool", id="two", name="echo", arguments={"text": "b"})
        say("tool", id=3, name="fail", arguments={})
        say("tool", id=4, name="echo", arguments="no object")
        say("tool", id=5)
        results = {str(r["id"]): [r["type"], r["ok"], r["text"]] for r in (hear() for _ in range(5))}
        say("answer", text=json.dumps(results))
        """
    )
    assert json.loads(reply.text) == {
        "1": ["result", True, "got a"],
        "two": ["result", True, "got b"],
        "3": ["result", False, "it failed"],
        "4": ["result", False, "expected a name and arguments that are an object"],
        "5": ["result", False, "expected a name and arguments that are an object"],
    }


async def test_steering_is_heard_and_remembered(desk: Desk) -> None:
    desk.context.said_meanwhile = ["and milk"]
    reply = await desk.python('say("steering"); say("answer", text=" ".join(hear()["texts"]))')
    assert reply == AgentReply("and milk", (Said(Role.USER, "hello"), Said(Role.USER, "and milk")))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"type": "error", "text": "no\\nluck"}', "no luck"),
        ('{"type": "error"}', "did not say why"),
        ('{"type": "dance"}', "unknown type 'dance'"),
        ('{"type": "text", "text": 3}', "without a text"),
        ('{"type": "usage", "tokens_in": -1}', "no whole number"),
        ('{"type": "show", "text": "x"}\nTraceback', "no JSON object with a type: 'Traceback'"),
    ],
)
async def test_rubbish_is_one_line_for_the_person(desk: Desk, line: str, told: str) -> None:
    with pytest.raises(AgentError) as caught:
        await desk.run("printf", "%s\n", line)
    assert told in str(caught.value)


async def test_a_turn_that_costs_too_much_ends_the_program(desk: Desk) -> None:
    desk.context.tokens = 5
    with pytest.raises(AgentError, match="more tokens"):
        await desk.python('say("usage", tokens_in=3, tokens_out=4)\nimport time\ntime.sleep(60)')


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_failure_is_told_with_its_last_words(desk: Desk) -> None:
    assert await desk.fails("echo noise >&2; echo 'no such model' >&2; exit 3") == (
        "the program sh failed with status 3: no such model"
    )
    assert await desk.fails("kill -9 $$") == "the program sh was ended by signal 9"


async def test_a_program_that_cannot_be_started_is_told(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="was not found"):
        await desk.run("no-such-program-anywhere")
    await trio.Path(tmp_path / "notes").write_text("no program")
    with pytest.raises(AgentError, match="may not be run"):
        await desk.run(str(tmp_path / "notes"))


async def stop(desk: Desk, script: str) -> tuple[int, float]:
    """Stop a program that prints a pid; which one that was, and how long the stop took."""
    with trio.fail_after(SOON_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk.shell, script)
            await desk.context.has_shown.wait()
            pid = int(desk.context.shown[0])
            before = trio.current_time()
            nursery.cancel_scope.cancel()
        return pid, trio.current_time() - before


async def test_a_stop_ends_the_program_and_its_children(desk: Desk) -> None:
    pid, took = await stop(desk, "sleep 600 & echo $!; wait")
    assert not alive(pid)
    assert took < processes.GRACE_S


async def test_a_program_may_put_things_in_order(desk: Desk) -> None:
    await stop(desk, "trap 'echo ended > last; exit' TERM; echo $$; while :; do sleep 0.01; done")
    assert await trio.Path(desk.root / "last").read_text() == "ended\n"


async def test_a_program_that_ignores_the_stop_is_killed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.3)
    pid, took = await stop(desk, "trap '' TERM; echo $$; while :; do sleep 0.05; done")
    assert not alive(pid)
    assert took >= 0.3


async def test_children_that_were_left_behind_are_ended(desk: Desk) -> None:
    """Also if they hold the output open, and the answer does not wait for them."""
    before = trio.current_time()
    reply = await desk.shell("sleep 600 & echo $!")
    assert not alive(int(reply.text))
    assert trio.current_time() - before < 5


LEFT_THE_GROUP = {
    "a group of its own": "set -m; sleep 600 & echo $!; wait",
    "a session of its own": "setsid sh -c 'echo $$; exec sleep 600' & wait",
    "an orphan that is deaf": "(setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.05; done' &); sleep 600",
}


@pytest.mark.parametrize("script", LEFT_THE_GROUP.values(), ids=LEFT_THE_GROUP)
async def test_a_stop_reaches_children_that_have_left_the_group(
    desk: Desk, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was started by the program goes with it, wherever it went. (lesson 22)"""
    monkeypatch.setattr(processes, "GRACE_S", 0.3)
    pid, _ = await stop(desk, script)
    assert not alive(pid)


async def test_a_daemon_that_a_program_leaves_behind_is_ended(desk: Desk) -> None:
    """Neither does it outlive an answer."""
    reply = await desk.shell("setsid sh -c 'echo $$; exec sleep 600 >/dev/null 2>&1' & sleep 0.2")
    assert not alive(int(reply.text))


async def test_another_program_goes_on(desk: Desk) -> None:
    """Only what the stopped program has started is ended, not what runs beside it."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.shell, "setsid sh -c 'echo $$; exec sleep 600' & wait")
        await desk.context.has_shown.wait()
        beside = int(desk.context.shown[0])
        assert (await desk.shell("setsid sleep 600 & echo fine")).text == "fine"
        assert alive(beside)
        nursery.cancel_scope.cancel()
    assert not alive(beside)


async def test_nothing_is_left_open(desk: Desk) -> None:
    """Neither descriptors nor children, after a good end, a bad one and a stop."""
    await desk.shell("echo warm")
    before = descriptors(), children()
    for script in ("echo fine", "exit 3", 'echo \'{"type":"error"}\'; sleep 600'):
        with suppress(AgentError):
            await desk.shell(script)
    desk.context = ActingContext()
    await stop(desk, "echo $$; sleep 600")
    assert (descriptors(), children()) == before


def children() -> list[int]:
    found = ((task / "children").read_text().split() for task in TASKS.iterdir())
    return [int(pid) for pids in found for pid in pids]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
