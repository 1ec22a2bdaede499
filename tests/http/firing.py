"""Jobs that are fired over HTTP, many and at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx2

    from store.protocols import Store

AT_ONCE = 8


async def make_jobs(client: httpx2.AsyncClient, many: int, message: str = "hello") -> list[int]:
    """So many jobs that fire only when they are told to."""
    numbers = []
    for _ in range(many):
        answer = await client.post("/v1/schedules", json={"webhook": True, "message": message})
        assert answer.status_code == 201, answer.text
        numbers.append(answer.json()["id"])
    return numbers


async def fire(clients: Sequence[httpx2.AsyncClient], jobs: Sequence[int], many: int) -> None:
    """So many runs, spread over the jobs and asked for by all of the clients."""
    numbers = iter(range(many))

    async def work(client: httpx2.AsyncClient) -> None:
        for number in numbers:
            answer = await client.post(f"/v1/schedules/{jobs[number % len(jobs)]}/run")
            assert answer.status_code in (200, 202), answer.text

    async with trio.open_nursery() as nursery:
        for place in range(AT_ONCE):
            nursery.start_soon(work, clients[place % len(clients)])


async def ran(store: Store, many: int, tenant: str = "default", after: int = 0) -> int:
    """Wait until so many runs have been told to have ended; the number of the newest notification."""
    place, ended = after, 0
    while ended < many:
        page = await store.cron.notifications(tenant, after=place, limit=500)
        ended += sum(one.news.kind in ("run.completed", "run.failed") for one in page)
        place = page[-1].seq if page else place
        if not page:
            await trio.sleep(0.05)
    return place
