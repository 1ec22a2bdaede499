"""Play one seed and tell what happened: `python -m tests.simulation 7 [--trace] [--plant forgets_the_window]`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import nullcontext

from tests.simulation.plan import Plan, plan
from tests.simulation.planted import PLANTED
from tests.simulation.simulate import Played, simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--trace", action="store_true", help="print every event")
    parser.add_argument("--plant", choices=PLANTED, metavar="BUG", help=f"plant a bug first: {', '.join(PLANTED)}")
    arguments = parser.parse_args()
    with PLANTED[arguments.plant].plant() if arguments.plant else nullcontext():
        played = simulate(arguments.seed)
    say(told(plan(arguments.seed)), "")
    say(*(played.history if arguments.trace else [summary(played)]), "")
    say(played)
    return 0 if played.found is None else 1


def told(plan: Plan) -> str:
    """The world in a few lines."""
    settings, faults = plan.settings, plan.faults
    lines = [
        f"lanes: main {settings.lane.main}, subagent {settings.lane.subagent}, resized {len(plan.resizes)} times",
        f"queue: {settings.queue}",
        f"session: {settings.session}, grace {settings.shutdown.grace} s",
        f"faults: {faults}",
        f"agent: {plan.temper}, {'can' if plan.can_steer else 'cannot'} be steered; people leave {plan.hurry} s",
        f"fates: {', '.join(f'{fate.how} after {fate.after_s:.1f} s' for fate in plan.fates) or 'none'}",
    ]
    for chat in plan.chats:
        people = ", ".join(f"{person.name}{' (admin)' if person.admin else ''}" for person in chat.people)
        how = "polled" if chat.polled else "pushed"
        lines.append(f"{chat.name} of {chat.key.tenant}: {people}; {how}, {chat.actions} actions")
    return "\n".join(lines)


def summary(played: Played) -> str:
    counts = Counter(event.what for event in played.history)
    return ", ".join(f"{count} {what}" for what, count in counts.items())


def say(*things: object) -> None:
    sys.stdout.writelines(f"{thing}\n" for thing in things)


if __name__ == "__main__":
    sys.exit(main())
