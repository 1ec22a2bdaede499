"""The channel of the HTTP API: whoever has asked and still listens hears what is said in the conversation.

Nobody listening is no failure. What was said is in the transcript, and how a message ended is in the store; a client
that was cut off asks again with the same Idempotency-Key.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gateway.protocols import Pace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.protocols import Delivery
    from gateway.streams import Stream
    from store.records import SessionKey

CHANNEL = "http"
MOST_WAITING = 1_000
"""Pieces for a listener that does not take them; what is shown only meanwhile makes room, and is cleared."""


@dataclass(frozen=True, slots=True)
class Piece:
    kind: Literal["delta", "hint", "clear", "reply"]
    text: str = ""
    turn: str = ""
    answers: tuple[int, ...] = ()


@dataclass(slots=True, eq=False)
class Listener:
    stream: Stream
    pieces: deque[Piece] = field(default_factory=deque)

    def put(self, piece: Piece) -> None:
        if len(self.pieces) >= MOST_WAITING:
            turns = dict.fromkeys(one.turn for one in self.pieces if one.kind == "delta")
            replies = (one for one in self.pieces if one.kind == "reply")
            self.pieces = deque([*(Piece("clear", turn=turn) for turn in turns), *replies])
        self.pieces.append(piece)
        self.stream.poke()


class HttpChannel:
    name = CHANNEL
    pace = Pace()

    def __init__(self) -> None:
        self._listeners: dict[SessionKey, set[Listener]] = {}

    @contextmanager
    def listen(self, session: SessionKey, stream: Stream) -> Iterator[Listener]:
        """What is said in the conversation from now on."""
        listener = Listener(stream)
        self._listeners.setdefault(session, set()).add(listener)
        try:
            yield listener
        finally:
            here = self._listeners[session]
            here.discard(listener)
            if not here:
                del self._listeners[session]

    async def send(self, delivery: Delivery) -> str:
        self._put(delivery.session, Piece("reply", delivery.text, delivery.turn, delivery.answers))
        return ""

    def show(self, session: SessionKey, turn: str, text: str) -> None:
        self._put(session, Piece("delta", text, turn))

    def clear(self, session: SessionKey, turn: str) -> None:
        self._put(session, Piece("clear", turn=turn))

    def hint(self, session: SessionKey, text: str) -> None:
        self._put(session, Piece("hint", text))

    def _put(self, session: SessionKey, piece: Piece) -> None:
        for listener in self._listeners.get(session, ()):
            listener.put(piece)
