"""Messages over HTTP: kept before they are answered, and followed to their end by whoever stays."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, aclosing
from functools import partial
from typing import Annotated, Any
from uuid import uuid4

import orjson
import trio
from fastapi import APIRouter, Header, Request, Response
from starlette.responses import StreamingResponse

from gateway.access.tokens import Caller
from gateway.channels.http import CHANNEL
from gateway.history import ANSWERS
from gateway.http.gate import GuardedRoute, Me, Room
from gateway.http.keys import Key, once
from gateway.http.problems import documented
from gateway.http.runs import BEAT_S, SSE
from gateway.http.schedules import check_agent
from gateway.http.shapes import MessageIn, MessageOut
from gateway.office import Office
from gateway.persist import persist
from store.records import DeliveryKey, Incoming, MessageState, SessionKey

router = APIRouter(route_class=GuardedRoute, tags=["messages"])

LOOK_S = 0.5
"""How often the store is asked how a message is, while nothing is heard of it: another gateway may work on it."""
LOOKED_AT = 50
"""So many lines of the transcript are searched for an answer."""


@router.post(
    "/v1/messages",
    status_code=200,
    responses={
        200: {"content": {SSE: {"schema": {"type": "string"}}}, "description": "The answer, or a stream of it."},
        202: {"model": MessageOut, "description": "Kept; it has not ended yet."},
        **documented(401, 403, 404, 422, 429, 503),
    },
)
async def post(
    asked: MessageIn,
    request: Request,
    response: Response,
    me: Me,
    office: Room,
    key: Key = None,
    accept: Annotated[str, Header(max_length=1_000, include_in_schema=False)] = "",
) -> Any:
    """Keep a message, and follow it: as a stream if `Accept: text/event-stream` is sent, else for `wait` seconds.

    With an Idempotency-Key it is one message however often it is sent, and sending it again tells how it is.
    """
    check_agent(office, asked.agent)
    session = SessionKey(me.tenant, asked.agent, CHANNEL, "", asked.chat, asked.thread)
    own = DeliveryKey(CHANNEL, "", f"{me.token}:{key or uuid4().hex}")
    incoming = Incoming(own, session, me.name, asked.text)
    await once(office, me, "message", key, str(session), asked.text)
    if SSE in accept.lower():
        return StreamingResponse(events(office, me, incoming), media_type=SSE)
    request.state.soon.deadline += asked.wait
    receipt = await office.hand_in(incoming)
    last = MessageOut(id=receipt.id, session=str(session), state=receipt.state, answer=None)
    if asked.wait or receipt.state.terminal:
        with trio.move_on_after(asked.wait or LOOK_S):
            async with aclosing(follow(office, me, incoming)) as steps:
                async for kind, data in steps:
                    if kind == "end":
                        last = MessageOut(**data)
    response.status_code = 200 if MessageState(last.state).terminal else 202
    return last


async def events(office: Office, me: Caller, incoming: Incoming) -> AsyncIterator[bytes]:
    """The same as server-sent events."""
    async with aclosing(follow(office, me, incoming)) as steps:
        async for kind, data in steps:
            yield (
                b": heartbeat\n\n"
                if kind == "beat"
                else b"event: %s\ndata: %s\n\n"
                % (
                    kind.encode(),
                    orjson.dumps(data),
                )
            )


async def follow(office: Office, me: Caller, incoming: Incoming) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
    """Keep the message and tell what becomes of it: accepted, delta, hint and clear, and one end."""
    with ExitStack() as open_:
        this = open_.enter_context(office.streams.open(me, "chat"))
        heard = open_.enter_context(office.channel.listen(incoming.session, this))
        receipt = await office.hand_in(incoming)
        about = {"id": receipt.id, "session": str(incoming.session)}
        yield "accepted", {**about, "state": receipt.state}
        beat_at = trio.current_time() + BEAT_S
        while not this.ended:
            this.ready()
            while heard.pieces:
                piece = heard.pieces.popleft()
                if piece.kind != "reply":
                    yield piece.kind, {"text": piece.text, "turn": piece.turn}
                elif receipt.id in piece.answers:
                    state = (await office.look_at(incoming)).state
                    yield "end", {**about, "state": state, "answer": piece.text, "answers": list(piece.answers)}
                    return
            if not await this.wait(LOOK_S) and not heard.pieces:
                state = (await office.look_at(incoming)).state
                if state.terminal:
                    answer, answers = await answer_to(office, incoming, receipt.id)
                    yield "end", {**about, "state": state, "answer": answer, "answers": answers}
                    return
                if trio.current_time() >= beat_at:
                    beat_at = trio.current_time() + BEAT_S
                    yield "beat", {}


async def answer_to(office: Office, incoming: Incoming, message: int) -> tuple[str | None, list[int]]:
    """What the transcript has as the answer to a message, and all messages that it answers."""
    for line in reversed(await persist(partial(office.store.newest, incoming.session, LOOKED_AT))):
        answers = line.said.data.get(ANSWERS)
        if isinstance(answers, list) and message in answers:
            return line.said.text, answers
    return None, []
