"""Scripts in JSON files, for the command line: a list of rules, tried in order; what none fits is for `words.by_hand`.

    [{"match": "weather", "role": "user", "attempts": 1,
      "steps": ["Let me see. ", {"tool": "weather", "arguments": {"city": "Rome"}}]}]

``match`` is a pattern to be found in the last message; it, ``role`` and ``attempts`` may be left out. Steps:

    "text"  {"say": "text", "chunk": 3, "pause_s": 0.1}     {"tool": "name", "arguments": {}, "id": "…"}  or  "raw": "{"
    {"pause": 1.5}  {"hang": true}  {"begin": true}  {"ping": true}  {"truncate": true}
    {"disconnect": "close"}  or "reset"     {"status": 429, "headers": {"retry-after": "1"}, "body": {}, "message": "…"}
    {"garbage": "data: {"}  {"end": "length"}  {"count": [10, 20]}
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from tests.fakes.script import (
    Begin,
    CallTool,
    Count,
    Disconnect,
    End,
    Garbage,
    Pause,
    Ping,
    Rule,
    Say,
    Script,
    Status,
    Step,
    Truncate,
    rules,
)
from tests.fakes.words import by_hand

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STEPS: dict[str, Callable[..., Step]] = {
    "say": Say,
    "tool": CallTool,
    "pause": Pause,
    "hang": lambda _: Pause(math.inf),
    "begin": lambda _: Begin(),
    "ping": lambda _: Ping(),
    "truncate": lambda _: Truncate(),
    "disconnect": lambda how: Disconnect(reset={"close": False, "reset": True}[how]),
    "status": Status,
    "garbage": lambda text: Garbage(text.encode()),
    "end": End,
    "count": lambda numbers: Count(*numbers),
}


def read_script(path: Path) -> Script:
    """The script in that file; ValueError says which rule cannot be read."""
    listed = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(listed, list):
        raise ValueError(f"{path}: expected a list of rules, found {type(listed).__name__}")
    return rules(*(read_rule(number, rule) for number, rule in enumerate(listed, start=1)), otherwise=by_hand)


def read_rule(number: int, rule: Any) -> Rule:
    try:
        steps = [read_step(step) for step in rule["steps"]]
        return Rule(rule.get("match", ""), steps, rule.get("role"), rule.get("attempts"))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"rule {number} cannot be read ({error!r}): {json.dumps(rule)}") from error


def read_step(step: Any) -> Step:
    """The first member names the step and holds what matters most of it, the others are its options."""
    if isinstance(step, str):
        return Say(step)
    (kind, first), *options = step.items()
    return STEPS[kind](first, **dict(options))
