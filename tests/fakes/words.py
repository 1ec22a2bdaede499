"""The script for use by hand: it echoes, and does what simple words at the start of the last message say.

count to 20             numbers, slowly
tool NAME {"a": 1}      calls that tool, then repeats its result
fail 429                that status, always; `fail 429 once` only at the first attempt
hang                    begins and says nothing more
drop                    closes the connection in the middle of a word
loop                    calls the first tool that was offered, for ever; `loop NAME {"a": 1}` that one
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeAlias

from tests.fakes.script import Asked, Begin, CallTool, Disconnect, Pause, Say, Status, Steps

PAUSE_S = 0.2
PIECE = 5
MOST = 10_000
# A word counts at the start of a line, also of one that names its author: "Ann: hang".
START = r"(?m)(?:^|: )"

Answer: TypeAlias = Callable[[Asked, re.Match[str]], Steps]


def by_hand(asked: Asked) -> Steps:
    for pattern, answer in WORDS.items():
        if found := re.search(START + pattern, asked.last_user):
            return answer(asked, found)
    return echo(asked)


def echo(asked: Asked) -> Steps:
    return [Say(f"You said: {asked.last.all_text}", chunk=PIECE)]


def count(asked: Asked, found: re.Match[str]) -> Steps:
    numbers = range(1, min(int(found["n"]), MOST) + 1)
    steps: list[Say | Pause] = []
    for number in numbers:
        steps += [Say(f"{number} "), Pause(PAUSE_S)]
    return [*steps, Say(f"I counted to {len(numbers)}.")]


def use_tool(asked: Asked, found: re.Match[str]) -> Steps:
    if asked.last.role == "tool":
        return [Say(f"{found['name']} said: {asked.last.all_text}", chunk=PIECE)]
    return [CallTool(found["name"], raw=found["arguments"] or "{}")]


def fail(asked: Asked, found: re.Match[str]) -> Steps:
    if found["once"] and asked.attempt > 1:
        return [Say(f"It worked at attempt {asked.attempt}.")]
    code = int(found["code"])
    return [Status(code, {"retry-after": "1"} if code in (429, 503, 529) else {})]


def hang(asked: Asked, found: re.Match[str]) -> Steps:
    return [Begin(), Pause(math.inf)]


def drop(asked: Asked, found: re.Match[str]) -> Steps:
    return [Say("I was about to say some", chunk=PIECE), Disconnect()]


def loop(asked: Asked, found: re.Match[str]) -> Steps:
    if name := found["name"] or next((tool.name for tool in asked.tools), ""):
        return [CallTool(name, raw=found["arguments"] or "{}")]
    return [Say("There is no tool to call.")]


WORDS: dict[str, Answer] = {
    r"count to (?P<n>\d+)": count,
    r"tool (?P<name>[\w-]+)(?: (?P<arguments>.*))?": use_tool,
    r"fail (?P<code>[45]\d\d)(?P<once> once)?\b": fail,
    r"hang\b": hang,
    r"drop\b": drop,
    r"loop\b(?: (?P<name>[\w-]+)(?: (?P<arguments>.*))?)?": loop,
}
