"""What the HTTP API and the command line work with: the store, the jobs, and the gateway if one runs in this process.

Without a gateway everything that is about what is kept works all the same; what is about running things is refused with
the reason. So the command line can use the same application in its own process when no gateway runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.access.limits import USUAL_LIMITS, Limits
from gateway.access.pairing import Pairings
from gateway.activity import Activity
from gateway.clock import utc_now
from gateway.followed import Followers
from gateway.inbound import readable
from gateway.metrics.figures import Figures
from gateway.metrics.lag import Lag
from gateway.metrics.pulse import Pulse
from gateway.news import NewsRoom
from gateway.persist import persist
from gateway.streams import BEAT_S, Streams

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from cron.jobs import CronJobs
    from gateway.access.tokens import Doorkeeper
    from gateway.app import Gateway
    from gateway.channels.http import HttpChannel
    from gateway.settings import Settings
    from scheduler import Scheduler
    from store.protocols import Store
    from store.records import Incoming, Receipt

PATIENCE_S = 20.0


async def nothing_kept(tenant: str) -> None:
    """Where no agents are there are no files of theirs."""


@dataclass(slots=True)
class Office:
    settings: Settings
    store: Store
    jobs: CronJobs
    doorkeeper: Doorkeeper
    agents: tuple[str, ...]
    """The names of those that there are."""
    channel: HttpChannel
    now: Callable[[], datetime] = utc_now
    patience_s: float = PATIENCE_S
    """How long a request may wait for the store."""
    limits: Limits = USUAL_LIMITS
    forget_files: Callable[[str], Awaitable[None]] = nothing_kept
    """Removes what agents have kept in files for a tenant."""
    activity: Activity = field(default_factory=Activity)
    figures: Figures = field(default_factory=Figures)
    lag: Lag = field(default_factory=Lag)
    connected: Callable[[], tuple[int, int]] = lambda: (0, 0)
    """How many connections are open, and how many were refused because there were too many."""
    gateway: Gateway | None = None
    """The one that works on messages, while this process has one."""
    scheduler: Scheduler | None = None
    """Whose lanes are at work: the gateway's, or those in which jobs run while it waits for its turn."""
    serving: bool = False
    """A server is up in this process, whether or not the gateway has its turn."""
    beat_s: float = BEAT_S
    """How long a stream may be silent."""
    news: NewsRoom = field(init=False)
    followers: Followers = field(init=False)
    streams: Streams = field(init=False)
    pulse: Pulse = field(init=False)
    pairings: Pairings = field(init=False)
    """How strangers are let in."""
    started_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.news = NewsRoom(self.store)
        self.followers = Followers(self.store)
        self.streams = Streams(self.doorkeeper)
        self.pulse = Pulse(self.store)
        self.pairings = Pairings(self.store, self.now)
        self.started_at = self.now()

    async def hand_in(self, incoming: Incoming) -> Receipt:
        """Keep a message; when this returns it is kept. Again with the same key, it tells how the message is."""
        if self.gateway is not None:
            return (await self.gateway.take_in([incoming]))[0]
        return await self.look_at(incoming)

    async def look_at(self, incoming: Incoming) -> Receipt:
        """How a message is that was handed in; one that was not is handed in by this."""
        batch = [readable(incoming)]
        receipts = await persist(lambda: self.store.messages(None).accept(batch))
        if receipts is None:  # only a cursor could be refused
            raise RuntimeError("a message without a cursor was refused")
        return receipts[0]
