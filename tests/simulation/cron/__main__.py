"""Play one seed and tell what happened: `python -m tests.simulation.cron 7 [--trace] [--plant claims_early]`."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext

from tests.simulation.cron.bugs import PLANTED
from tests.simulation.cron.plan import plan
from tests.simulation.cron.simulate import simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.cron", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--trace", action="store_true", help="print every event")
    parser.add_argument("--plant", choices=PLANTED, metavar="BUG", help=f"plant a bug first: {', '.join(PLANTED)}")
    arguments = parser.parse_args()
    with PLANTED[arguments.plant].plant() if arguments.plant else nullcontext():
        played = simulate(arguments.seed)
    say(plan(arguments.seed), "")
    say(*(played.history if arguments.trace else ()), "", played)
    return 0 if played.found is None else 1


def say(*things: object) -> None:
    sys.stdout.writelines(f"{thing}\n" for thing in things)


if __name__ == "__main__":
    sys.exit(main())
