"""A stop is seen wherever the work is: answered while the obstacle is still there, and nothing comes of it afterwards.

The agents are real ones over a model's server on loopback. What the model waits for is an event that the test sets only
at the very end, so "at once" is no matter of seconds: had the answer waited for the model, it had never come.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import psutil
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from gateway.agents import processes
from gateway.agents.workspace import Workspace
from tests.fakes.script import CallTool, Rule, Say, Status, Wait, rules
from tests.flow.models import open_talk
from tests.flow.thinking import open_thinking
from tests.flow.world import incoming

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from tests.fakes.script import Asked, Script, Steps
    from tests.flow.thinking import Sdk, Thinking

LOOSE_S = 10.0
"""A second, on a machine that has other things to do."""
SOON_S = 30.0
DEEPEST = 3

both = pytest.mark.parametrize("stop", ["/stop", "/stopall"])
every_sdk = pytest.mark.parametrize("sdk", ["openai", "anthropic"])


class Scene:
    """A gateway whose model says nothing more until it is let go."""

    def __init__(self, world: Thinking, let_go: trio.Event) -> None:
        self.world = world
        self.let_go = let_go
        self.server = world.server
        self.channel = world.channel
        self._before = 0

    async def stop(self, word: str) -> str:
        """The answer to a stop, which comes while all else is held; nothing is on the screen then. (lesson 24)"""
        with trio.fail_after(LOOSE_S):
            answer = await self.world.ask(word)
        self._before = max(place for place, one in enumerate(self.channel.seen) if one.text == answer)
        assert not self.let_go.is_set()
        assert self.channel.live() == ""
        return answer

    async def over(self, *, asked: int, kinds: Mapping[str, int]) -> None:
        """The stopped runs have ended, as their traces say, and have cut their requests; the next message works."""
        await self.world.gateway.drained()
        await self.server.until(lambda: not self.server.open)  # the model is held: only the gateway has ended them
        assert len(self.server.requests) == asked
        traces = self.world.ended()
        assert Counter(trace.kind for trace in traces) == kinds
        assert {trace.status for trace in traces} <= {"cancelled"}
        assert self.world.gateway.scheduler.statistics().running == 0
        await self.next_works()
        assert len(self.server.requests) == asked + 1

    async def next_works(self) -> None:
        """Nothing but the answer to the next message comes after the answer to the stop. (lesson 21)"""
        self.let_go.set()
        assert await self.world.ask("next") == "You said: next"
        await self.world.gateway.drained()
        seen = [one for one in self.channel.seen[self._before :] if one.chat == "dm" and one.kind != "clear"]
        assert [one.kind for one in seen if one.kind != "live"] == ["reply", "reply"]
        assert "".join(one.text for one in seen if one.kind == "live") == "You said: next"
        assert await self.world.store.resume() == ()


def script(let_go: trio.Event) -> Script:
    held: Steps = [Say("thinking"), Wait(let_go), Say(" of this and that")]

    def deeper(asked: Asked) -> Steps:
        level = int(asked.last_user.split()[1]) + 1
        if level > DEEPEST:
            return held
        return [CallTool("spawn_subagent", {"task": f"{word} {level}"}) for word in ("deep", "hold")]

    def answer(asked: Asked) -> Steps:
        return deeper(asked) if asked.last_user.startswith("deep") else [Say(f"You said: {asked.last_user}", chunk=4)]

    return rules(
        Rule("^hold", held),
        Rule("^silence", [Wait(let_go)]),
        Rule("^busy", [Status(429, {"retry-after": "60"})]),
        Rule("^read", [CallTool("read_file", {"path": "notes.md"})]),
        Rule("^write", [CallTool("write_file", {"path": "notes.md", "content": "noted"})]),
        Rule("^Wrote", held, role="tool"),
        Rule("^research", [CallTool("delegate", {"agent": "research", "task": "hold and look it up"})]),
        Rule("^program", [CallTool("delegate", {"agent": "program", "task": "stay"})]),
        otherwise=answer,
    )


@asynccontextmanager
async def open_scene(
    place: Path, sdk: Sdk = "openai", programs: Mapping[str, tuple[str, ...]] | None = None, **variables: object
) -> AsyncIterator[Scene]:
    let_go = trio.Event()
    with trio.fail_after(SOON_S):
        async with open_thinking(place, script(let_go), sdk, programs, **variables) as world:
            yield Scene(world, let_go)


# ── before the model is asked ────────────────────────────────────────────────────────────────────────────────────────


@both
async def test_in_the_debounce_window(tmp_path: Path, stop: str) -> None:
    """What was only just typed never comes to the model. (lesson 18)"""
    async with open_scene(tmp_path, queue_debounce=60_000) as scene:
        await scene.world.say("hold", "on")
        assert await scene.stop(stop) == "Stopped 2 waiting messages."
        await scene.world.gateway.drained()
        await scene.world.say("next")
        await scene.world.ask("/queue")  # what was written before it goes at once
        await scene.world.gateway.drained()
        assert scene.world.asked() == ["next"]
        assert scene.channel.replies()[-1] == "You said: next"


@both
@every_sdk
async def test_in_the_queue(tmp_path: Path, stop: str, sdk: Sdk) -> None:
    """`/stop` ends the run and what waits behind it goes on; `/stopall` ends both. (lesson 18)"""
    async with open_scene(tmp_path, sdk) as scene:
        await scene.world.say("hold", "behind")
        await scene.channel.until(lambda: scene.channel.live() == "thinking")
        said = await scene.stop(stop)
        if stop == "/stopall":
            assert said == "Stopped 1 run and 1 waiting message."
            await scene.over(asked=1, kinds={"message": 1})
        else:
            assert said == "Stopped 1 run; 1 message still waiting."
            await scene.world.gateway.drained()
            assert scene.channel.replies() == [said, "You said: behind"]
            assert [trace.status for trace in scene.world.ended()] == ["cancelled", "done"]
        assert scene.server.requests[0].cut


@both
async def test_while_it_waits_for_a_slot(tmp_path: Path, stop: str) -> None:
    """Stopped while others have every slot, it never comes to the model; the others notice nothing. (lessons 12, 18)"""
    async with open_scene(tmp_path, lane_main=2) as scene:
        for chat in ("one", "two"):
            await scene.world.say("hold", chat=chat)
        await scene.server.until(lambda: len(scene.server.open) == 2)
        await scene.world.say("waits", "waits behind it")
        assert await scene.stop(stop) == "Stopped 2 waiting messages."
        assert len(scene.server.open) == 2
        await scene.next_works()
        assert scene.world.asked() == ["hold", "hold", "next"]
        assert scene.channel.replies("one") == scene.channel.replies("two") == ["thinking of this and that"]
        assert [trace.status for trace in scene.world.ended()] == ["done"] * 3


# ── at the model ─────────────────────────────────────────────────────────────────────────────────────────────────────


@both
@every_sdk
@pytest.mark.parametrize("model", ["hold", "silence"])
async def test_in_a_model_call(tmp_path: Path, stop: str, sdk: Sdk, model: str) -> None:
    """In the middle of its answer or before the first word: the connection is cut. The message and its stop come in
    by one task, one after the other, as from a channel. (lessons 18, 19)"""
    async with open_scene(tmp_path, sdk) as scene:
        await scene.world.say(model)
        await scene.server.until(lambda: scene.server.open)
        if model == "hold":
            await scene.channel.until(lambda: scene.channel.live() == "thinking")
        assert await scene.stop(stop) == "Stopped 1 run."
        await scene.over(asked=1, kinds={"message": 1})
        assert scene.server.requests[0].cut


@both
@every_sdk
async def test_in_a_retry_back_off(tmp_path: Path, stop: str, sdk: Sdk) -> None:
    """The pause before the next try ends at once and there is no next try. (lesson 18)"""
    async with open_scene(tmp_path, sdk) as scene:
        await scene.world.say("busy")
        await scene.server.until(lambda: any(request.finished for request in scene.server.requests))
        await wait_all_tasks_blocked(0.01)
        assert scene.world.gateway.busy
        assert await scene.stop(stop) == "Stopped 1 run."
        await scene.over(asked=1, kinds={"message": 1})


# ── at its tools ─────────────────────────────────────────────────────────────────────────────────────────────────────


@both
@every_sdk
async def test_in_a_tool_call(tmp_path: Path, stop: str, sdk: Sdk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool ends, and the model never hears what came of it. (lesson 18)"""
    called = trio.Event()

    async def endless(self: Workspace, path: str) -> str:
        called.set()
        await trio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(Workspace, "read_file", endless)
    async with open_scene(tmp_path, sdk) as scene:
        await scene.world.say("read it")
        await called.wait()
        assert await scene.stop(stop) == "Stopped 1 run."
        await scene.over(asked=1, kinds={"message": 1})
        assert [span.status for span in scene.world.ended()[0].spans if span.kind == "tool"] == ["cancelled"]


@both
async def test_in_a_tool_that_cannot_be_left(tmp_path: Path, stop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk hangs in the middle of a write: the stop is answered all the same, the next message waits for the disk,
    and the model is told nothing of it. (lesson 11, Q4)"""
    disk, writing = threading.Event(), threading.Event()
    write = Workspace._write

    def hanging(self: Workspace, names: tuple[str, ...], data: bytes) -> None:
        writing.set()
        disk.wait(SOON_S)
        write(self, names, data)

    monkeypatch.setattr(Workspace, "_write", hanging)
    async with open_scene(tmp_path) as scene:
        await scene.world.say("write it")
        await trio.to_thread.run_sync(writing.wait, SOON_S)
        assert await scene.stop(stop) == "Stopped 1 run."
        await scene.world.say("next")
        await wait_all_tasks_blocked(0.01)
        assert scene.world.asked() == ["write it"]
        disk.set()
        await scene.world.gateway.drained()
        assert (tmp_path / "workspace/main/notes.md").read_text() == "noted"
        assert scene.world.asked() == ["write it", "next"]
        assert scene.channel.replies() == ["Stopped 1 run.", "You said: next"]
        assert [trace.status for trace in scene.world.ended()] == ["cancelled", "done"]


@both
@every_sdk
async def test_between_two_tools(tmp_path: Path, stop: str, sdk: Sdk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes in the moment in which a tool is done: the model is not asked for the next one. (lesson 18)"""
    write = Workspace.write_file

    async def write_then_stop(self: Workspace, path: str, text: str) -> int:
        size = await write(self, path, text)
        await scene.world.gateway.receive([incoming(stop)])
        return size

    monkeypatch.setattr(Workspace, "write_file", write_then_stop)
    async with open_scene(tmp_path, sdk) as scene:
        await scene.world.say("write it")
        await scene.channel.until(scene.channel.replies)
        assert scene.channel.replies() == ["Stopped 1 run."]
        await scene.over(asked=1, kinds={"message": 1})
        assert (tmp_path / "workspace/main/notes.md").read_text() == "noted"


@both
@every_sdk
async def test_while_the_model_looks_at_a_result(tmp_path: Path, stop: str, sdk: Sdk) -> None:
    """Between two tools the model thinks: that request is cut, the one before it was whole. (lesson 18)"""
    async with open_scene(tmp_path, sdk) as scene:
        await scene.world.say("write it")
        await scene.channel.until(lambda: scene.channel.live() == "thinking")
        assert await scene.stop(stop) == "Stopped 1 run."
        await scene.over(asked=2, kinds={"message": 1})
        assert [request.cut for request in scene.server.requests[:2]] == [False, True]


# ── at its helpers ───────────────────────────────────────────────────────────────────────────────────────────────────


@both
@every_sdk
async def test_three_helpers_deep(tmp_path: Path, stop: str, sdk: Sdk) -> None:
    """On every level one helper asks its model and one has helpers: all requests are cut, all end. (lessons 18, 22)"""
    async with open_scene(tmp_path, sdk) as scene:
        await scene.world.say("deep 0")
        await scene.server.until(lambda: len(scene.server.open) == 4)
        held = scene.server.open
        assert sorted(request.asked.last_user for request in held) == ["deep 3", "hold 1", "hold 2", "hold 3"]
        assert await scene.stop(stop) == "Stopped 1 run and 6 helpers."
        await scene.over(asked=7, kinds={"message": 1, "subagent": 6})
        assert all(request.cut for request in held)


@both
@every_sdk
async def test_in_an_agent_that_was_handed_the_work(tmp_path: Path, stop: str, sdk: Sdk) -> None:
    """The other agent's request is cut. (lesson 22)"""
    async with open_scene(tmp_path, sdk) as scene:
        await scene.world.say("research it")
        await scene.server.until(lambda: scene.world.asked()[-1:] == ["hold and look it up"])
        assert await scene.stop(stop) == "Stopped 1 run and 1 helper."
        await scene.over(asked=2, kinds={"message": 1, "delegate": 1})
        assert scene.server.requests[1].cut


# ── at a program ─────────────────────────────────────────────────────────────────────────────────────────────────────

DEAF = """
trap '' TERM
setsid sh -c 'trap "" TERM; echo $$ > child; while :; do sleep 0.05; done' &
echo $$ > leader
while :; do echo '{"type":"show","text":"tick "}'; sleep 0.05; done
"""


async def number_in(file: trio.Path) -> int:
    """The number that will stand there soon."""
    while True:
        with suppress(OSError, ValueError):
            return int(await file.read_text())
        await trio.sleep(0.02)


@both
@pytest.mark.parametrize("name", ["main", "program"])
async def test_in_a_program_that_ignores_it(
    tmp_path: Path, stop: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answered at once; nothing that it still shows is seen; it and what it has started are killed. (lesson 18)"""
    monkeypatch.setattr(processes, "GRACE_S", 0.5)
    let_go, main = trio.Event(), name == "main"
    programs = {name: ("/bin/sh", "-c", f"[ -e over ] && printf 'You said: next' && exit; touch over; {DEAF}")}
    with trio.fail_after(SOON_S):
        async with open_thinking(tmp_path, script(let_go), "openai", programs) as world:
            scene, place = Scene(world, let_go), tmp_path / "workspace" / name
            await world.say("stay" if main else "program")
            pids = [await number_in(trio.Path(place / file)) for file in ("leader", "child")]
            assert all(map(psutil.pid_exists, pids))
            assert await scene.stop(stop) == ("Stopped 1 run." if main else "Stopped 1 run and 1 helper.")
            kinds = {"message": 1} if main else {"message": 1, "delegate": 1}
            await scene.next_works()  # it waits until the stopped run has really ended
            await world.gateway.scheduler.drain()
            assert not any(map(runs, pids))
            assert Counter(trace.kind for trace in world.ended() if trace.status == "cancelled") == kinds


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# ── among many ───────────────────────────────────────────────────────────────────────────────────────────────────────

MANY = 10_000
AT_ONCE_S = 1.0


@pytest.mark.parametrize(("stop", "where"), [("/stop", "where it runs"), ("/stopall", "where it waits")])
async def test_among_ten_thousand_queued_sessions(tmp_path: Path, stop: str, where: str) -> None:
    """On real files, with every slot taken: answered within a second, nobody else is stopped, and the next message of
    this chat is answered. (P7)"""
    chat, what = ("runs", "run") if where == "where it runs" else (f"chat {MANY // 2}", "waiting message")
    settings = {"lane_main": 2, "shutdown_grace": 0}
    async with open_talk(tmp_path, '[agent.main]\nbackend = "demo"\n', **settings) as talk:
        scheduler, replies = talk.gateway.scheduler, partial(talk.channel.replies, chat)
        await talk.gateway.receive([incoming("count to 900", one) for one in ("runs", "other")])
        many = [incoming("count to 1000", f"chat {number}") for number in range(MANY)]
        await talk.gateway.receive(many)
        await talk.channel.until(lambda: talk.channel.live("runs") and talk.channel.live("other"))
        began = trio.current_time()
        await talk.gateway.receive([incoming(stop, chat)])
        await talk.channel.until(replies)
        assert trio.current_time() - began < AT_ONCE_S
        assert replies() == [f"Stopped 1 {what}."]
        await talk.gateway.receive([incoming("next", chat)])
        assert all(scheduler.cancel_all(str(one.session)) for one in many if one.session.chat != chat)
        await talk.gateway.receive([incoming("/stop", "other")])
        await talk.channel.until(lambda: len(replies()) == 2)
        assert replies()[1].startswith("You said: next")
        shown = {seen.chat for seen in talk.channel.seen if seen.kind == "live"}
        assert f"chat {MANY // 2}" not in shown
