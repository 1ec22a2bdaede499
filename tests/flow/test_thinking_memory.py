"""What agents that think remember, and what they may use up: history, windows, budgets, for both SDKs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import trio

from tests.fakes.script import Asked, Begin, CallTool, Count, Pause, Say, Step, Steps, Wait, always, in_turn
from tests.flow.models import DM, KINDS, OPEN, asked_in, is_helper, limits, open_talk, talking, thinking, told
from tests.flow.thinking import open_thinking

if TYPE_CHECKING:
    from pathlib import Path

    from tests.flow.thinking import Sdk

pytestmark = pytest.mark.parametrize("kind", KINDS)

SMALL = "window = 1000"


def echo(asked: Asked) -> Steps:
    return [Say(f"re: {asked.last_user}")]


# ── history ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_next_turn_knows_words_calls_and_results(kind: str, tmp_path: Path) -> None:
    """Until a new conversation begins; then nothing of it is told any more."""
    script = in_turn(
        [Say("Noting."), CallTool("write_file", {"path": "a", "content": "b"}), CallTool("read_file", {"path": "?"})],
        Say("Noted."),
        Say("I remember."),
        Say("Who are you?"),
    )
    async with talking(kind, script, tmp_path) as (talk, server):
        await talk.ask("note it")
        await talk.ask("what did I say?")
        await talk.ask("/new")
        await talk.ask("hello")
        first, second = asked_in(server)[1].messages, asked_in(server)[2].messages
        assert second[: len(first)] == first
        assert [call.name for call in second[1].calls] == ["write_file", "read_file"]
        assert second[2].results[0].text == "Wrote 1 bytes to a."
        assert told(asked_in(server)[2])[3:] == [("assistant", "Noted."), ("user", "what did I say?")]
        assert told(asked_in(server)[3]) == [("user", "hello")]


async def test_a_conversation_goes_on_after_a_restart(kind: str, tmp_path: Path) -> None:
    """A gateway on the same directory knows what was said, and how full the window is."""
    script = in_turn(
        [CallTool("write_file", {"path": "a", "content": "b"})], [Say("I am Ada."), Count(600, 100)], Say("Ada, still.")
    )
    async with OPEN[kind](script) as server:
        agents = thinking(kind, server, SMALL)
        async with open_talk(tmp_path, agents) as talk:
            await talk.ask("who are you?")
        async with open_talk(tmp_path, agents) as talk:
            kept = await talk.store.session(DM)
            assert kept is not None
            assert kept.standing.context == pytest.approx(0.7)
            assert await talk.ask("and now?") == "Ada, still."
        assert told(asked_in(server)[2]) == [
            ("user", "who are you?"),
            ("assistant", ""),
            ("tool", "Wrote 1 bytes to a."),
            ("assistant", "I am Ada."),
            ("user", "and now?"),
        ]


async def test_a_turn_that_a_crash_cut_off_is_answered_after_it(kind: str, tmp_path: Path) -> None:
    """The model is asked anew, and is told nothing of the turn that never ended. (P6)"""
    script = in_turn([CallTool("write_file", {"path": "a", "content": "b"})], [Say("I a"), Wait(trio.Event())])
    async with OPEN[kind](script) as server:
        agents = thinking(kind, server)
        with trio.CancelScope() as crash:
            async with open_talk(tmp_path, agents) as talk:
                await talk.say("who are you?")
                await talk.channel.until(lambda: talk.channel.live() == "I a")
                crash.cancel()
                await trio.lowlevel.checkpoint()
        server.script = echo
        async with open_talk(tmp_path, agents) as talk:
            assert talk.gateway.taken_up == 1
            await talk.gateway.drained()
            assert talk.replies() == ["re: who are you?"]
        assert told(asked_in(server)[2]) == [("user", "who are you?")]


async def test_a_past_that_does_not_fit_is_cut_where_servers_take_it(kind: str, tmp_path: Path) -> None:
    """Wherever the cut falls: it begins with a person's words, every call has its result, nothing is refused."""

    def answer(asked: Asked) -> Steps:
        if asked.last.role == "user" and len(asked.last_user) % 3:
            path = f"{len(asked.last_user)}.md"
            return [Say("w" * 60), *[CallTool("write_file", {"path": path, "content": "x" * 90}) for _ in range(2)]]
        return [Say("y" * 250)]

    async with talking(kind, answer, tmp_path, SMALL) as (talk, server):
        for number in range(14):
            await talk.ask(f"{number} " + "z" * (37 * number % 190))
        requests = asked_in(server)
        assert [asked.messages[0].role for asked in requests] == ["user"] * len(requests)
        assert {len(asked.messages) for asked in requests[-6:]} != {1}
        assert max(asked.tokens for asked in requests) < 1_000
        assert not any(words.startswith("0 ") for _, words in told(requests[-1]))
        assert len(await talk.store.transcript(DM, limit=1_000)) > 40


# ── the window ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_window_that_fills_up_slows_a_group_down(kind: str, tmp_path: Path) -> None:
    """What the model counted is kept with the chat; from 60 % of the window on, one run at a time. (L5)"""
    room, go_on = replace(DM, chat="room"), trio.Event()
    held: list[Step] = [Begin(), Wait(go_on), Say("later")]
    script = in_turn([Say("first"), Count(tokens_in=600, tokens_out=100)], held, held, held)
    async with talking(kind, script, tmp_path, SMALL) as (talk, server):
        await talk.say("hello", chat="room", group=True)
        await talk.gateway.drained()
        kept = await talk.store.session(room)
        assert kept is not None
        assert kept.standing.context == pytest.approx(0.7)
        for sender in ("ann", "bob", "cem"):
            await talk.say("and?", chat="room", group=True, sender=sender)
        await server.until(lambda: len(server.requests) == 2)
        statistics = talk.gateway.scheduler.session_statistics(str(room))
        assert (statistics.limit, len(server.open)) == (1, 1)
        go_on.set()
        await talk.gateway.drained()
        assert talk.channel.replies("room") == ["first", "later", "later", "later"]


# ── budgets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_turn_that_costs_too_much_is_ended_in_one_line(kind: str, tmp_path: Path) -> None:
    """The call that came with the last answer is not made, and the next turn has its own budget."""
    script = in_turn(
        [Say("Let me see. "), CallTool("write_file", {"path": "a", "content": "b"}), Count(900, 200)], Say("Cheap.")
    )
    async with talking(kind, script, tmp_path, limits(tokens=1_000)) as (talk, server):
        assert await talk.ask("be thorough") == (
            '"be thorough" did not work: this took 1,100 tokens, more than the 1,000 that one turn may cost'
        )
        assert talk.channel.live() == ""
        assert await talk.ask("be brief") == "Cheap."
        assert len(server.requests) == 2
    assert not (tmp_path / "data/workspace/main/a").exists()


async def test_helpers_spend_from_the_same_budget(kind: str, tmp_path: Path) -> None:
    """When a helper has spent the rest, nobody asks the model once more."""

    def answer(asked: Asked) -> Steps:
        if is_helper(asked):
            return [Say("it was a lot"), Count(700, 100)]
        return [CallTool("spawn_subagent", {"task": "count everything"}), Count(300, 100)]

    async with talking(kind, answer, tmp_path, limits(tokens=1_000)) as (talk, server):
        assert await talk.ask("count") == (
            '"count" did not work: this took 1,200 tokens, more than the 1,000 that one turn may cost'
        )
        assert len(server.requests) == 2


async def test_what_was_used_is_counted_for_each_run(kind: Sdk, tmp_path: Path) -> None:
    """All requests of a run together, and a helper's for itself, as their traces tell; the whole stream is timed."""

    def answer(asked: Asked) -> Steps:
        if is_helper(asked):
            return [Say("done"), Count(30, 4)]
        if asked.last.role == "tool":
            return [Say("Fine."), Count(200, 20)]
        return [CallTool("spawn_subagent", {"task": "help"}), Count(100, 10)]

    async with open_thinking(tmp_path, answer, kind) as world:
        assert await world.ask("go") == "Fine."
        await world.gateway.drained()
        used = {trace.kind: (trace.facts["tokens_in"], trace.facts["tokens_out"]) for trace in world.ended()}
        assert used == {"message": (300, 30), "subagent": (30, 4)}
        (message,) = world.ended("message")
        spans = [span.kind for span in message.spans]
        assert spans == ["queued", "slot", "model", "tool", "model", "deliver"]
        assert all(span.status == "ok" for span in message.spans)


@pytest.mark.parametrize("stubborn", [False, True], ids=["waits for its model", "waits for a helper"])
async def test_an_agent_has_a_time_of_its_own(kind: str, tmp_path: Path, stubborn: bool) -> None:
    """What `agents.toml` allows counts, not what the settings say; the stream is cut, and so is the helper's."""

    def answer(asked: Asked) -> Steps:
        if asked.last_user == "again":
            return [Say("Here.")]
        if stubborn and not is_helper(asked):
            return [CallTool("spawn_subagent", {"task": "hang"})]
        return [Say("hm"), Pause(math.inf)]

    async with talking(kind, answer, tmp_path, limits(run_timeout="1s")) as (talk, server):
        assert await talk.ask("hang") == 'Gave up on "hang" after 1 s, the longest a run may take.'
        await server.until(lambda: not server.open)
        assert await talk.ask("again") == "Here."


async def test_a_model_that_never_ends_is_ended(kind: str, tmp_path: Path) -> None:
    """After as many requests as a run may make. (S24)"""
    script = always(CallTool("read_file", {"path": "again.md"}))
    async with talking(kind, script, tmp_path, limits(steps=3)) as (talk, server):
        assert await talk.ask("go") == (
            '"go" did not work: the model was asked 3 times and had not finished; it was ended there'
        )
        assert len(asked_in(server)) == 3
        server.script = echo
        assert await talk.ask("still there?") == "re: still there?"
        assert told(asked_in(server)[3]) == [("user", "still there?")]
