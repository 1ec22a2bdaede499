"""The gateway of another process on this machine, as a channel's reader sees it: messages go there over HTTP.

A message has a key of its own, so it is sent again until it was taken in, and is one message however often that was.
"""

from __future__ import annotations

import json
import logging
from contextlib import aclosing, asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx2
import trio

from gateway import local
from gateway.persist import FIRST_DELAY_S
from gateway.plain import excerpt
from gateway.protocols import Delivery
from gateway.quiet import Quiet
from store.protocols import CannotOpen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
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
LOOK_AGAIN_S = 1.0
LATER = frozenset({401, 408, 421, 429})
"""Of a gateway that ends, begins or is not the one any more that was found, or that is asked too often."""
GONE = "the gateway has ended. "
KEPT = "What it had taken in is kept and answered at its next start: goclaw run"


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


class Away(Exception):
    """Not now: the gateway is not there, or cannot take it at the moment."""


class Remote:
    """Takes messages in like a gateway; what is said about them is shown on the channel."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        channel: Channel,
        nursery: trio.Nursery,
        directory: Path,
        gone_s: float = GONE_S,
    ) -> None:
        self._gone_s = gone_s
        self._client = client
        self._channel = channel
        self._nursery = nursery
        self._directory = directory
        self._open = Quiet()
        self._run = uuid4().hex
        self._numbers = count(1)
        self._said: set[tuple[int, ...]] = set()
        self._away = False

    @property
    def busy(self) -> bool:
        """Something is under way that could be stopped."""
        return not self._open.now and not self._away

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
        delay_s, gone_at = FIRST_DELAY_S, trio.current_time() + self._gone_s
        while True:
            try:
                if await self._attempt(incoming, key, taken):
                    break
                delay_s, gone_at = FIRST_DELAY_S, trio.current_time() + self._gone_s  # it was there
            except (httpx2.HTTPError, Away) as error:
                logger.info("the gateway does not answer: %r", error)
                self._away = True
            if trio.current_time() >= gone_at:
                raise CannotOpen(GONE + (KEPT if taken.is_set() else f'Not taken in: "{excerpt(incoming.text)}".'))
            await trio.sleep(delay_s)
            delay_s = min(delay_s * 2, LOOK_AGAIN_S)
        taken.set()
        self._open.end()

    def _request(self, incoming: Incoming, key: str) -> httpx2.Request:
        """To the gateway as it can be found now: one that was started anew has another token, maybe another port."""
        known = local.find(self._directory)
        headers = {"Accept": "text/event-stream", "Idempotency-Key": key}
        headers |= {} if known is None else {"Authorization": f"Bearer {known.token}"}
        url = f"{'' if known is None else known.url}/v1/messages"
        body = {"text": incoming.text, "agent": incoming.session.agent, "chat": CHAT}
        timeout = httpx2.Timeout(ANSWERS_S, read=SILENT_S)
        return self._client.build_request("POST", url, json=body, headers=headers, timeout=timeout)

    async def _attempt(self, incoming: Incoming, key: str, taken: trio.Event) -> bool:
        """Whether the message has ended. False: the stream has, or the gateway is somebody else's by now."""
        answer = await self._client.send(self._request(incoming, key), stream=True)
        try:
            if answer.status_code in LATER or answer.status_code >= 500:
                raise Away(answer.status_code)
            self._away = False
            if answer.status_code >= 400:
                await self._say(incoming, refusal(await answer.aread()))
                return True
            return await self._hear(incoming, answer, taken)
        finally:
            with trio.CancelScope(shield=True):
                await answer.aclose()

    async def _hear(self, incoming: Incoming, answer: httpx2.Response, taken: trio.Event) -> bool:
        shown: dict[str, None] = {}
        try:
            async with aclosing(events(answer)) as heard:
                async for kind, data in heard:
                    if kind == "accepted":
                        taken.set()
                    elif kind == "end":
                        self._clear(incoming, shown)
                        await self._answer(incoming, data)
                        return True
                    else:
                        self._show(incoming, kind, data, shown)
            return False
        finally:
            self._clear(incoming, shown)

    def _show(self, incoming: Incoming, kind: str, data: Mapping[str, object], shown: dict[str, None]) -> None:
        turn, text = str(data.get("turn", "")), str(data.get("text", ""))
        if kind == "delta":
            shown[turn] = None
            self._channel.show(incoming.session, turn, text)
        elif kind == "clear":
            self._channel.clear(incoming.session, turn)
        elif kind == "hint":
            self._channel.hint(incoming.session, text)

    def _clear(self, incoming: Incoming, shown: dict[str, None]) -> None:
        while shown:
            self._channel.clear(incoming.session, shown.popitem()[0])

    async def _answer(self, incoming: Incoming, data: Mapping[str, object]) -> None:
        """What answers several messages is said once; that one was stopped is said by the answer to the stop."""
        answers = data.get("answers")
        about = tuple(answers) if isinstance(answers, list) else ()
        if data.get("answer") and about and about not in self._said:
            self._said.add(about)
            await self._say(incoming, str(data["answer"]))

    async def _say(self, incoming: Incoming, text: str) -> None:
        await self._channel.send(Delivery(incoming.session, text, "", 0, "", no_progress))


def refusal(body: bytes) -> str:
    """What a problem says, and what to do about it."""
    try:
        problem = json.loads(body)
        return " ".join(str(problem[name]) for name in ("detail", "next") if problem.get(name))
    except (ValueError, AttributeError):
        return "The gateway refused it without a reason."


async def no_progress(parts: int, live: str) -> None:
    """A terminal has no parts."""


async def events(answer: httpx2.Response) -> AsyncGenerator[tuple[str, Mapping[str, object]]]:
    """Server-sent events as they come; what is no event of ours is passed over.

    Only a newline ends a line here: others, such as U+2028, may be in the middle of what was said.
    """
    kind, half = b"", b""
    async with aclosing(answer.aiter_bytes()) as pieces:
        async for piece in pieces:
            *lines, half = (half + piece).split(b"\n")
            for line in lines:
                if line.startswith(b"event: "):
                    kind = line.removeprefix(b"event: ")
                elif line.startswith(b"data: ") and kind:
                    data = json.loads(line.removeprefix(b"data: "))
                    if isinstance(data, dict):
                        yield kind.decode(), data
                elif not line:
                    kind = b""
