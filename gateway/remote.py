"""The gateway of another process on this machine, as a channel's reader sees it: messages go there over HTTP.

A message has a key of its own, so it is sent again until it was taken in, and is one message however often that was.
"""

from __future__ import annotations

import json
import logging
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx2
import trio

from gateway import local
from gateway.persist import FIRST_DELAY_S, LONGEST_DELAY_S
from gateway.protocols import Delivery
from gateway.quiet import Quiet
from store.protocols import CannotOpen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from gateway.protocols import Channel
    from store.records import Cursor, Incoming

logger = logging.getLogger("goclaw.remote")

CHAT = "terminal"
ANSWERS_S = 2.0
SILENT_S = 60.0
"""A stream shows twice in this time that it is there."""
GONE_S = 30.0
"""For so long an answer is tried to be had from a gateway that is gone."""


@asynccontextmanager
async def found(directory: Path) -> AsyncIterator[httpx2.AsyncClient | None]:
    """A client for the gateway that was started by the same user; None if there is none that answers."""
    known = local.find(directory)
    if known is None:
        yield None
        return
    headers = {"Authorization": f"Bearer {known.token}"}
    async with httpx2.AsyncClient(base_url=known.url, headers=headers, timeout=ANSWERS_S, trust_env=False) as client:
        try:
            answers = (await client.get("/v1/me")).status_code == 200
        except httpx2.HTTPError:
            answers = False
        yield client if answers else None


class Remote:
    """Takes messages in like a gateway; what is said about them is shown on the channel."""

    def __init__(self, client: httpx2.AsyncClient, channel: Channel, nursery: trio.Nursery) -> None:
        self._client = client
        self._channel = channel
        self._nursery = nursery
        self._open = Quiet()
        self._run = uuid4().hex
        self._numbers = count(1)
        self._said: set[tuple[int, ...]] = set()

    @property
    def busy(self) -> bool:
        return not self._open.now

    async def receive(self, batch: Sequence[Incoming], cursor: Cursor | None = None) -> None:
        for incoming in batch:
            taken = trio.Event()
            self._open.begin()
            self._nursery.start_soon(self._follow, incoming, f"{self._run}-{next(self._numbers)}", taken)
            await taken.wait()

    async def drained(self) -> None:
        await self._open.wait()

    async def _follow(self, incoming: Incoming, key: str, taken: trio.Event) -> None:
        """Until the message has ended, however often the connection is lost."""
        delay_s, gone_at = FIRST_DELAY_S, trio.current_time() + GONE_S
        while True:
            try:
                if await self._attempt(incoming, key, taken):
                    break
            except httpx2.HTTPError as error:
                logger.info("the gateway does not answer: %r", error)
            if taken.is_set():
                gone_at = max(gone_at, trio.current_time() + delay_s)
            if trio.current_time() >= gone_at:
                raise CannotOpen(
                    "the gateway has ended. What it had taken in is kept and answered at its next start: goclaw run"
                )
            await trio.sleep(delay_s)
            delay_s = min(delay_s * 2, LONGEST_DELAY_S)
        taken.set()
        self._open.end()

    async def _attempt(self, incoming: Incoming, key: str, taken: trio.Event) -> bool:
        body = {"text": incoming.text, "agent": incoming.session.agent, "chat": CHAT}
        headers = {"Accept": "text/event-stream", "Idempotency-Key": key}
        shown = set()
        timeout = httpx2.Timeout(ANSWERS_S, read=SILENT_S)
        async with self._client.stream("POST", "/v1/messages", json=body, headers=headers, timeout=timeout) as answer:
            if answer.status_code >= 500:
                return False
            if answer.status_code >= 400:
                problem = json.loads(await answer.aread())
                await self._say(incoming, str(problem.get("detail", "it was refused")), "")
                return True
            async for kind, data in events(answer):
                turn = str(data.get("turn", ""))
                if kind == "accepted":
                    taken.set()
                elif kind == "delta":
                    shown.add(turn)
                    self._channel.show(incoming.session, turn, str(data["text"]))
                elif kind == "clear":
                    self._channel.clear(incoming.session, turn)
                elif kind == "hint":
                    self._channel.hint(incoming.session, str(data["text"]))
                elif kind == "end":
                    for turn in shown:
                        self._channel.clear(incoming.session, turn)
                    await self._answer(incoming, data)
                    return True
        return False

    async def _answer(self, incoming: Incoming, data: Mapping[str, object]) -> None:
        """What answers several messages is said once."""
        answers = data.get("answers")
        about = tuple(answers) if isinstance(answers, list) else ()
        if data.get("answer") and (not about or about not in self._said):
            self._said.add(about)
            await self._say(incoming, str(data["answer"]), "")

    async def _say(self, incoming: Incoming, text: str, turn: str) -> None:
        await self._channel.send(Delivery(incoming.session, text, turn, 0, "", no_progress))


async def no_progress(parts: int, live: str) -> None:
    """A terminal has no parts."""


async def events(answer: httpx2.Response) -> AsyncIterator[tuple[str, Mapping[str, object]]]:
    """Server-sent events as they come; what is no event of ours is passed over."""
    kind = ""
    async for line in answer.aiter_lines():
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: ") and kind:
            data = json.loads(line.removeprefix("data: "))
            if isinstance(data, dict):
                yield kind, data
        elif not line:
            kind = ""
