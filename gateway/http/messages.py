"""Messages over HTTP: kept before they are answered, and followed to their end by whoever stays.

hand in ──▶ accepted ──▶ delta, hint, clear … ──▶ end: the state, and what was said about it
               └── from here on it is kept: whoever is cut off hands it in again with the same Idempotency-Key
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing
from functools import partial
from typing import Annotated, Any, NamedTuple
from uuid import uuid4

import trio
from fastapi import APIRouter, Header, Request, Response

from gateway.access.tokens import Caller
from gateway.channels.http import CHANNEL
from gateway.followed import Followed
from gateway.history import LINES_KEPT, TRIMMED_AT_ONCE, answers_of
from gateway.http.events import BEAT, SSE, EventStream, Pulse, documented_stream, frame
from gateway.http.gate import GuardedRoute, Me, Room
from gateway.http.keys import Key, once
from gateway.http.problems import documented
from gateway.http.schedules import check_agent
from gateway.http.shapes import MessageIn, MessageOut
from gateway.http.spoken import check_command
from gateway.office import Office
from gateway.persist import persist
from gateway.streams import Stream
from store.records import DeliveryKey, Incoming, MessageState, SessionKey

router = APIRouter(route_class=GuardedRoute, tags=["messages"])

LOOKED_AT = (50, 1_000, LINES_KEPT + TRIMMED_AT_ONCE)
"""So many lines of the transcript are searched for an answer, one number after the other."""
STOPPED = "Stopped."
"""What is said about a message that was stopped: the rest is the answer to the stop."""

Step = tuple[str, dict[str, Any]]


@router.post(
    "/v1/messages",
    status_code=200,
    responses={
        200: documented_stream("The answer, or a stream of it."),
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

    With an Idempotency-Key it is one message however often it is sent, and sending it again tells how it is. What is
    said is a conversation of the tenant: whoever may chat in it may stop what runs there. A command that does what
    another route does needs the scope of that route.
    """
    check_agent(office, asked.agent)
    check_command(me, asked.text)
    session = SessionKey(me.tenant, asked.agent, CHANNEL, "", asked.chat, asked.thread)
    own = DeliveryKey(CHANNEL, "", f"{me.token}:said:{key or uuid4().hex}")
    incoming = Incoming(own, session, me.name, asked.text, admin=me.may("admin"))
    await once(office, me, "message", key, str(session), asked.text)
    steps = follow(office, me, incoming)
    if SSE in accept.lower():
        _, accepted = await anext(steps)
        return EventStream(frame("accepted", accepted), events(steps))
    request.state.soon.deadline += asked.wait
    last = await awaited(steps, asked.wait)
    response.status_code = 200 if MessageState(last.state).terminal else 202
    return last


async def events(steps: AsyncGenerator[Step]) -> AsyncGenerator[bytes]:
    """The steps as server-sent events."""
    async with aclosing(steps):
        async for kind, data in steps:
            yield BEAT if kind == "beat" else frame(kind, data)


async def awaited(steps: AsyncGenerator[Step], wait_s: float) -> MessageOut:
    """How the message is: at its end, or after so long."""
    async with aclosing(steps):
        _, accepted = await anext(steps)
        last = MessageOut(**accepted, answer=None)
        ended = MessageState(last.state).terminal  # then the end comes by itself, and only the store is waited for
        with trio.move_on_after(math.inf if ended else wait_s):
            async for kind, data in steps:
                if kind == "end":
                    last = MessageOut(**data)
    return last


async def follow(office: Office, me: Caller, incoming: Incoming) -> AsyncGenerator[Step]:
    """Keep the message and tell what becomes of it: accepted, delta, hint and clear, and one end."""
    with ExitStack() as open_:
        this = open_.enter_context(office.streams.open(me, "chat"))
        heard = open_.enter_context(office.channel.listen(incoming.session, this))
        receipt = await office.hand_in(incoming)
        known = open_.enter_context(office.followers.following(incoming.own_key, receipt.state, this))
        about = {"id": receipt.id, "session": str(incoming.session)}
        yield "accepted", {**about, "state": receipt.state}
        pulse, said = Pulse(office.beat_s), None
        while not this.ended:
            this.ready()
            while heard.pieces and said is None and not this.ended:
                piece = heard.pieces.popleft()
                if piece.kind != "reply":
                    yield piece.kind, {"text": piece.text, "turn": piece.turn}
                elif receipt.id in piece.answers:
                    said = Answer(piece.text, list(piece.answers))
            if said is not None or known.state.terminal:
                if (end := await ended(office, incoming, receipt.id, known, said, this)) is not None:
                    yield "end", {**about, **end}
                return
            if not await this.wait(pulse.left_s):
                pulse.shown()
                yield "beat", {}


class Answer(NamedTuple):
    """What was said, and all messages that it is said about."""

    text: str | None
    answers: list[int]


async def ended(
    office: Office, incoming: Incoming, message: int, known: Followed, said: Answer | None, this: Stream
) -> dict[str, Any] | None:
    """How a message has ended; None if the stream ended first."""
    with this.asking():
        if not known.state.terminal:
            known.state = await office.followers.state(incoming.own_key) or known.state
        said = said or await answer_to(office, incoming.session, message)
        if said.text is None and known.state is MessageState.STOPPED:
            said = Answer(STOPPED, [])
        return {"state": known.state, "answer": said.text, "answers": said.answers}
    return None


async def answer_to(office: Office, session: SessionKey, message: int) -> Answer:
    """What the transcript has as the answer to a message."""
    for many in LOOKED_AT:
        lines = await persist(partial(office.store.newest, session, many))
        for line in reversed(lines):
            if message in (answers := answers_of(line.said)):
                return Answer(line.said.text, answers)
        if len(lines) < many:
            break
    return Answer(None, [])
