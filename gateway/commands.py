"""Commands as people type them, and the words they are answered with. Pure.

`/stop`, `/STOP `, `/stop!` and `/stop@botname` are the same command. A slash with a word that is no command is
answered with the list and never reaches the agent; a slash inside a path (`/etc/hosts`) is ordinary text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.plain import counted, excerpt, joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler import SchedulerStatistics, SessionStatistics, Stopped
    from store.records import Message

COMMANDS = {
    "stop": "stop the oldest thing that runs here; with nothing running, what waits",
    "stopall": "stop everything here: what runs, what waits, and every helper",
    "new": "stop everything here and begin a new conversation",
    "schedule": "have something done later or again and again; alone, how to say it",
    "cron": "what is scheduled here; /cron why 1 tells why job 1 runs when it does",
    "queue": "how messages wait here; /queue mode steer changes it, /queue reset takes that back",
    "tz": "the time zone of this chat; /tz Europe/Berlin changes it",
    "status": "what runs, what waits and what is next, here and in every lane",
    "whoami": "who you are here",
    "start": "a greeting",
    "help": "this list",
}
STOPS = frozenset({"stop", "stopall", "new"})
DESK = frozenset({"schedule", "cron", "queue", "tz"})
"""Carried out one after the other, in the order in which they came in."""
FOR_ADMINS = frozenset({"new", "queue", "tz"})
"""What changes a conversation for everybody in it."""
GREETING = "Hello. Write something and an agent answers; /help lists what else there is."

_COMMAND = re.compile(r"\s*/(?P<name>[A-Za-z][A-Za-z0-9_]*)(?:@\w+)?[.,;:!?…]*(?:\s+(?P<rest>.*))?\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    rest: str = ""

    @property
    def known(self) -> bool:
        return self.name in COMMANDS

    @property
    def stops(self) -> bool:
        return self.name in STOPS

    @property
    def at_the_desk(self) -> bool:
        return self.name in DESK


def parse_command(text: str) -> Command | None:
    found = _COMMAND.fullmatch(text)
    return None if found is None else Command(found["name"].lower(), (found["rest"] or "").strip())


def help_text() -> str:
    return "\n".join(["Commands:", *(f"  /{name:<9} {about}" for name, about in COMMANDS.items())])


def unknown_text(command: Command) -> str:
    return f"There is no command /{excerpt(command.name)}.\n{help_text()}"


def refusal(command: Command) -> str:
    return f"Only an admin of this group may use /{command.name} here."


def stop_text(stopped: Stopped, *, also_runs: int = 0, also_messages: int = 0, own: bool = False) -> str:
    """What a stop did, in words. ``also`` counts what only the store knew; ``own`` that only the sender's counted."""
    messages, runs = stopped.messages + also_messages, stopped.running + also_runs
    parts = [counted(runs, "run")] if runs else []
    if stopped.children:
        parts.append(counted(stopped.children, "helper"))
    if messages:
        parts.append(f"{messages} waiting message{'' if messages == 1 else 's'}")
    if parts:
        text = f"Stopped {joined(parts)}"
    elif stopped.stopping:
        text = "Already stopping"
    elif stopped.finishing:
        text = "Too late to stop: the answer is on its way"
    elif own or stopped.left:
        text = "Nothing of yours to stop"
    else:
        text = "Nothing to stop: nothing runs or waits here"
    return f"{text}; {counted(stopped.left, 'message')} still waiting." if stopped.left else f"{text}."


def status_text(here: SessionStatistics, everywhere: SchedulerStatistics, fires: Sequence[str] = ()) -> str:
    waiting = here.buffered + here.waiting + here.steering
    lines = [f"Here: {here.running} running{stopping(here.stopping)}, {waiting} waiting{throttled(here)}.", "Lanes:"]
    for lane in everywhere.lanes:
        extra = [f"{lane.waiting} waiting"] if lane.waiting else []
        if lane.parked:
            extra.append(f"{lane.parked} waiting for helpers")
        if lane.stuck:
            extra.append(f"{lane.stuck} stuck")
        if lane.waiting and lane.oldest_wait_s >= 1:
            extra.append(f"the oldest for {lane.oldest_wait_s:.0f} s")
        lines.append("".join([f"  {lane.name:<10} {lane.active} of {lane.limit} running", *(f", {e}" for e in extra)]))
    if fires:
        lines += ["Next jobs:", *(f"  {fire}" for fire in fires)]
    return "\n".join(lines)


def stopping(count: int) -> str:
    return f" ({count} stopping)" if count else ""


def throttled(here: SessionStatistics) -> str:
    return "; one at a time because the history is long" if here.throttled else ""


def whoami_text(message: Message) -> str:
    """Everything that a person needs to be put on a list, or to ask for help."""
    incoming, session = message.incoming, message.session
    where = f"{session.channel} chat {session.chat}" + (f", thread {session.thread}" if session.thread else "")
    rights = "admin" if incoming.admin else "member" if incoming.group else "yourself"
    return "\n".join(
        [
            f"You are {incoming.sender} ({rights}) in {where}.",
            f"The agent {session.agent} answers here, for the tenant {session.tenant}.",
        ]
    )
