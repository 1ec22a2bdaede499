"""P3: neither a lane nor a session ever has more agents at work than its limit.

Counted are agents that really execute: one that waits for helpers has lent its slot, one that was cancelled while it
waited is only here to clean up, and one that was fenced no longer counts in its session. A lane that was made smaller
shrinks as its runs end, and never grows meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.history import Event, What
from tests.simulation.promises import Promise

if TYPE_CHECKING:
    from tests.simulation.world import World


class Limits(Promise):
    def __init__(self, world: World) -> None:
        self._world = world
        self._limits: dict[str, int] = {}
        self._allowed: dict[str, int] = {}
        self._given_out: dict[str, int] = {}  # slots, after the latest step
        self._executing: dict[str, set[int]] = {}
        self._lane_of: dict[int, str] = {}
        self._inside: dict[str, set[int]] = {}
        self._group_limit = world.plan.settings.session.max_group
        self._groups = {chat.name for chat in world.plan.chats if chat.group}
        self._sessions = {chat.name for chat in world.plan.chats}

    def see(self, place: int, event: Event) -> None:
        match event.what:
            case What.OPENED:
                lanes = self._world.plan.settings.lane
                self._limits = {"main": lanes.main, "subagent": lanes.subagent}
                self._allowed = dict(self._limits)
                self._executing = {"main": set(), "subagent": set()}
                self._inside = {session: set() for session in self._sessions}
            case What.CRASHED:
                self._executing = {}
            case What.RESIZED:
                self._limits[event.text] = int(event.detail)
                self._allowed[event.text] = max(self._given_out[event.text], int(event.detail))
            case What.IN:
                self._lane_of[event.run] = event.detail
                self._executing[event.detail].add(event.run)
                self._enter(event)
            case What.BACK if event.detail != "cancelled":
                self._executing[self._lane_of[event.run]].add(event.run)
            case What.ASKS:
                self._executing[self._lane_of[event.run]].discard(event.run)
            case What.OUT:
                self._executing[self._lane_of[event.run]].discard(event.run)
                self._leave(event)
            case What.FENCED:
                self._leave(event)

    def after_step(self, now: float) -> None:
        for name, executing in self._executing.items():
            active, limit = self._active(name), self._limits[name]
            self._given_out[name] = active
            allowed = self._allowed[name] = max(limit, min(self._allowed[name], active))
            if active > allowed:
                self._broken(f"lane {name} has given out {active} slots of {limit}")
            if len(executing) > active:
                self._broken(f"in lane {name} {len(executing)} agents execute on {active} slots")

    def _active(self, lane: str) -> int:
        scheduler = self._world.life.scheduler
        return 0 if scheduler is None else scheduler.lanes[lane].active

    def _enter(self, event: Event) -> None:
        inside = self._inside.get(event.session)
        if inside is None:
            return
        inside.add(event.run)
        limit = self._group_limit if event.session in self._groups else 1
        if len(inside) > limit:
            self._broken(f"session {event.session} has {len(inside)} agents at work, its limit is {limit}")

    def _leave(self, event: Event) -> None:
        if event.session in self._inside:
            self._inside[event.session].discard(event.run)

    def _broken(self, why: str) -> None:
        self._world.report("P3", why)
