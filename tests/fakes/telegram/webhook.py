"""Updates over HTTP to where the bot wants them: in order within a chat, and again until they are taken."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import trio

from tests.fakes.telegram.errors import bad

if TYPE_CHECKING:
    from tests.fakes.telegram.parameters import Parameters
    from tests.fakes.telegram.updates import Update
    from tests.fakes.telegram.world import World

SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")
HEADER = "X-Telegram-Bot-Api-Secret-Token"
HERE = ("127.0.0.1", "localhost", "::1")
CONNECTIONS = 40
TRUSTED = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
TIMEOUT_S = 60.0
LONGEST_RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class Delivery:
    """One attempt; ``status`` 0 without an answer."""

    update_id: int
    at: float
    status: int


class Webhook:
    """``retry_s`` is how long it waits after the first failure, then twice as long each time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.url = ""
        self.secret: str | None = None
        self.connections = CONNECTIONS
        self.retry_s = 1.0
        self.deliveries: list[Delivery] = []
        self._error: dict[str, Any] = {}
        self._busy: set[int | None] = set()

    def set(self, given: Parameters) -> str:
        """What is said of it."""
        url, secret = str(given.get("url", "")), given.get("secret_token")
        if not url:
            return self.delete(given)
        where = urlsplit(url)
        if where.scheme != "https" and not (where.scheme == "http" and where.hostname in HERE):
            raise bad("bad webhook: An HTTPS URL must be provided for webhook")
        if secret is not None and not SECRET.fullmatch(secret):
            raise bad("secret token contains unallowed characters")
        if "allowed_updates" in given.values:
            self._world.updates.allowed = frozenset(given.structure("allowed_updates", list, []))
        if given.get("drop_pending_updates"):
            self._world.updates.drop()
        same = (url, secret) == (self.url, self.secret)
        self.url, self.secret, self._error = url, secret, {}
        self.connections = given.number("max_connections", CONNECTIONS)
        self._world.note()
        return "Webhook is already set" if same else "Webhook was set"

    def delete(self, given: Parameters) -> str:
        if given.get("drop_pending_updates"):
            self._world.updates.drop()
        was, self.url, self.secret, self._error = self.url, "", None, {}
        self._world.note()
        return "Webhook was deleted" if was else "Webhook is already deleted"

    @property
    def busy(self) -> frozenset[int | None]:
        """The chats for which an update is under way."""
        return frozenset(self._busy)

    @property
    def info(self) -> dict[str, Any]:
        waiting = len(self._world.updates.pending)
        told = {"url": self.url, "has_custom_certificate": False, "pending_update_count": waiting, **self._error}
        if self.url:
            told |= {"max_connections": self.connections, "ip_address": "127.0.0.1"}
        if self._world.updates.allowed:
            told["allowed_updates"] = sorted(self._world.updates.allowed)
        return told

    async def run(self) -> None:
        async with (
            httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False, verify=TRUSTED) as client,
            trio.open_nursery() as nursery,
        ):
            while True:
                await self._world.until(lambda: self._due() is not None)
                if (update := self._due()) is not None:
                    self._busy.add(update.chat_id)
                    self._world.note()
                    nursery.start_soon(self._deliver, client, update)

    def _due(self) -> Update | None:
        """The next one whose chat waits for nothing else."""
        if not self.url or len(self._busy) >= self.connections:
            return None
        updates = self._world.updates
        for update in updates.take_again():
            updates.pending.appendleft(update)
        return next((update for update in updates.pending if update.chat_id not in self._busy), None)

    async def _deliver(self, client: httpx.AsyncClient, update: Update) -> None:
        updates, wait_s = self._world.updates, self.retry_s
        try:
            while self.url and update in updates.pending:
                if await self._post(client, update):
                    if updates.doubled > 0:
                        updates.doubled -= 1
                        await self._post(client, update)
                    updates.done(update)
                    return
                await trio.sleep(wait_s)
                wait_s = min(2 * wait_s, LONGEST_RETRY_S)
        finally:
            self._busy.discard(update.chat_id)
            self._world.note()

    async def _post(self, client: httpx.AsyncClient, update: Update) -> bool:
        headers = {} if self.secret is None else {HEADER: self.secret}
        try:
            status = (await client.post(self.url, json=update.body, headers=headers)).status_code
        except httpx.ConnectError:
            status, why = 0, "Connection refused"
        except httpx.TimeoutException:
            status, why = 0, "Read timeout expired"
        except httpx.TransportError:
            status, why = 0, "Connection reset by peer"
        else:
            why = f"Wrong response from the webhook: {status} {httpx.codes.get_reason_phrase(status)}".rstrip()
        self.deliveries.append(Delivery(update.id, self._world.now(), status))
        if not 200 <= status < 300:
            self._error = {"last_error_date": self._world.date(), "last_error_message": why}
        self._world.note()
        return 200 <= status < 300
