"""How messages are that somebody follows: all of them are looked at together, however many there are.

What happens in this process is heard at once. Whatever another gateway does with a message, and what ends without a
word, only the store knows; it is asked while somebody follows something, and by nobody else.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import trio

from gateway.persist import persist

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.streams import Stream
    from store.protocols import Store
    from store.records import MessageState, OwnKey

LOOK_S = 0.5


@dataclass(slots=True, eq=False)
class Followed:
    """A message, as far as it is known here."""

    state: MessageState
    stream: Stream


class Followers:
    def __init__(self, store: Store) -> None:
        self._messages = store.messages(None)
        self._followed: defaultdict[OwnKey, set[Followed]] = defaultdict(set)
        self._some = trio.Event()
        self.looks = 0
        """How often the store was asked about all of them."""

    @property
    def count(self) -> int:
        """How many messages are followed."""
        return len(self._followed)

    @contextmanager
    def following(self, key: OwnKey, state: MessageState, stream: Stream) -> Iterator[Followed]:
        """The message, known to be like this; the stream is poked when it has ended."""
        followed = Followed(state, stream)
        self._followed[key].add(followed)
        self._some.set()
        try:
            yield followed
        finally:
            self._followed[key].discard(followed)
            if not self._followed[key]:
                del self._followed[key]

    async def watch(self) -> None:
        """For ever. Costs nothing while nobody follows anything."""
        while True:
            if not self._followed:
                self._some = trio.Event()
                await self._some.wait()
            await trio.sleep(LOOK_S)
            await self.look()

    async def state(self, key: OwnKey) -> MessageState | None:
        """How one of them is now."""
        return (await persist(partial(self._messages.states, [key]))).get(key)

    async def look(self) -> None:
        if keys := [key for key, those in self._followed.items() if any(not one.state.terminal for one in those)]:
            self.looks += 1
            for key, state in (await persist(partial(self._messages.states, keys))).items():
                for followed in self._followed.get(key, ()):
                    followed.state = state
                    if state.terminal:
                        followed.stream.poke()
