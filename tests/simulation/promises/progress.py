"""P8: nothing stands still that could go on, and when all is quiet nothing is left: no session, timer or message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.history import Event, What
from tests.simulation.promises import Promise

if TYPE_CHECKING:
    from gateway.app import Gateway
    from scheduler import Scheduler
    from tests.simulation.world import World

MOST_STEPS_AT_ONCE = 20_000


class Progress(Promise):
    def __init__(self, world: World) -> None:
        self._world = world
        self._now = -1.0
        self._since = 0
        self._asking: dict[str, set[int]] = {}  # runs that wait for helpers, by lane
        self._lane_of: dict[int, str] = {}
        self._unlent = ""

    def see(self, place: int, event: Event) -> None:
        match event.what:
            case What.OPENED:
                self._asking = {"main": set(), "subagent": set()}
                self._unlent = ""
            case What.IN:
                self._lane_of[event.run] = event.detail
            case What.ASKS:
                self._asking[self._lane_of[event.run]].add(event.run)
            case What.BACK:
                self._asking[self._lane_of[event.run]].discard(event.run)

    def after_step(self, now: float) -> None:
        if now != self._now:
            self._now, self._since = now, self._world.step
            if self._unlent:
                self._world.report("P8", self._unlent)
        elif self._world.step - self._since > MOST_STEPS_AT_ONCE:
            self._world.report("P8", f"{MOST_STEPS_AT_ONCE} steps without any time going by")
        life = self._world.life
        if life.scheduler is None or life.dead:
            self._unlent = ""
        else:
            self._look(life.scheduler)

    def end(self) -> None:
        """Called while the last gateway is still open."""
        life = self._world.life
        if life.scheduler is not None and life.gateway is not None:
            for what in (*left_in_lanes(life.scheduler), *left_in_gateway(life.gateway)):
                self._world.report("leak", f"when all was quiet there was still {what}")
        if self._world.rows:
            self._world.report("P1", f"the store still has {sorted(self._world.rows)} open")

    def _look(self, scheduler: Scheduler) -> None:
        self._unlent = ""
        if scheduler.closed:
            return
        for lane in scheduler.lanes:
            if lane.active < lane.limit and next(lane.sessions_in_line(), None) is not None:
                self._world.report("P8", f"lane {lane.name} has a free slot and somebody waits for one")
        self._unlent = self._who_lends_not(scheduler)

    def _who_lends_not(self, scheduler: Scheduler) -> str:
        """Whoever waits for helpers has lent its slot; when time goes by, everybody has had their turn to do so."""
        for name, asking in self._asking.items():
            lane = scheduler.lanes[name]
            if len(asking) > lane.parked + len(lane.returning):
                return f"in lane {name} a run waits for helpers and keeps its slot"
        return ""


def left_in_lanes(scheduler: Scheduler) -> list[str]:
    errors = scheduler.statistics().callback_errors
    left = [f"{errors} error(s) of callbacks"] if errors else []
    left += [f"session {key}" for key in scheduler.sessions]
    left += [f"{len(scheduler.timers)} timers"] if len(scheduler.timers) else []
    for lane in scheduler.lanes:
        counts = {"active": lane.active, "parked": lane.parked, "waiting": lane.waiting, "stuck": lane.stuck}
        left += [f"{count} {what} in lane {lane.name}" for what, count in counts.items() if count]
    return left


def left_in_gateway(gateway: Gateway) -> list[str]:
    in_hand = gateway._inbound._in_hand
    return [f"message {number} in hand" for number in sorted(in_hand)]
