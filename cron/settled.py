"""What the store made of an end, in facts for whoever is told."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cron.outcome import SHUTDOWN
from store.jobs import TriggerState

if TYPE_CHECKING:
    from store.jobs import Change


@dataclass(frozen=True, slots=True)
class Settled:
    """What the store made of an end; without a change it was settled before, or is somebody else's."""

    kept: bool
    change: Change | None

    def facts(self) -> dict[str, Any]:
        """What follows, for whoever is told: slots that will never run, by reason, or when it is tried again."""
        if self.change is None:
            return {}
        facts: dict[str, Any] = {}
        fate, skipped = self.change.fate, Counter[str]()
        if fate is not None and fate.state is TriggerState.SKIPPED:
            skipped[fate.reason] += fate.count
        for stretch in self.change.stretches:
            skipped[stretch.reason] += stretch.count
        if skipped:
            facts["skipped"] = dict(skipped)
        if fate is not None and fate.again_at is not None and fate.counts and fate.reason != SHUTDOWN:
            facts["again_at"] = fate.again_at.isoformat().replace("+00:00", "Z")
        return facts
