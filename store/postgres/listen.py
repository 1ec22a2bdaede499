"""Hearing of what others did: one connection of its own that LISTENs, kept up for as long as somebody is interested.

    connect ──▶ LISTEN ──▶ `POLL` ──▶ words, until the connection is lost or does not answer ──▶ wait ──┐
       ▲                                                                                                │
       └────────────────────────────────────────────────────────────────────────────────────────────────┘

Whatever was said while nobody listened is made good by `POLL`. The wait doubles with every failure.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import trio

from store.hearing import Heard
from store.postgres.database import connect
from store.postgres.errors import DRIVER, said
from store.postgres.queries import load
from store.postgres.text import plain
from store.protocols import POLL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from store.postgres.database import Database

SQL = load("connections")
CHANNEL = "goclaw"
FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 5.0
ALIVE = timedelta(seconds=5)
GOODBYE_S = 2

log = logging.getLogger(__name__)


@asynccontextmanager
async def listening(db: Database, alive: timedelta = ALIVE) -> AsyncIterator[AsyncIterator[str]]:
    """The words of others for the time of the block; it begins when the first attempt to listen was made."""
    ear = Ear(db, alive)
    # The nursery is not told what the block raises, so that it comes out as it is and not in a group.
    manager = trio.open_nursery()
    nursery = await manager.__aenter__()
    try:
        nursery.start_soon(ear.keep_listening)
        await ear.tried.wait()
        yield ear.heard
    finally:
        nursery.cancel_scope.cancel()
        await manager.__aexit__(None, None, None)


class Ear:
    def __init__(self, db: Database, alive: timedelta) -> None:
        self.db = db
        self.alive = alive
        self.heard = Heard()
        self.tried = trio.Event()
        self.lost = trio.Event()

    async def keep_listening(self) -> None:
        wait_s = FIRST_WAIT_S
        while True:
            began = trio.current_time()
            try:
                await self.listen_once()
            except DRIVER as error:
                log.warning("no word of other processes for now (%s); listening again soon", said(error))
            self.heard.say(POLL)
            self.tried.set()
            if trio.current_time() - began > LONGEST_WAIT_S:
                wait_s = FIRST_WAIT_S
            await trio.sleep(wait_s)
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)

    async def listen_once(self) -> None:
        """Until the connection is lost."""
        self.lost = trio.Event()
        connection = await self.db.bridge.run(self.attach)
        try:
            self.heard.say(POLL)
            self.tried.set()
            while not self.lost.is_set():
                with trio.move_on_after(self.alive.total_seconds()):
                    await self.lost.wait()
                await self.db.bridge.run(connection.execute, SQL["alive"])
        finally:
            with trio.move_on_after(GOODBYE_S, shield=True):
                await self.db.bridge.run(self.leave, connection)

    # ── on the event loop ────────────────────────────────────────────────────────────────────────────────────────────

    async def attach(self) -> Any:
        connection = await connect(self.db.target, self.db.limits)
        try:
            connection.add_termination_listener(self.on_lost)
            await connection.add_listener(CHANNEL, self.on_word)
        except BaseException:
            connection.terminate()
            raise
        return connection

    def on_word(self, connection: Any, process: int, channel: str, word: str) -> None:
        self.db.bridge.tell(lambda: self.heard.say(plain(word)))

    def on_lost(self, connection: Any) -> None:
        self.db.bridge.tell(self.lost.set)

    async def leave(self, connection: Any) -> None:
        connection.terminate()
