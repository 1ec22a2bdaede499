"""Spans of time as people write them, `10m` or `1.5h`, and as they read them, `1 hour 30 minutes`.

Two grammars, each with its own messages. The lenient one is for chat and for agents: decimals, a blank before the
unit, `sec`, `min`, `hr`, `day`. The strict one is for files that are read without anybody looking on: whole numbers
and the units s, m, h, d.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import ROUND_HALF_UP, Context, Decimal

from cron.errors import DurationError, IntervalParseError, quoted

UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
LONGEST_TEXT = 100
"""Characters; what is longer is no duration, whatever it says."""

_LENIENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)[ \t]*(s|secs?|m|mins?|h|hrs?|d|days?)", re.IGNORECASE)
_STRICT = re.compile(r"([0-9]+)\s*([a-z]+)", re.IGNORECASE)
_EXACT = Context(prec=2 * LONGEST_TEXT)

_FORMAT = 'Expected format: "{number}{unit}", for instance 30s, 5m, 2h or 1d'
# In this order: the first that fits says what is wrong.
_WRONG = (
    (re.compile(r""), "Interval cannot be empty", _FORMAT),
    (re.compile(r"-?[0-9]+\.[0-9]+\s*[a-z]*", re.IGNORECASE), "Decimal values are not supported", "Write 90m for 1.5h"),
    (re.compile(r"-\s*[0-9]+\s*[a-z]*", re.IGNORECASE), "Negative intervals are not allowed", _FORMAT),
    (re.compile(r"[0-9]+"), "Missing time unit", _FORMAT),
    (re.compile(r"[a-z]+", re.IGNORECASE), "Missing numeric value", _FORMAT),
)


def parse_duration(text: str, *, strict: bool = False) -> timedelta:
    """The span that a text names, in whole milliseconds and above zero. Raises `DurationError`."""
    return _parse_strict(text) if strict else _parse_lenient(text)


def _parse_lenient(text: str) -> timedelta:
    match = _LENIENT.fullmatch(text.strip()) if len(text) <= LONGEST_TEXT else None
    if match is None:
        raise DurationError(f"Invalid duration: {quoted(text)}. Expected format: 10m, 2h, 24h, 1d", text)
    number, unit = match.groups()
    exact = _EXACT.multiply(Decimal(number), Decimal(UNITS_MS[unit[0].lower()]))
    ms = int(exact.to_integral_value(ROUND_HALF_UP, _EXACT))
    if ms == 0:
        raise DurationError(f"Duration must be positive: {quoted(text)}", text)
    try:
        return timedelta(milliseconds=ms)
    except OverflowError:
        raise DurationError(f"Duration is too long: {quoted(text)}. At most 999999999d", text) from None


def _parse_strict(text: str) -> timedelta:
    match = _STRICT.fullmatch(text.strip()) if len(text) <= LONGEST_TEXT else None
    if match is None:
        raise _wrong(text)
    number, unit = int(match[1]), match[2].lower()
    if unit not in UNITS_MS:
        message = f'Invalid time unit "{match[2]}". Valid units are: s, m, h, d; the interval was {quoted(text)}'
        raise IntervalParseError(message, text)
    if number == 0:
        raise IntervalParseError(f"Zero interval is not allowed: {quoted(text)}. {_FORMAT}", text)
    try:
        return timedelta(milliseconds=number * UNITS_MS[unit])
    except OverflowError:
        raise IntervalParseError(f"Interval is too long: {quoted(text)}. At most 999999999d", text) from None


def _wrong(text: str) -> IntervalParseError:
    stripped = text.strip() if len(text) <= LONGEST_TEXT else "too long to be looked at"
    for pattern, problem, hint in _WRONG:
        if pattern.fullmatch(stripped):
            return IntervalParseError(f"{problem}: {quoted(text)}. {hint}", text)
    return IntervalParseError(f"Invalid interval format: {quoted(text)}. {_FORMAT}", text)


def duration_text(span: timedelta) -> str:
    """A span in words: `30 seconds`, `1 hour 30 minutes`, `2 days`."""
    if span < timedelta(0):
        return f"minus {duration_text(-span)}"
    minutes, seconds = divmod(span.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    exact = seconds + Decimal(span.microseconds) / 1_000_000
    counts = ((span.days, "day"), (hours, "hour"), (minutes, "minute"), (exact, "second"))
    parts = [f"{count} {unit}" if count == 1 else f"{count} {unit}s" for count, unit in counts if count]
    return " ".join(parts) or "0 seconds"
