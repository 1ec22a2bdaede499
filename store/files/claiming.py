"""Which triggers are claimed next: tenants take turns, and nobody looks at all that is due.

    tenant a   a1  a2  a3 …    round by round: a1 b1 c1, a2 c2, a3 …
    tenant b   b1              beginning with the tenant after the one that the caller names
    tenant c   c1  c2

What is due but has no room, or is of a job that has been taken already, is passed over and its turn with it. So the
place of a trigger in its tenant's list decides, and that is found in the index, without looking at those before it: an
agent with a hundred thousand triggers due and no room costs nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from heapq import heappop, heappush, merge
from typing import TYPE_CHECKING, NamedTuple

from store.files.ordered import TOP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from store.files.cron_tables import CronTables, RowKey


class Offer(NamedTuple):
    """A trigger that could be claimed."""

    claim_at: datetime
    id: str
    agent: str
    job: int


def choose(cron: CronTables, now: datetime, limit: int, after: str, room: Mapping[str, int]) -> list[RowKey]:
    """Up to so many, in the order in which they are claimed."""
    due = sorted(tenant for _, tenant in cron.heads.between((), (now, TOP)))
    first = bisect_right(due, after)
    left = dict(room)
    lists = [_List(cron, tenant, now, left) for tenant in due[first:] + due[:first]]
    alone = len(lists) == 1
    taken: dict[RowKey, None] = {}
    busy: set[tuple[str, int]] = set()
    # By place in the list, then by turn; at first nobody knows more than that a place is not below zero.
    waiting: list[tuple[int, int, Offer | None]] = [(0, turn, None) for turn in range(len(lists))]
    while waiting and len(taken) < limit:
        _, turn, offer = heappop(waiting)
        tenant = lists[turn].tenant
        if offer is not None and (tenant, offer.job) not in busy and left.get(offer.agent, 1) > 0:
            if offer.agent in left:
                left[offer.agent] -= 1
            busy.add((tenant, offer.job))
            taken[tenant, offer.id] = None
        following = next(lists[turn].offers, None)
        if following is not None:
            heappush(waiting, (0 if alone else lists[turn].place(following), turn, following))
    return list(taken)


class _List:
    """What of a tenant is due, earliest first, but for what would run beside another one of its job."""

    def __init__(self, cron: CronTables, tenant: str, now: datetime, left: Mapping[str, int]) -> None:
        self.cron = cron
        self.tenant = tenant
        self.now = now
        self.left = left
        self.offers = self._offers()
        self._start: int | None = None
        self._held_back: list[tuple[datetime, str]] = []

    def place(self, offer: Offer) -> int:
        """How many there are before it, whether there is room for them or not."""
        if self._start is None:
            self._start = self.cron.claimable.rank((self.tenant,))
            self._find_held_back()
        where = self.cron.claimable.rank((self.tenant, offer.claim_at, offer.id))
        return where - self._start - bisect_left(self._held_back, offer[:2])

    def _offers(self) -> Iterator[Offer]:
        return merge(*(self._of_agent(agent) for agent in self._agents()))

    def _agents(self) -> Iterator[str]:
        """Those for whom there is something due, and room."""
        entry = self.cron.of_agent.first((self.tenant,))
        while entry is not None and entry[0] == self.tenant:
            agent: str = entry[1]
            if entry[2] <= self.now and self.left.get(agent, 1) > 0:
                yield agent
            entry = self.cron.of_agent.first((self.tenant, agent, TOP))

    def _of_agent(self, agent: str) -> Iterator[Offer]:
        start = self.tenant, agent
        for _, _, claim_at, trigger, job in self.cron.of_agent.between(start, (*start, self.now, TOP)):
            if self.left.get(agent, 1) <= 0:
                return
            if not self._is_held_back(job, trigger):
                yield Offer(claim_at, trigger, agent, job)

    def _is_held_back(self, job: int, trigger: str) -> bool:
        return any(entry[-1] != trigger for entry in self.cron.executing.under(self.tenant, job))

    def _find_held_back(self) -> None:
        for _, job, executing in self.cron.executing.under(self.tenant):
            for _, _, claim_at, trigger in self.cron.open_of.under(self.tenant, job):
                if trigger != executing:
                    insort(self._held_back, (claim_at, trigger))
