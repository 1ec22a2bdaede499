"""A process that runs whatever is due until nothing is left: `python -m tests.postgres.cron_contender DSN NAME`.

It prints a line of JSON with the triggers that it has claimed, and one with how many it has settled.
"""

from __future__ import annotations

import sys

import orjson
import trio

from store.postgres import open_postgres
from tests.postgres.cron_pieces import LEASE, done_for_good, run_all

BATCH = 10


def say(**words: object) -> None:
    sys.stdout.buffer.write(orjson.dumps(words) + b"\n")
    sys.stdout.buffer.flush()


async def main(dsn: str, name: str) -> None:
    claimed: list[str] = []
    settled = 0
    async with open_postgres(dsn) as store:
        while (await store.cron.next_due()) is not None:
            claims = await store.cron.claim(name, BATCH, LEASE)
            claimed += [claim.trigger.id for claim in claims]
            settled += sum(await store.cron.settle(await run_all(store.cron, claims), done_for_good))
    say(claimed=claimed, settled=settled)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2])
