"""Updates are brought to a webhook with its secret, in order within a chat, and again until they are taken."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from telegram.error import BadRequest

from tests.fakes.wire import Gone, Line
from tests.unit.fakes.telegram_bot import Here, here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(slots=True)
class Hook:
    """What came, and the statuses that are answered first; then 200. A chat in ``held`` waits."""

    url: str = ""
    came: list[tuple[str | None, dict[str, Any]]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    held: dict[int, trio.Event] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        return [update["message"]["text"] for _, update in self.came]

    async def serve(self, stream: trio.SocketStream) -> None:
        line = Line(stream, 2**20)
        try:
            while (request := await line.request()) is not None:
                update = json.loads(request.body)
                self.came.append((request.headers.get("x-telegram-bot-api-secret-token"), update))
                if (event := self.held.get(update["message"]["chat"]["id"])) is not None:
                    await event.wait()
                await line.whole(self.statuses.pop(0) if self.statuses else 200, {}, b"")
        except Gone:
            pass


@asynccontextmanager
async def hooked(**options: Any) -> AsyncIterator[tuple[Here, Hook]]:
    async with here() as place, trio.open_nursery() as nursery:
        hook = Hook()
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(partial(trio.serve_listeners, hook.serve, listeners))
        hook.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/hook"
        place.api.webhook.retry_s = 0.01
        await place.bot.set_webhook(hook.url, **options)
        yield place, hook
        nursery.cancel_scope.cancel()


async def test_an_update_is_brought_with_the_secret() -> None:
    """And what was taken does not wait any more."""
    async with hooked(secret_token="s-1") as (place, hook):  # noqa: S106
        await place.chat.says(place.ann, "hello")
        await place.api.until(lambda: not place.api.updates.pending)
        assert [(secret, update["message"]["text"]) for secret, update in hook.came] == [("s-1", "hello")]
        info = await place.bot.get_webhook_info()
        assert (info.url, info.pending_update_count, info.last_error_message) == (hook.url, 0, None)


async def test_what_is_not_taken_is_brought_again() -> None:
    """In order, however long it takes; meanwhile it is said what is wrong. Nobody is asked for what was taken."""
    async with hooked() as (place, hook):
        hook.statuses = [500, 401, 302]
        with place.api.updates.held():
            await place.chat.says(place.ann, "one")
            await place.chat.says(place.ann, "two")
        await place.api.until(lambda: not place.api.updates.pending)
        assert hook.texts == ["one"] * 4 + ["two"]
        assert [delivery.status for delivery in place.api.webhook.deliveries] == [500, 401, 302, 200, 200]
        info = await place.bot.get_webhook_info()
        assert info.last_error_message == "Wrong response from the webhook: 302 Found"


async def test_nobody_there_is_an_error_that_is_told() -> None:
    async with here() as place:
        await place.bot.set_webhook("http://127.0.0.1:9/")
        await place.chat.says(place.ann, "hello")
        await place.api.until(lambda: place.api.webhook.deliveries)
        info = await place.bot.get_webhook_info()
        assert (info.pending_update_count, info.last_error_message) == (1, "Connection refused")
        await place.bot.delete_webhook()
        assert len(await place.updates()) == 1


async def test_a_chat_that_hangs_holds_up_no_other() -> None:
    async with hooked() as (place, hook):
        hook.held[7] = trio.Event()
        await place.chat.says(place.ann, "stuck")
        await place.api.until(lambda: place.api.webhook.busy)
        await place.team.says(place.ben, "free")
        await place.api.until(lambda: place.api.webhook.deliveries)
        assert [update.chat_id for update in place.api.updates.pending] == [7]
        hook.held[7].set()
        await place.api.until(lambda: not place.api.updates.pending)


async def test_doubled_and_told_again() -> None:
    """As with polling, on request."""
    async with hooked() as (place, hook):
        place.api.updates.doubled = 1
        await place.chat.says(place.ann, "x")
        await place.api.until(lambda: not place.api.updates.pending)
        place.api.updates.again(place.api.updates.all[0])
        await place.api.until(lambda: len(hook.came) == 3 and not place.api.updates.pending)
        assert len({update["update_id"] for _, update in hook.came}) == 1


async def test_a_webhook_that_cannot_be_is_refused() -> None:
    """Plain HTTP to elsewhere, and a secret that does not fit in a header; what waits is dropped on request."""
    async with here() as place:
        with pytest.raises(BadRequest, match="https url must be provided"):
            await place.bot.set_webhook("http://example.org/")
        with pytest.raises(BadRequest, match="unallowed characters"):
            await place.bot.set_webhook("http://127.0.0.1:9/", secret_token="a b")  # noqa: S106
        await place.chat.says(place.ann, "x")
        assert await place.bot.delete_webhook(drop_pending_updates=True)
        assert await place.updates() == ()
