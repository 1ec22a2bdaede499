"""How often somebody may ask: a bucket that fills steadily and is emptied by requests. Pure: time is handed in."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

MOST_KNOWN = 10_000
"""So many askers are remembered; one that was quiet the longest is forgotten first, and its bucket is full again."""


@dataclass(slots=True)
class Bucket:
    left: float
    at: float


class Rates:
    """``rate`` requests a second for each asker, and ``burst`` at once after a pause."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, asker: str, now: float) -> float:
        """0 if it may go on; else the seconds until it may ask again, and this one does not count."""
        bucket = self._filled(asker, now)
        if bucket.left < 1:
            return (1 - bucket.left) / self._rate
        bucket.left -= 1
        return 0.0

    def wait_s(self, asker: str, now: float) -> float:
        """How long until it may ask; nothing is taken."""
        left = self._filled(asker, now).left
        return 0.0 if left >= 1 else (1 - left) / self._rate

    def _filled(self, asker: str, now: float) -> Bucket:
        bucket = self._buckets.get(asker)
        if bucket is None:
            bucket = self._buckets[asker] = Bucket(self._burst, now)
            if len(self._buckets) > MOST_KNOWN:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(asker)
            bucket.left = min(self._burst, bucket.left + max(now - bucket.at, 0.0) * self._rate)
            bucket.at = now
        return bucket
