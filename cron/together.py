"""Callers that want the same verb at the same time share one call of it.

While one batch is under way the next one collects. A batch that is refused as a whole is asked for one by one, so that
nobody suffers for somebody else's mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import trio

from store.protocols import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

T = TypeVar("T")
R = TypeVar("R")


class Waiting(Generic[T, R]):
    __slots__ = ("answer", "error", "item", "told")

    def __init__(self, item: T) -> None:
        self.item = item
        self.told = False
        self.answer: R | None = None
        self.error: StoreError | None = None


class Together(Generic[T, R]):
    def __init__(self, verb: Callable[[Sequence[T]], Awaitable[Sequence[R]]], most: int = 12) -> None:
        self._verb = verb
        self._most = most
        self._collecting: list[Waiting[T, R]] = []
        self._turn = trio.Lock()

    async def __call__(self, item: T) -> R:
        mine: Waiting[T, R] = Waiting(item)
        self._collecting.append(mine)
        try:
            while not mine.told:
                async with self._turn:
                    if not mine.told:
                        await self._ask()
        finally:
            if not mine.told and mine in self._collecting:
                self._collecting.remove(mine)
        if mine.error is not None:
            raise mine.error
        return mine.answer  # type: ignore[return-value]  # it was told

    async def _ask(self) -> None:
        """Ask for everybody who waits, up to so many; whoever is cancelled over it leaves the others to ask again."""
        batch = self._collecting[: self._most]
        try:
            answers: Sequence[R] = await self._verb([one.item for one in batch])
        except StoreError as error:
            if len(batch) == 1 or error.retriable:
                self._tell_all(batch, error)
            else:
                await self._one_by_one(batch)
            return
        for one, answer in zip(batch, answers, strict=True):
            one.answer = answer
            self._tell(one)

    async def _one_by_one(self, batch: list[Waiting[T, R]]) -> None:
        for one in batch:
            try:
                (one.answer,) = await self._verb([one.item])
            except StoreError as error:
                one.error = error
            self._tell(one)

    def _tell_all(self, batch: list[Waiting[T, R]], error: StoreError) -> None:
        for one in batch:
            one.error = error
            self._tell(one)

    def _tell(self, one: Waiting[T, R]) -> None:
        one.told = True
        if one in self._collecting:
            self._collecting.remove(one)
