"""The promises of models on servers, over the real SDKs and real connections: the same for every wire."""

from __future__ import annotations

import gc
import math
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
import trio
from pydantic import SecretStr

from gateway.agents.build import Clients
from gateway.agents.loop import ModelAgent
from gateway.agents.models import ContextTooLong, calling
from gateway.agents.spec import AgentSpec
from gateway.protocols import AgentError, AgentReply, Turn, Usage
from store.records import Role, Said
from tests.fakes.anthropic import open_anthropic
from tests.fakes.openai import open_openai
from tests.fakes.script import (
    Begin,
    CallTool,
    Count,
    Disconnect,
    End,
    Garbage,
    Pause,
    Ping,
    Say,
    Status,
    Truncate,
    always,
    in_turn,
)
from tests.unit.gateway.agents.acting import ActingContext, a_turn, call

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from gateway.agents.spec import Backend
    from tests.fakes.script import Script, Step, Steps
    from tests.fakes.server import ModelServer

KEY = "sk-very-secret-4711"
SOON_S = 20.0


@dataclass
class Desk:
    """An agent, its model's server, and the pauses that it wanted to make."""

    server: ModelServer
    agent: ModelAgent
    context: ActingContext
    pauses: list[float] = field(default_factory=list)

    async def run(self, turn: Turn | None = None) -> AgentReply:
        with trio.fail_after(SOON_S):
            return await self.agent.run(turn or a_turn(), self.context)

    async def fails(self) -> AgentError:
        with pytest.raises(AgentError) as caught:
            await self.run()
        assert KEY not in str(caught.value)
        assert "\n" not in str(caught.value)
        return caught.value


@dataclass(frozen=True)
class Wire:
    backend: Backend

    @asynccontextmanager
    async def asking(self, script: Script, **changes: object) -> AsyncIterator[Desk]:
        opening = open_anthropic if self.backend == "anthropic" else open_openai
        clients = Clients()
        async with opening(script) as server:
            name = f"GOCLAW_{self.backend.upper()}_API_KEY"
            spec = AgentSpec(
                "main", self.backend, "fake-large", base_url=server.base_url, api_key=SecretStr(KEY), key_name=name
            )
            spec = replace(spec, **changes)  # type: ignore[arg-type]
            pauses: list[float] = []

            async def pause(seconds: float) -> None:
                await trio.lowlevel.checkpoint()
                pauses.append(seconds)

            agent = ModelAgent(spec, await clients.model(spec), sleep=pause, chance=lambda: 1.0)
            try:
                yield Desk(server, agent, ActingContext(), pauses)
            finally:
                await clients.aclose()


@pytest.fixture(params=["anthropic", "openai"])
def wire(request: pytest.FixtureRequest) -> Wire:
    return Wire(request.param)


async def test_an_answer_is_streamed_and_counted(wire: Wire) -> None:
    async with wire.asking(always(Say("Hello there", chunk=4), Ping(), Count(100, 7, cached=30))) as desk:
        reply = await desk.run()
        assert reply.text == "Hello there"
        assert desk.context.shown == ["Hell", "o th", "ere"]
        assert desk.context.spent == Usage(100, 7)
        (request,) = desk.server.requests
        assert request.key == KEY
        assert request.asked.max_tokens == 8192
        assert request.asked.system.endswith("You are the agent main.")
        assert [tool.name for tool in request.asked.tools] == ["echo", "fail"]
        await desk.server.until(lambda: request.finished)


@pytest.mark.parametrize(
    "step",
    [Say("word " * 500_000, chunk=50_000), CallTool("echo", raw='{"text": "' + "x" * 2_500_000, chunk=50_000)],
    ids=["words", "a call"],
)
async def test_an_answer_without_end_is_ended(wire: Wire, step: Step) -> None:
    """The server is cut off, and what it sends is not kept: memory has an end, and so has patience."""
    async with wire.asking(always(step, Pause(math.inf))) as desk:
        with pytest.raises(AgentError, match="more than 2,000,000 characters"):
            await desk.run()
        (request,) = desk.server.requests
        await desk.server.until(lambda: request.cut)


async def test_tools_are_called_and_their_results_sent_back(wire: Wire) -> None:
    script = in_turn(
        [Say("Let me see. "), CallTool("echo", {"text": "ä"}), CallTool("fail"), CallTool("echo", raw="{broken")],
        Say("Done."),
    )
    async with wire.asking(script) as desk:
        reply = await desk.run()
        assert reply.text == "Done."
        results = desk.server.requests[1].asked.messages[-1].results
        assert [result.text for result in results] == [
            "echo: ä",
            "it failed",
            "not called: the arguments are not a JSON object: {broken",
        ]
        assert [message.role for message in desk.server.requests[1].asked.messages] == ["user", "assistant", "tool"]
        assert desk.server.requests[1].asked.messages[1].text.strip() == "Let me see."


async def test_a_long_conversation_goes_through_whole(wire: Wire) -> None:
    """What one turn has left in the transcript is accepted by the server in the next."""
    script = in_turn([CallTool("echo", {"text": "x"}), CallTool("no such tool")], Say("One."), Say("Two."))
    async with wire.asking(script) as desk:
        first = await desk.run()
        history = (*first.said, Said(Role.ASSISTANT, first.text))
        desk.context.said_meanwhile = []
        assert (await desk.run(a_turn("and now?", history=history))).text == "Two."
        assert [message.role for message in desk.server.requests[2].asked.messages] == [
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
        ]


async def test_what_is_added_at_a_step_follows_the_results(wire: Wire) -> None:
    async with wire.asking(in_turn(CallTool("echo", {"text": "x"}), Say("ok"))) as desk:
        desk.context.said_meanwhile = ["and milk"]
        assert (await desk.run()).text == "ok"
        assert "and milk" in desk.server.requests[1].asked.last_user


async def test_a_damaged_history_is_accepted(wire: Wire) -> None:
    damaged = (
        Said(Role.TOOL, "whose?", {"call": "lost"}),
        Said(Role.ASSISTANT, "hm"),
        Said(Role.USER, ""),
        calling("", [call("a"), call("a b", "no such!")]),
        Said(Role.TOOL, "fine", {"call": "a", "name": "echo", "ok": True}),
        Said(Role.SYSTEM, "the gateway was restarted"),
        Said(Role.ASSISTANT, "\ud800"),
        Said(Role.ASSISTANT, "twice", {"calls": "rubbish"}),
    )
    async with wire.asking(always(Say("ok"))) as desk:
        assert (await desk.run(a_turn(history=damaged))).text == "ok"


@pytest.mark.parametrize(
    ("reason", "told"), [("length", "it has reached 8192 tokens"), ("stop", "Once"), ("something new", "Once")]
)
async def test_the_reason_of_the_end_is_understood(wire: Wire, reason: str, told: str) -> None:
    async with wire.asking(always(Say("Once"), End(reason))) as desk:
        assert told in (await desk.run()).text


async def test_an_empty_answer_is_told(wire: Wire) -> None:
    async with wire.asking(always(Begin(), End())) as desk:
        assert "no answer" in (await desk.run()).text


async def test_a_model_that_loops_ends_with_its_steps(wire: Wire) -> None:
    async with wire.asking(always(CallTool("echo", {"text": "again"}))) as desk:
        desk.context.steps = 4
        assert "4 steps" in str(await desk.fails())
        assert len(desk.server.requests) == 4


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("code", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_passing_trouble_is_waited_out(wire: Wire, code: int) -> None:
    async with wire.asking(in_turn(Status(code), Status(code), Say("Hello"))) as desk:
        assert (await desk.run()).text == "Hello"
        assert desk.pauses == [1.0, 2.0]


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "2500"}, 2.5),
        ({"retry-after": "99999"}, 60.0),
        ({"retry-after": "Fri, 01 Jan 2027 00:00:00 GMT"}, 1.0),
        ({"retry-after": "-5"}, 1.0),
    ],
)
async def test_the_server_says_how_long(wire: Wire, headers: dict[str, str], pause: float) -> None:
    async with wire.asking(in_turn(Status(429, headers), Say("Hello"))) as desk:
        await desk.run()
        assert desk.pauses == [pause]


async def test_lasting_trouble_is_one_line(wire: Wire) -> None:
    async with wire.asking(always(Status(429, message=f"slow down, {KEY}"))) as desk:
        error = await desk.fails()
        assert str(error) == (
            "the model's server is overloaded (429) and did not recover within 5 tries; try again later"
        )
        assert error.retriable
        assert len(desk.server.requests) == 5


BREAKS: list[Steps] = [
    [Disconnect()],
    [Disconnect(reset=True)],
    [Begin(), Disconnect()],
    [Begin(), Disconnect(reset=True)],
    [Begin(), Truncate()],
    [Begin(), Garbage(b"data: {not json\n\n"), Truncate()],
    [Begin(), Garbage(b"event: message_start\ndata: []\n\ndata: 5\n\n"), Truncate()],
    [Begin(), Garbage(b"data: \xff\xfe\n\n"), Truncate()],
    [Garbage(b"<html>not HTTP</html>", bare=True), Disconnect()],
    [CallTool("echo", {"text": "half"}), Truncate()],
    [Begin(), Status(529)],
    [Begin(), Status(500)],
]


@pytest.mark.parametrize("steps", BREAKS, ids=str)
async def test_what_breaks_before_a_word_is_asked_again(wire: Wire, steps: Steps) -> None:
    async with wire.asking(in_turn(steps, Say("Hello"))) as desk:
        assert (await desk.run()).text == "Hello"
        assert desk.context.shown == ["Hello"]
        assert desk.context.called == []


@pytest.mark.parametrize(
    "end", [Disconnect(), Disconnect(reset=True), Truncate(), Status(529), Garbage(b"data: {\n\nevent: x\ndata: {\n\n")]
)
async def test_what_breaks_after_a_word_is_told(wire: Wire, end: Disconnect | Truncate | Status | Garbage) -> None:
    async with wire.asking(always(Say("Once upon"), Begin(), end)) as desk:
        error = await desk.fails()
        assert str(error).startswith("the model's answer broke off: ")
        assert error.retriable
        assert len(desk.server.requests) == 1


@pytest.mark.parametrize("code", [401, 403])
async def test_a_key_that_is_refused_is_named_and_not_shown(wire: Wire, code: int) -> None:
    async with wire.asking(always(Status(code, message=f"bad key {KEY}"))) as desk:
        error = await desk.fails()
        name = f"GOCLAW_{wire.backend.upper()}_API_KEY"
        assert str(error) == f"the model's server refuses the key ({code}): check {name}"
        assert not error.retriable
        assert len(desk.server.requests) == 1


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (Status(404, message="model not found"), "does not know fake-large (404): check the model and base_url"),
        (Status(400, message=f"tools: {KEY} is wrong"), "refuses the request (400): "),
        (Status(422, message="strange"), "refuses the request (422): "),
        (Status(402, message="pay"), "no credit left (402)"),
        (Status(400, body="not json at all"), "refuses the request (400)"),
        (Status(400, message="x" * 5000), "refuses the request (400)"),
    ],
)
async def test_what_a_person_has_to_mend_is_not_tried_again(wire: Wire, status: Status, told: str) -> None:
    async with wire.asking(always(status)) as desk:
        error = await desk.fails()
        assert told in str(error)
        assert len(str(error)) < 400
        assert len(desk.server.requests) == 1


@pytest.mark.parametrize(
    "status",
    [
        Status(400, message="prompt is too long: 250000 tokens > 200000 maximum"),
        Status(400, message="This model's maximum context length is 8192 tokens."),
        Status(413, message="request too large"),
    ],
)
async def test_a_conversation_that_is_too_long_has_its_own_error(wire: Wire, status: Status) -> None:
    async with wire.asking(always(status)) as desk:
        assert isinstance(await desk.fails(), ContextTooLong)


async def test_a_server_that_is_not_there_is_told(wire: Wire) -> None:
    async with wire.asking(always(Say("x")), base_url="http://127.0.0.1:9/v1") as desk:
        error = await desk.fails()
        assert str(error).startswith("the model's server at 127.0.0.1:9 cannot be reached and did not recover")
        assert error.retriable


# ── a stop ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("steps", [[Pause(math.inf)], [Begin(), Pause(math.inf)], [Say("Once"), Pause(math.inf)]])
async def test_the_server_sees_a_stop_at_once(wire: Wire, steps: Steps) -> None:
    async with wire.asking(always(*steps)) as desk:
        with trio.fail_after(SOON_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(desk.agent.run, a_turn(), desk.context)
                request = await desk.server.received()
                if isinstance(steps[0], Say):
                    await desk.context.has_shown.wait()
                before = trio.current_time()
                nursery.cancel_scope.cancel()
            await desk.server.until(lambda: request.ended is not None)
        assert request.cut
        assert trio.current_time() - before < 2
    gc.collect()  # what was left open would say so now


async def test_leaving_a_stream_early_ends_it(wire: Wire) -> None:
    """Not only a cancel: also an error of one's own in the middle of an answer."""

    class Tired(ActingContext):
        def show(self, text: str) -> None:
            raise AgentError("enough")

    async with wire.asking(always(Say("Once"), Pause(math.inf))) as desk:
        desk.context = Tired()
        assert str(await desk.fails()) == "enough"
        with trio.fail_after(SOON_S):
            await desk.server.until(lambda: desk.server.requests[0].ended is not None)
        assert desk.server.requests[0].cut
    gc.collect()  # what was left open would say so now


async def test_connections_are_used_again(wire: Wire) -> None:
    async with wire.asking(always(Say("Hello"))) as desk:
        for _ in range(5):
            await desk.run()
        assert len({request.connection for request in desk.server.requests}) == 1
