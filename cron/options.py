"""How cron behaves where a job says nothing of its own. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from store.jobs import Bounds, CatchUp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from store.jobs import NewJob

MANY = Bounds(of_tenant=10_000, of_agent=1_000)


@dataclass(frozen=True, slots=True)
class Options:
    zone: str = "UTC"
    max_retries: int = 3
    retry_base: timedelta = timedelta(seconds=2)
    retry_max: timedelta = timedelta(seconds=30)
    lease: timedelta = timedelta(minutes=5)
    run_timeout: timedelta = timedelta(minutes=10)
    catch_up: CatchUp = "one"
    grace: timedelta = timedelta(days=7)
    jitter_threshold: int = 3
    max_jitter: timedelta = timedelta(seconds=30)
    poll: timedelta = timedelta(seconds=30)
    """How often the store is asked although nobody said a word."""
    beat: timedelta = timedelta(seconds=60)
    upkeep: timedelta = timedelta(minutes=5)
    missed_beats: int = 2
    bounds: Bounds = MANY
    agent_interval: timedelta = timedelta(minutes=1)
    """The shortest distance between two runs that an agent may ask for."""
    jobs_in_runs: bool = False
    """Whether a run of a job may make jobs."""
    agent_jobs: Mapping[str, int] = field(default_factory=dict)
    """How many jobs an agent may make; one that is not named, as many as the bounds allow."""
    agent_intervals: Mapping[str, timedelta] = field(default_factory=dict)
    """As `agent_interval`, for agents that have one of their own."""
    agents: Mapping[str, int] = field(default_factory=dict)
    """How many runs at once an agent may have here; one that is not named, as many as the lane."""

    def shortest(self, agent: str) -> timedelta:
        return self.agent_intervals.get(agent, self.agent_interval)

    def retries(self, job: NewJob) -> int:
        return self.max_retries if job.rules.max_retries is None else job.rules.max_retries

    def timeout(self, job: NewJob) -> timedelta:
        return job.rules.run_timeout or self.run_timeout

    def late_policy(self, job: NewJob) -> CatchUp:
        return job.rules.catch_up or self.catch_up

    def patience(self, job: NewJob) -> timedelta:
        return self.grace if job.rules.grace is None else job.rules.grace
