"""Agents that think, through a whole gateway and for both SDKs: words as they come, files, helpers, other agents."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
import trio

from store.records import SessionPolicy
from tests.fakes.script import Asked, Begin, CallTool, Rule, Say, Steps, Wait, in_turn, rules
from tests.flow.models import DM, KINDS, OPEN, WEATHER, asked_in, is_helper, open_talk, program, talking, thinking, told

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.parametrize("kind", KINDS)


# ── words and files ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_words_are_seen_as_they_come_and_the_answer_is_said_once(kind: str, tmp_path: Path) -> None:
    """A piece is on the screen while the model still thinks about the next one. (6)"""
    go_on = trio.Event()
    async with talking(kind, in_turn([Say("One, "), Wait(go_on), Say("two."), Say(" Three.")]), tmp_path) as (talk, _):
        await talk.say("count")
        await talk.channel.until(lambda: talk.channel.live() == "One, ")
        assert talk.replies() == []
        go_on.set()
        await talk.gateway.drained()
        assert talk.channel.shown() == ["One, ", "two.", " Three."]
        assert talk.replies() == ["One, two. Three."]
        assert talk.channel.live() == ""


async def test_files_are_written_and_read_in_the_workspace(kind: str, tmp_path: Path) -> None:
    """The model sees what came of each call, and what it says between calls is shown on lines of its own."""
    script = in_turn(
        [Say("I note it."), CallTool("write_file", {"path": "notes/tea.md", "content": "green"})],
        [CallTool("read_file", {"path": "notes/tea.md"}), CallTool("read_file", {"path": "notes/none.md"})],
        Say("You like green tea."),
    )
    async with talking(kind, script, tmp_path) as (talk, server):
        assert await talk.ask("I like green tea") == "You like green tea."
        assert "".join(talk.channel.shown()) == "I note it.\n\nYou like green tea."
        last = asked_in(server)[2]
        assert told(last) == [
            ("user", "I like green tea"),
            ("assistant", "I note it."),
            ("tool", "Wrote 5 bytes to notes/tea.md."),
            ("assistant", ""),
            ("tool", "green\nThere is no file notes/none.md."),
        ]
    assert (tmp_path / "data/workspace/main/notes/tea.md").read_text() == "green"


async def test_no_file_outside_of_the_workspace_is_touched(kind: str, tmp_path: Path) -> None:
    """The model is told that it is refused; what is in the file never leaves the machine. (S24)"""
    kept = "GOCLAW_OPENAI_API_KEY=not-for-models"
    (tmp_path / "data").mkdir(mode=0o700)
    outside = [tmp_path / ".env", tmp_path / "data" / ".env"]
    for file in outside:
        file.write_text(kept)
    paths = ["../../.env", "../../../.env", f"{tmp_path}/.env", "a/../../../.env"]
    script = in_turn(
        [CallTool("read_file", {"path": path}) for path in paths],
        [CallTool("write_file", {"path": path, "content": "gone"}) for path in paths],
        Say("I may not look there."),
    )
    async with talking(kind, script, tmp_path) as (talk, server):
        assert await talk.ask("what is in .env?") == "I may not look there."
        results = [result for message in asked_in(server)[2].messages for result in message.results]
        assert len(results) == 8
        for result in results:
            assert "leads out of the workspace" in result.text or "is an absolute path" in result.text
        assert "not-for-models" not in str([request.body for request in server.requests])
    assert [file.read_text() for file in outside] == [kept, kept]


# ── helpers and other agents ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lane", [1, 2])
async def test_helpers_think_at_the_same_time_on_their_lane(kind: str, tmp_path: Path, lane: int) -> None:
    """Two requests are open at the model's server at once; on a lane of one it is one after the other. (P3, P8)"""
    go_on, most = trio.Event(), 0

    def answer(asked: Asked) -> Steps:
        if is_helper(asked):
            return [Begin(), Wait(go_on), Say(f"done: {asked.last_user}")]
        if asked.last.role == "tool":
            return [Say(asked.last.all_text)]
        return [CallTool("spawn_subagent", {"task": "left"}), CallTool("spawn_subagent", {"task": "right"})]

    async with talking(kind, answer, tmp_path, lane_subagent=lane) as (talk, server):

        def heard(_: object) -> None:
            nonlocal most
            most = max(most, len(server.open))

        server.heard = heard
        await talk.say("do both")
        await server.until(lambda: len(server.open) == lane and len(server.requests) == 1 + lane)
        assert talk.gateway.scheduler.lanes["subagent"].active == lane
        assert talk.gateway.scheduler.lanes["main"].active == 0  # who waits for helpers lends its slot
        go_on.set()
        await talk.gateway.drained()
        assert talk.replies() == ["done: left\ndone: right"]
        assert most == lane


async def test_work_goes_from_one_backend_to_the_next(kind: str, tmp_path: Path) -> None:
    """openai hands it to anthropic, which hands it to a program; or the other way round. Each sees its task only."""
    other = KINDS[1 - KINDS.index(kind)]
    shutil.copy(WEATHER, tmp_path)
    first = rules(
        Rule("paris", [CallTool("delegate", {"agent": "research", "task": "find out about Paris"})], "user"),
        Rule("", [Say("So: "), Say("take a hat.")], "tool"),
    )
    second = rules(
        Rule("Paris", [CallTool("delegate", {"agent": "weather", "task": "the weather in Paris"})], "user"),
        Rule("sunny", [Say("It is sunny in Paris.")], "tool"),
    )
    async with OPEN[kind](first) as one, OPEN[other](second) as two:
        agents = thinking(kind, one) + thinking(other, two, name="research") + program("./weather.sh", name="weather")
        async with open_talk(tmp_path, agents) as talk:
            assert await talk.ask("my trip to paris") == "So: take a hat."
            assert told(asked_in(one)[1])[-1] == ("tool", "It is sunny in Paris.")
            assert told(asked_in(two)[0]) == [("user", "find out about Paris")]
            answer = "You asked: the weather in Paris. It is sunny, and I noted that you asked."
            assert told(asked_in(two)[1])[-1] == ("tool", answer)
    assert (tmp_path / "data/workspace/weather/asked.txt").read_text() == "somebody asked"


# ── steering ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_said_meanwhile_reaches_the_model_after_its_results(kind: str, tmp_path: Path) -> None:
    """A message sent while a tool is at work is the last thing that the next request says, and is answered with it."""
    go_on = trio.Event()

    def answer(asked: Asked) -> Steps:
        if is_helper(asked):
            return [Begin(), Wait(go_on), Say("bread is in the cart")]
        if len(asked.messages) == 1:
            return [CallTool("spawn_subagent", {"task": "buy bread"})]
        return [Say(f"Done: {asked.last_user}")]

    async with talking(kind, answer, tmp_path, queue_mode="steer") as (talk, server):
        await talk.say("bring bread")
        await server.until(lambda: len(server.open) == 1 and len(server.requests) == 2)
        await talk.say("and milk")
        await talk.say("and \ud800 tea")
        go_on.set()
        await talk.gateway.drained()
        assert talk.replies() == ["Done: and milk\n\nand ? tea"]
        after = [("tool", "bread is in the cart"), ("user", "and milk\n\nand ? tea")]
        assert told(asked_in(server)[2])[2:] == after
        await talk.ask("thanks")
        past = told(asked_in(server)[3])
        assert [words for role, words in past if role == "user"] == ["bring bread", after[1][1], "thanks"]


async def test_a_chat_that_steers_by_its_own_choice(kind: str, tmp_path: Path) -> None:
    """What was set for one chat counts for an agent that thinks as for any other."""
    go_on = trio.Event()
    script = in_turn(
        [CallTool("write_file", {"path": "a", "content": "a"})], [Begin(), Wait(go_on), Say("one")], Say("two")
    )
    async with talking(kind, script, tmp_path) as (talk, server):
        await talk.store.set_policy(DM, SessionPolicy(mode="steer"))
        await talk.say("first")
        await server.until(lambda: len(server.requests) == 2)
        await talk.say("too late for this one")
        go_on.set()
        await talk.gateway.drained()
        assert talk.replies() == ["one", "two"]
        assert told(asked_in(server)[2])[-1] == ("user", "too late for this one")
