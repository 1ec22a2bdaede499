"""The one place that asks what time it is. Everybody else is handed the answer, or this function."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    return datetime.now(UTC)
