"""What people write: texts that can be recognised wherever they turn up again, and commands as people type them. Pure.

Every text carries a marker (`m12`), and whatever is shown, sent or answered about it names that marker again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

_MARKER = re.compile(r"\bm\d+\b")

STOPS = ("/stop", "/STOP ", "/stop@goclaw_bot", "/stop!", " /stop")
STOPALLS = ("/stopall", "/StopAll", "/stopall@goclaw_bot now")
OTHERS = ("/status", "/help", "/frobnicate", "/Status ", "/stopp")
WORDS = ("hello", "what about this", "and then?", "please\nhurry", "a rather long message " * 3)


def markers(text: str) -> list[str]:
    return _MARKER.findall(text)


def a_text(random: Random, number: int) -> str:
    return f"/etc/hosts m{number}" if random.random() < 0.05 else f"m{number} {random.choice(WORDS)}"


def is_command(text: str) -> bool:
    return text.lstrip().startswith("/") and not markers(text)


def is_stop(text: str) -> bool:
    return is_command(text) and text.strip().lower().rstrip("!").split("@")[0].split()[0] in ("/stop", "/stopall")


def is_stopall(text: str) -> bool:
    return is_stop(text) and "stopall" in text.lower()
