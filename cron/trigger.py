"""A cron expression in a zone, as a trigger of APScheduler: wall times become instants.

    fixed times   each wall time happens once: one that a gap skips at the first instant after it, one that is repeated
                  the first time round. Two that fall together are one slot.
    the others    go by real time: every instant at which the wall clock matches, and no other

Slots only ever rise, and the next one is always after `now`, also for somebody who asks from inside a repeated hour.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from apscheduler.triggers.base import BaseTrigger

from cron.zones import CALM, local_instant, offset_at, repeat_of, second_instant, turns, utc, wall_at

if TYPE_CHECKING:
    from datetime import timedelta
    from zoneinfo import ZoneInfo

    from cron.expression import Expression

TICK = datetime.resolution


class CronTrigger(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types
    __slots__ = ("expression", "zone")

    def __init__(self, expression: Expression, zone: ZoneInfo) -> None:
        self.expression = expression
        self.zone = zone

    def __repr__(self) -> str:
        return f"<CronTrigger {self.expression.text!r} in {self.zone.key}>"

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        """APScheduler's question: the first slot at or after `now`, or the first one after the previous."""
        if previous_fire_time is None:
            return self.after(now.astimezone(UTC) - TICK)
        return self.after(min(now.astimezone(UTC), previous_fire_time.astimezone(UTC)))

    # ── the next slot ────────────────────────────────────────────────────────────────────────────────────────────────

    def after(self, now: datetime) -> datetime:
        """The first slot after an instant in UTC."""
        local = now.astimezone(self.zone)
        following = self.expression.after(local)
        if self.expression.fixed:
            return self._fixed(now, following)
        offset = offset_at(now, self.zone)
        instant = utc(following, offset)
        if instant - now < CALM and offset_at(instant, self.zone) == offset:
            return instant
        return self._real(now, local.replace(tzinfo=None), following)

    def _fixed(self, now: datetime, following: datetime) -> datetime:
        while (instant := local_instant(following, self.zone)) <= now:
            # In the second round of a repeat: what is still to come on the wall has been already.
            following = self.expression.after(following)
        return instant

    def _real(self, now: datetime, wall: datetime, following: datetime) -> datetime:
        """By real time, where the zone's offset changes before the next match on the wall."""
        turn = None if wall.fold else repeat_of(wall, self.zone)
        if turn is not None and following > wall_at(turn - TICK, self.zone):
            following = self.expression.after(wall_at(turn, self.zone) - TICK)
        instant = local_instant(following, self.zone)
        while (resumed := wall_at(instant, self.zone)) != following:  # skipped: go on where the gap ends
            following = self.expression.after(resumed - TICK)
            instant = local_instant(following, self.zone)
        return instant if instant > now else second_instant(following, self.zone)

    # ── many slots at once ───────────────────────────────────────────────────────────────────────────────────────────

    def last(self, first: datetime, upto: datetime) -> datetime:
        """The last slot until then; `first` is one. Halves the stretch until nothing is left of it."""
        end = upto
        while (following := self.after(first)) <= upto:
            middle = following + (end - following) / 2
            first = self.after(middle)
            if first > upto:
                first, end = following, middle
        return first

    def count(self, after: datetime, upto: datetime) -> int:
        """How many slots there are with after < slot <= upto: by the stretches between changes of the zone's offset."""
        count = self._count_fixed if self.expression.fixed else self._count_real
        return count(after, upto, turns(after, upto, self.zone))

    def _count_real(self, after: datetime, upto: datetime, changes: list[datetime]) -> int:
        total, start, offset = 0, after, offset_at(after, self.zone)
        for turn in changes:
            total += self._count_walls(start, turn - TICK, offset)
            start, offset = turn - TICK, offset_at(turn, self.zone)
        return total + self._count_walls(start, upto, offset)

    def _count_walls(self, after: datetime, upto: datetime, offset: timedelta) -> int:
        return self.expression.count((after + offset).replace(tzinfo=None), (upto + offset).replace(tzinfo=None))

    def _count_fixed(self, after: datetime, upto: datetime, changes: list[datetime]) -> int:
        """`seen` is the latest wall time that has been: what a repeat shows again does not count."""
        total, seen = 0, self._latest_wall(after)
        for turn in changes:
            last, resumed = wall_at(turn - TICK, self.zone), wall_at(turn, self.zone)
            total += self.expression.count(seen, last)
            seen = max(seen, last)
            if resumed > seen:  # a gap: all of it, and what is due right after it, is one slot
                total += min(1, self.expression.count(seen, resumed))
                seen = resumed
        return total + self.expression.count(seen, wall_at(upto, self.zone))

    def _latest_wall(self, instant: datetime) -> datetime:
        """The latest wall time that has been: in the second round of a repeat, the end of the first."""
        wall = wall_at(instant, self.zone)
        turn = repeat_of(wall, self.zone) if wall.fold else None
        return wall if turn is None else wall_at(turn - TICK, self.zone)
