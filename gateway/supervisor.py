"""Services that go on whatever happens to them: one that crashes is said, rests, and starts again; no other notices.

    starting ──▶ running ──▶ stopped                 it returned: nothing more is to be done; "given up" if it had said
                                                     before that it cannot do its work
        ▲           │ raised
        └─ resting ─┘         1 s, twice as long each time up to a minute, 1 s again after five calm minutes

What is ``fatal`` to the whole passes and ends it, and so does a cancellation. Everything else is kept here.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

logger = logging.getLogger("goclaw.supervisor")

FIRST_REST_S = 1.0
LONGEST_REST_S = 60.0
CALM_S = 300.0
"""Who has worked for so long rests as briefly as the first time."""

State = Literal["starting", "running", "resting", "stopped", "given up"]
Fatal = tuple[type[BaseException], ...]


@dataclass(frozen=True, slots=True)
class Health:
    """How a service is; ``error`` is the last one that it met."""

    name: str
    state: State
    since: datetime
    restarts: int = 0
    error: str = ""


class Supervisor:
    """Its services live in the nursery that it is given."""

    def __init__(
        self,
        nursery: trio.Nursery,
        now: Callable[[], datetime],
        *,
        fatal: Fatal = (),
        changed: Callable[[Health], None] | None = None,
        redact: Callable[[str], str] = str,
    ) -> None:
        """``changed`` hears how a service is whenever that changes; ``redact`` takes secrets out of its errors."""
        self._nursery = nursery
        self._now = now
        self._fatal = fatal
        self._changed = changed
        self._redact = redact
        self._health: dict[str, Health] = {}

    def start(
        self,
        name: str,
        service: Callable[[], Awaitable[None]],
        *,
        told: Callable[[Exception, float], None] | None = None,
        left: trio.Event | None = None,
    ) -> None:
        """Have it run for as long as the nursery lives, or until it returns. ``told`` hears of its failures too."""
        if name in self._health and self._health[name].state not in ("stopped", "given up"):
            raise ValueError(f"there is a service {name} already")
        self._health[name] = Health(name, "starting", self._now())
        self._nursery.start_soon(self._keep, name, service, told, left, name=name)

    def troubled(self, name: str, error: str) -> None:
        """The service itself tells that it cannot do its work for now. It goes on trying."""
        self._health[name] = replace(self._health[name], error=self._redact(error))
        self._turn(name, "resting")

    def well(self, name: str) -> None:
        """The service works again."""
        if self._health[name].state == "resting":
            self._turn(name, "running")

    def health(self) -> tuple[Health, ...]:
        """In the order in which they were started."""
        return tuple(self._health.values())

    async def _keep(
        self,
        name: str,
        service: Callable[[], Awaitable[None]],
        told: Callable[[Exception, float], None] | None,
        left: trio.Event | None,
    ) -> None:
        def failed(error: Exception, rest_s: float) -> None:
            known = self._health[name]
            self._health[name] = replace(known, restarts=known.restarts + 1, error=self._redact(plain(error)))
            self._turn(name, "resting")
            if told is None:
                logger.error("%s failed; starting it again in %g s", name, rest_s, exc_info=error)
            else:
                told(error, rest_s)

        async def run() -> None:
            self._turn(name, "running")
            await service()
            ended = left is not None and left.is_set()
            if self._health[name].state == "resting" and not ended:  # it had said that it cannot do its work
                self._turn(name, "given up")

        try:
            await keep_running(run, failed, fatal=self._fatal, left=left)
        finally:
            if self._health[name].state != "given up":
                self._turn(name, "stopped")

    def _turn(self, name: str, state: State) -> None:
        self._health[name] = replace(self._health[name], state=state, since=self._now())
        if self._changed is not None:
            self._changed(self._health[name])


async def keep_running(
    service: Callable[[], Awaitable[None]],
    failed: Callable[[Exception, float], None],
    *,
    fatal: Fatal = (),
    left: trio.Event | None = None,
) -> None:
    """Run it until it returns; after an error again, and ``failed`` hears in how many seconds. ``left`` ends a rest."""
    left = trio.Event() if left is None else left
    rest_s = FIRST_REST_S
    while not left.is_set():
        began = trio.current_time()
        try:
            await service()
            return
        except Exception as error:  # the supervisor: told, and started again after a rest
            if is_among(error, fatal):
                raise
            if trio.current_time() - began >= CALM_S:
                rest_s = FIRST_REST_S
            failed(error, rest_s)
        with trio.move_on_after(rest_s):
            await left.wait()
        rest_s = min(rest_s * 2, LONGEST_REST_S)


def is_among(error: BaseException, kinds: Fatal) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(is_among(one, kinds) for one in error.exceptions)
    return isinstance(error, kinds)


def plain(error: BaseException) -> str:
    """The first of what went wrong."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return repr(error)
