"""Words for those who listen to a store: each is heard once, in the order in which it was first said."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from store.protocols import POLL

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True, eq=False)
class Heard:
    """Words that nobody has taken yet, equal ones joined. An endless iterator."""

    words: dict[str, None] = field(default_factory=dict)
    more: trio.Event = field(default_factory=trio.Event)

    def say(self, word: str) -> None:
        self.words[word] = None
        self.more.set()

    def __aiter__(self) -> Heard:
        return self

    async def __anext__(self) -> str:
        while not self.words:
            self.more = trio.Event()
            await self.more.wait()
        await trio.lowlevel.checkpoint()
        word = next(iter(self.words))
        del self.words[word]
        return word


class Ears:
    """Those who listen to a store that one process has to itself."""

    def __init__(self) -> None:
        self._listening: set[Heard] = set()

    def say(self, word: str) -> None:
        for heard in self._listening:
            heard.say(word)

    @contextmanager
    def listening(self) -> Iterator[Heard]:
        heard = Heard({POLL: None})
        self._listening.add(heard)
        try:
            yield heard
        finally:
            self._listening.discard(heard)
