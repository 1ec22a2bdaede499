"""What an agent is told of what was said before: the newest lines of the conversation that its window holds.

A new conversation (`/new`) is a line of its own in the transcript. Nothing before it is told, nothing is lost, and the
line is written together with the answer to the command, so there is no moment in which half of it holds.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import dropwhile
from typing import TYPE_CHECKING

from gateway.persist import persist
from store.records import Role, Said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.protocols import SessionStore
    from store.records import Line, SessionKey

MOST_LINES = 400
SHARE = 0.7
"""How much of the window the past may fill; the rest is for what is said now, for tools and for the answer."""
CHARACTERS_PER_TOKEN = 4
LINES_KEPT = 10_000
TRIMMED_AT_ONCE = 1_000
ANSWERS = "answers"
"""Under this name a line of the transcript keeps the ids of the messages that it answers."""
READ_LATER = frozenset({"http"})
"""Channels on which nobody need be there when something is said: it is found in the transcript."""
NOTICE = "notice"
"""A line with this was said by the gateway and not by the agent, who is not told of it."""
NEW_CONVERSATION = Said(Role.SYSTEM, "A new conversation begins here.", {"new": True})


async def recall(sessions: SessionStore, key: SessionKey, window: int) -> tuple[Said, ...]:
    """What is told to an agent that looks back on so many tokens."""
    if not window:
        return ()
    lines = await persist(partial(sessions.newest, key, MOST_LINES))
    await trim(sessions, key, lines)
    told = [for_agents(line.said) for line in lines if NOTICE not in line.said.data]
    return fitting(told, int(window * SHARE))


def notice(session: SessionKey, text: str, answers: Sequence[int]) -> list[Said]:
    """What the transcript keeps of something that the gateway says, where nobody may be there to hear it."""
    if session.channel not in READ_LATER or not text:
        return []
    return [Said(Role.SYSTEM, text, {ANSWERS: list(answers), NOTICE: True})]


def answers_of(said: Said) -> list[int]:
    """The messages that a line answers."""
    answers = said.data.get(ANSWERS)
    return [one for one in answers if isinstance(one, int)] if isinstance(answers, list) else []


def for_agents(said: Said) -> Said:
    """Which messages a line answers is the gateway's own business."""
    if ANSWERS not in said.data:
        return said
    return replace(said, data={name: value for name, value in said.data.items() if name != ANSWERS})


def fitting(said: Sequence[Said], tokens: int) -> tuple[Said, ...]:
    """The newest of these that cost no more than so many tokens, from a person's words on."""
    kept: list[Said] = []
    for one in reversed(said):
        tokens -= estimated(one)
        if tokens < 0 or one.data.get("new"):
            break
        kept.append(one)
    return tuple(dropwhile(lambda one: one.role is not Role.USER, reversed(kept)))


def estimated(said: Said) -> int:
    """Roughly what a line costs: nobody but the model can count, and it is asked only afterwards."""
    data = len(json.dumps(said.data, default=str)) if said.data else 0
    return (len(said.text) + data) // CHARACTERS_PER_TOKEN + 4


async def trim(sessions: SessionStore, key: SessionKey, newest: Sequence[Line]) -> None:
    """Let the store forget what is so old that nobody asks for it, many lines at a time."""
    if newest and newest[0].number > LINES_KEPT + TRIMMED_AT_ONCE:
        await persist(partial(sessions.trim, key, newest[0].number - LINES_KEPT))
