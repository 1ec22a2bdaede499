"""A channel that writes down everything people would see, takes its time, and stumbles now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from gateway.protocols import ChannelError, Pace
from tests.simulation.history import What
from tests.simulation.world import Crashed

if TYPE_CHECKING:
    from gateway.protocols import Delivery
    from store.records import SessionKey
    from tests.simulation.world import Life, World


class RecordingChannel:
    name = "sim"
    pace = Pace()

    def __init__(self, world: World, life: Life) -> None:
        self._world = world
        self._life = life
        self._random = world.random(f"channel {life.number}")

    async def send(self, delivery: Delivery) -> str:
        session, text = delivery.session, delivery.text
        self._tell(What.SEND, session, text)
        faults = self._world.plan.faults
        await trio.sleep(self._random.uniform(0, faults.send_s))
        if self._life.dead:
            raise Crashed
        now = trio.current_time()
        away = any(start <= now < end for start, end in faults.send_outages)
        if away or self._random.random() < faults.send_fails:
            self._fail(session, text)
        self._tell(What.DELIVERED, session, text)
        if self._random.random() < faults.send_fails / 4:
            self._fail(session, text)  # people have it, but we do not know: it will come twice
        return text

    def show(self, session: SessionKey, turn: str, text: str) -> None:
        self._tell(What.SHOWN, session, text)

    def hint(self, session: SessionKey, text: str) -> None:
        """Not part of what is promised."""

    def clear(self, session: SessionKey, turn: str) -> None:
        self._tell(What.CLEARED, session, "")

    def _fail(self, session: SessionKey, text: str) -> None:
        self._tell(What.UNSENT, session, text)
        raise ChannelError("the channel stumbled")

    def _tell(self, what: What, session: SessionKey, text: str) -> None:
        self._world.tell(what, self._life, session=str(session), text=text)
