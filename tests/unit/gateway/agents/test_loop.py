"""The promises of the tool loop: a model may do anything; the person gets an answer or one line that says why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from gateway.agents.loop import NO_ANSWER, NOTHING_TO_ADD, REFUSED, ModelAgent
from gateway.agents.models import ModelTrouble, TextPiece, ToolCall, calling
from gateway.agents.spec import AgentSpec
from gateway.protocols import AgentError, AgentReply, ToolResult, Usage
from store.records import Role, Said
from tests.unit.gateway.agents.acting import (
    ActingContext,
    Script,
    ScriptedModel,
    a_turn,
    call,
    calls,
    overloaded,
    says,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

SPEC = AgentSpec("main", "anthropic", instructions="Be kind.", window=1000, max_answer=100)


async def answer(model: ScriptedModel, context: ActingContext | None = None) -> AgentReply:
    return await ModelAgent(SPEC, model, chance=lambda: 1.0).run(a_turn(), context or ActingContext())


async def test_the_answer_is_shown_as_it_comes() -> None:
    context = ActingContext()
    reply = await answer(ScriptedModel(says("Hel", "lo")), context)
    assert reply == AgentReply("Hello", (Said(Role.USER, "hello"),), 0.015)
    assert context.shown == ["Hel", "lo"]
    assert context.asked == ["scripted"]
    assert context.spent == Usage(10, 5)


async def test_the_model_is_told_who_it_is_and_what_was_said() -> None:
    model = ScriptedModel(says("ok"))
    history = (Said(Role.USER, "before"), Said(Role.ASSISTANT, "yes"))
    await ModelAgent(SPEC, model).run(a_turn("a", "b", history=history, depth=2), ActingContext())
    (request,) = model.requests
    assert request.system.startswith("Be kind.\n\nYou are the agent main, working as a helper (depth 2)")
    assert [line.text for line in request.messages] == ["before", "yes", "a\n\nb"]
    assert request.max_tokens == 100
    assert [tool.name for tool in request.tools] == ["echo", "fail"]


async def test_calls_are_made_at_once_and_answered_in_their_order(autojump_clock: trio.abc.Clock) -> None:
    async def slow(arguments: Mapping[str, object]) -> ToolResult:
        await trio.sleep(float(str(arguments["s"])))
        return ToolResult(f"after {arguments['s']}")

    context = ActingContext(doing={"echo": slow})
    model = ScriptedModel(calls(call("a", s=10), call("b", s=1), call("c", s=5), text="Wait."), says("Done."))
    before = trio.current_time()
    reply = await answer(model, context)
    assert trio.current_time() - before == pytest.approx(10)
    assert [line.text for line in reply.said] == ["hello", "Wait.", "after 10", "after 1", "after 5"]
    assert [line.data.get("call") for line in reply.said[2:]] == ["a", "b", "c"]
    assert reply.said[1] == calling("Wait.", [call("a", s=10), call("b", s=1), call("c", s=5)])
    assert model.requests[1].messages == reply.said
    assert reply.text == "Done."
    assert context.shown == ["Wait.", "\n\nDone."]


async def test_what_a_model_does_wrong_is_told_to_the_model() -> None:
    wrong = calls(call("a", "rm_rf"), ToolCall("b", "echo", None, "{oops"), call("c", "fail"), call("d", text="x"))
    context = ActingContext()
    reply = await answer(ScriptedModel(wrong, says("Sorry.")), context)
    assert [(line.text, line.data["ok"]) for line in reply.said[2:]] == [
        ("there is no tool 'rm_rf'; the tools are: echo, fail", False),
        ("not called: the arguments are not a JSON object: {oops", False),
        ("it failed", False),
        ("echo: x", True),
    ]
    assert sorted(name for name, _ in context.called) == ["echo", "fail"]


async def test_what_the_person_adds_is_heard_after_the_results() -> None:
    context = ActingContext(said_meanwhile=["and milk"])
    model = ScriptedModel(calls(call("a")), says("ok"))
    reply = await answer(model, context)
    assert [line.role for line in reply.said] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER]
    assert model.requests[1].messages[-1].text == "and milk"


async def test_a_model_that_never_stops_is_stopped_by_its_steps() -> None:
    context = ActingContext(steps=7)
    with pytest.raises(AgentError, match="more than 7 steps"):
        await answer(ScriptedModel(calls(call("a"))), context)
    assert len(context.called) == 7


async def test_a_turn_that_costs_too_much_ends() -> None:
    with pytest.raises(AgentError, match="more tokens"):
        await answer(ScriptedModel(calls(call("a"))), ActingContext(tokens=40))


async def test_an_agents_error_in_a_tool_is_one_line_and_no_group() -> None:
    async def broke(arguments: Mapping[str, object]) -> ToolResult:
        raise AgentError("no tokens left")

    context = ActingContext(doing={"echo": broke})
    with pytest.raises(AgentError, match="no tokens left"):
        await answer(ScriptedModel(calls(call("a"), call("b"))), context)


async def test_a_stuck_model_does_not_start_hundreds_of_tools() -> None:
    context = ActingContext()
    reply = await answer(ScriptedModel(calls(*(call(str(n)) for n in range(100))), says("ok")), context)
    assert len(context.called) == 32
    assert len(reply.said) == 102


async def test_a_large_result_does_not_fill_the_window() -> None:
    async def much(arguments: Mapping[str, object]) -> ToolResult:
        return ToolResult("x" * 5000)

    reply = await answer(ScriptedModel(calls(call("a")), says("ok")), ActingContext(doing={"echo": much}))
    assert reply.said[2].text == "x" * 1000 + "\n[4000 more characters were left out]"


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (says(), NO_ANSWER),
        (says(" \n"), NO_ANSWER),
        (says(reason="refused"), REFUSED),
        (says("No.", reason="refused"), f"No.\n\n({REFUSED})"),
        (says("Once", reason="length"), "Once\n\n(The answer ends here: it has reached 100 tokens.)"),
    ],
)
async def test_no_answer_is_without_words(script: Script, text: str) -> None:
    assert (await answer(ScriptedModel(script))).text == text


async def test_a_silent_end_after_work_is_no_failure() -> None:
    assert (await answer(ScriptedModel(calls(call("a")), says()))).text == NOTHING_TO_ADD


async def test_characters_that_nobody_can_keep_are_replaced() -> None:
    assert (await answer(ScriptedModel(says("a\ud800b\0")))).text == "a\ufffdb\ufffd"


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_trouble_before_anything_was_shown_is_waited_out(autojump_clock: trio.abc.Clock) -> None:
    model = ScriptedModel([overloaded()], [overloaded()], [overloaded()], [overloaded()], says("Hello"))
    context = ActingContext()
    before = trio.current_time()
    assert (await answer(model, context)).text == "Hello"
    assert trio.current_time() - before == pytest.approx(1 + 2 + 4 + 8)
    assert len(context.asked) == 5
    assert model.closed == 5


async def test_pauses_vary_by_half(autojump_clock: trio.abc.Clock) -> None:
    agent = ModelAgent(SPEC, ScriptedModel([overloaded()], says("ok")), chance=lambda: 0.0)
    before = trio.current_time()
    await agent.run(a_turn(), ActingContext())
    assert trio.current_time() - before == pytest.approx(0.5)


@pytest.mark.parametrize(("asked", "waited"), [(20.0, 20.0), (3600.0, 60.0), (0.1, 1.0)])
async def test_the_servers_wish_is_honoured_within_reason(
    autojump_clock: trio.abc.Clock, asked: float, waited: float
) -> None:
    before = trio.current_time()
    await answer(ScriptedModel([overloaded(asked)], says("ok")))
    assert trio.current_time() - before == pytest.approx(waited)


async def test_lasting_trouble_is_told_in_one_line(autojump_clock: trio.abc.Clock) -> None:
    model = ScriptedModel([overloaded()])
    with pytest.raises(AgentError) as caught:
        await answer(model)
    assert str(caught.value) == (
        "the model's server is overloaded (429) and did not recover within 5 tries; try again later"
    )
    assert caught.value.retriable
    assert len(model.requests) == 5


async def test_calls_that_were_only_announced_are_asked_for_again(autojump_clock: trio.abc.Clock) -> None:
    context = ActingContext()
    reply = await answer(ScriptedModel([call("a"), overloaded()], says("ok")), context)
    assert reply.text == "ok"
    assert context.called == []


async def test_an_answer_is_never_shown_twice() -> None:
    model = ScriptedModel([TextPiece("Once upon"), ModelTrouble("the connection was lost")], says("again"))
    with pytest.raises(AgentError, match=r"^the model's answer broke off: the connection was lost$") as caught:
        await answer(model)
    assert caught.value.retriable
    assert len(model.requests) == 1


async def test_a_stream_without_an_end_broke_off(autojump_clock: trio.abc.Clock) -> None:
    with pytest.raises(AgentError, match="ended its answer in the middle"):
        await answer(ScriptedModel([TextPiece("Once")]))
    assert (await answer(ScriptedModel([], says("ok")))).text == "ok"


async def test_trouble_that_no_patience_mends_is_told_at_once() -> None:
    model = ScriptedModel([ModelTrouble("there is no credit left", retriable=False)])
    with pytest.raises(AgentError, match="there is no credit left"):
        await answer(model)
    assert len(model.requests) == 1


async def test_a_stop_ends_a_pause_at_once(autojump_clock: trio.abc.Clock) -> None:
    with trio.move_on_after(0.2) as scope:
        await answer(ScriptedModel([overloaded(60.0)]))
    assert scope.cancelled_caught
    assert trio.current_time() == pytest.approx(scope.deadline)


async def test_a_stop_ends_the_request_and_the_tools(autojump_clock: trio.abc.Clock) -> None:
    ended: list[str] = []

    async def endless(arguments: Mapping[str, object]) -> ToolResult:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(str(arguments["text"]))
        raise AssertionError

    context = ActingContext(doing={"echo": endless})
    with trio.move_on_after(1) as scope:
        await answer(ScriptedModel(calls(call("a", text="1"), call("b", text="2"))), context)
    assert scope.cancelled_caught
    assert sorted(ended) == ["1", "2"]


async def test_an_agent_without_tools_says_so() -> None:
    context = ActingContext(tools=())
    reply = await answer(ScriptedModel(calls(call("a", "read_file", path="../../.env")), says("ok")), context)
    assert reply.said[2].text == "there is no tool 'read_file'; the tools are: none"
    assert context.called == []
