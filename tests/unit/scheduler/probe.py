"""What most tests of the scheduler start from: quick requests, and handlers that note what happened to them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import trio

from scheduler import End, Policy, Request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scheduler import Run, Ticket

QUICK = Policy(debounce_s=0)
GROUP = Policy(debounce_s=0, max_concurrent=3, shared=True)


def quick(
    handler: Callable[[Run], Awaitable[Any]],
    payload: Any = None,
    session: str = "dm",
    *,
    policy: Policy = QUICK,
    **rest: Any,
) -> Request:
    """A request without debounce, in one common session unless told."""
    return Request(session, handler, payload, policy=policy, **rest)


class Probe:
    """A handler that lasts a while and remembers its turns and how many were alive at once."""

    def __init__(self, lasts_s: float = 1.0, unwinds_s: float = 0.0) -> None:
        self.lasts_s = lasts_s
        self.unwinds_s = unwinds_s
        self.turns: list[tuple[Any, ...]] = []  # the payloads of each turn, as they started
        self.done: list[tuple[Any, ...]] = []  # those that ran to their end
        self.starts: dict[Any, float] = {}  # when each payload's turn started
        self.runs: list[Run] = []
        self.most: Counter[str] = Counter()  # most alive at once: in "all", in each session, in "lane:<name>"
        self._alive: Counter[str] = Counter()

    async def __call__(self, run: Run) -> tuple[Any, ...]:
        payloads = tuple(request.payload for request in run.requests)
        self.turns.append(payloads)
        self.runs.append(run)
        self.starts |= dict.fromkeys(payloads, trio.current_time())
        places = ("all", run.request.session, f"lane:{run.lane}")
        for place in places:
            self._alive[place] += 1
            self.most[place] = max(self.most[place], self._alive[place])
        try:
            await trio.sleep(self.lasts_s)
        finally:
            if self.unwinds_s and run.cancelled:
                with trio.CancelScope(shield=True):
                    await trio.sleep(self.unwinds_s)
            for place in places:
                self._alive[place] -= 1
        self.done.append(payloads)
        return payloads

    @property
    def alive(self) -> int:
        return self._alive["all"]

    @property
    def order(self) -> list[Any]:
        """All payloads in the order in which they started."""
        return [payload for turn in self.turns for payload in turn]


class Ends:
    """An ``on_end`` that counts: every message must come by exactly once."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, End]] = []

    def __call__(self, ticket: Ticket) -> None:
        assert ticket.outcome is not None
        self.seen.append((ticket.request.payload, ticket.outcome.end))

    def of(self, payload: Any) -> list[End]:
        return [end for seen, end in self.seen if seen == payload]


class Stubborn:
    """A handler that ignores its cancellation until ``gate`` is opened, or for hours, so that a failing test ends."""

    def __init__(self) -> None:
        self.gate = trio.Event()
        self.runs: list[Run] = []

    async def __call__(self, run: Run) -> str:
        self.runs.append(run)
        with trio.move_on_after(10_000, shield=True):
            await self.gate.wait()
        return "late"


async def forever(run: Run) -> None:
    await trio.sleep_forever()


async def nothing(run: Run) -> None:
    """Ends within its first step."""


def ends_of(*tickets: Ticket) -> list[End | None]:
    return [ticket.outcome.end if ticket.outcome is not None else None for ticket in tickets]
