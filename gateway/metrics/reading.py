"""Reads the gateway off for Prometheus: whatever lives is looked at now, whatever was counted is handed over.

Nothing here waits, and nothing looks at every row of anything: the largest step goes once over the conversations that
are in memory because something waits or runs in them.
"""

from __future__ import annotations

import platform
import resource
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import psutil
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from cron.service import Status
from gateway.metrics.families import FAMILIES
from scheduler import WAIT_BOUNDS_S
from scheduler.lane import DEFAULT_LANE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from gateway.metrics.figures import Histogram
    from gateway.metrics.pulse import Seen
    from gateway.office import Office
    from scheduler import LaneStatistics

    Labels = tuple[str, ...]

VERSION = version("goclaw")


class Reading(Collector):
    """One look. What the store was asked has been answered before."""

    def __init__(self, office: Office, seen: Seen) -> None:
        self._office = office
        self._seen = seen

    def collect(self) -> Iterator[Metric]:
        yield from self._health()
        yield from self._loop()
        yield from self._lanes()
        yield from self._runs()
        yield from self._cron()
        yield from self._channels()
        yield from self._store()
        yield from self._http()
        yield from process()

    # ── the gateway ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _health(self) -> Iterator[Metric]:
        office, gateway = self._office, self._office.gateway
        mode = "managed" if office.settings.managed else "standalone"
        yield numbers("goclaw_build_info", {(VERSION, platform.python_version(), mode): 1})
        yield numbers("goclaw_working", gateway is not None)
        health = () if gateway is None else gateway.health()
        yield numbers("goclaw_service_up", {one.name: one.state == "running" for one in health})
        yield numbers("goclaw_service_restarts_total", {one.name: one.restarts for one in health})
        yield numbers("goclaw_lost_lines_total", {file: lost() for file, lost in office.figures.lost_lines.items()})
        yield from self._workers()

    def _workers(self) -> Iterator[Metric]:
        if self._seen.alive:
            workers = self._seen.workers
            yield numbers("goclaw_workers", Counter(str(one.status) for one in workers))
            now = self._office.now()
            ages = [(now - one.seen_at).total_seconds() for one in workers]
            yield numbers("goclaw_worker_heartbeat_age_seconds", max(ages, default=0.0))

    def _loop(self) -> Iterator[Metric]:
        lag = self._office.lag
        yield histogram("goclaw_loop_lag_seconds", {(): lag.late_s})
        yield numbers("goclaw_loop_lag_max_seconds", lag.worst_s())
        yield numbers("goclaw_loop_stalls_total", lag.stalls)

    # ── lanes and queues ─────────────────────────────────────────────────────────────────────────────────────────────

    def _lanes(self) -> Iterator[Metric]:
        gateway = self._office.gateway
        if gateway is None:
            return
        here = gateway.scheduler.statistics()
        for name, of in LANE_FIGURES.items():
            yield numbers(name, {lane.name: of(lane) for lane in here.lanes})
        used = (lane for lane in here.lanes if lane.started or lane.name == DEFAULT_LANE)
        waits = {(lane.name,): (WAIT_BOUNDS_S, lane.wait_counts, lane.waited_s) for lane in used}
        yield buckets("goclaw_lane_wait_seconds", waits)
        ends = {(lane.name, end.replace(" ", "_")): count for lane in here.lanes for end, count in lane.ends.items()}
        yield numbers("goclaw_messages_ended_total", ends)
        yield numbers("goclaw_messages_in_hand", gateway.in_hand)
        yield numbers("goclaw_messages_debouncing", here.buffered)
        yield numbers("goclaw_sessions_active", here.sessions)
        yield numbers("goclaw_callback_errors_total", here.callback_errors)

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _runs(self) -> Iterator[Metric]:
        figures, now = self._office.figures, self._office.now()
        yield numbers("goclaw_runs_total", figures.runs)
        yield histogram("goclaw_run_duration_seconds", figures.run_s)
        yield histogram("goclaw_answer_duration_seconds", {(): figures.answer_s})
        ages = [(now - one.since).total_seconds() for one in self._office.activity.running()]
        yield numbers("goclaw_run_longest_seconds", max(ages, default=0.0))
        yield numbers("goclaw_tokens_total", figures.tokens)
        yield numbers("goclaw_model_requests_total", figures.model_requests)
        yield histogram("goclaw_model_request_duration_seconds", figures.model_s)
        yield numbers("goclaw_tool_calls_total", figures.tool_calls)

    def _cron(self) -> Iterator[Metric]:
        figures, gateway = self._office.figures, self._office.gateway
        if gateway is not None and gateway.timetable is not None:
            cron, now = gateway.timetable.service, self._office.now()
            state, due_at = cron.state(), cron.due_at
            yield numbers("goclaw_cron_up", state.status is Status.RUNNING)
            if state.last_check_at is not None:
                yield numbers("goclaw_cron_last_check_timestamp_seconds", state.last_check_at.timestamp())
            overdue_s = 0.0 if due_at is None else max((now - due_at).total_seconds(), 0.0)
            yield numbers("goclaw_cron_overdue_seconds", overdue_s)
            yield numbers("goclaw_cron_claims_held", cron.running())
            yield numbers("goclaw_cron_claims_total", state.trigger_count)
        yield numbers("goclaw_cron_runs_total", figures.cron_ends)
        yield numbers("goclaw_cron_retries_total", figures.cron_retries)
        yield numbers("goclaw_cron_slots_skipped_total", figures.cron_skipped)
        yield histogram("goclaw_cron_lateness_seconds", {(): figures.cron_late_s})
        yield numbers("goclaw_cron_trouble_total", figures.cron_trouble)

    # ── edges ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _channels(self) -> Iterator[Metric]:
        figures, gateway = self._office.figures, self._office.gateway
        yield numbers("goclaw_channel_messages_total", figures.taken_in)
        yield numbers("goclaw_channel_replies_total", figures.replies)
        yield numbers("goclaw_channel_retries_total", figures.retries)
        yield histogram("goclaw_channel_delivery_seconds", figures.delivery_s)
        if gateway is not None:
            outbox = gateway.outbox()
            yield numbers("goclaw_channel_replies_waiting", {way.name: way.waiting for way in outbox.channels})
            yield numbers("goclaw_channel_replies_sending", {way.name: way.sending for way in outbox.channels})
            yield numbers("goclaw_channel_conversations_resting", {way.name: way.resting for way in outbox.channels})
            yield numbers("goclaw_outbox_unreachable", outbox.unreachable)

    def _store(self) -> Iterator[Metric]:
        yield numbers("goclaw_store_up", self._seen.alive)
        yield numbers("goclaw_store_answer_seconds", self._seen.took_s)
        yield histogram("goclaw_store_call_duration_seconds", {(): self._office.figures.store_s})
        asked = {verb: spent for verb, spent in self._office.figures.verbs.items() if spent.times}
        yield numbers("goclaw_store_calls_total", {verb: spent.times for verb, spent in asked.items()})
        yield numbers("goclaw_store_call_seconds_total", {verb: spent.seconds for verb, spent in asked.items()})
        yield numbers("goclaw_store_errors_total", self._office.figures.store_errors)

    def _http(self) -> Iterator[Metric]:
        figures = self._office.figures
        yield numbers("goclaw_http_requests_total", figures.requests)
        yield histogram("goclaw_http_response_seconds", figures.response_s)
        yield numbers("goclaw_http_requests_open", figures.requests_open)
        yield numbers("goclaw_http_streams_open", len(self._office.streams))
        connected, refused = self._office.connected()
        yield numbers("goclaw_http_connections", connected)
        yield numbers("goclaw_http_connections_refused_total", refused)


LANE_FIGURES: dict[str, Callable[[LaneStatistics], float]] = {
    "goclaw_lane_slots": lambda lane: lane.limit,
    "goclaw_lane_active": lambda lane: lane.active,
    "goclaw_lane_parked": lambda lane: lane.parked,
    "goclaw_lane_waiting": lambda lane: lane.waiting,
    "goclaw_lane_stuck": lambda lane: lane.stuck,
    "goclaw_lane_oldest_wait_seconds": lambda lane: lane.oldest_wait_s,
    "goclaw_lane_started_total": lambda lane: lane.started,
}


def process() -> Iterator[Metric]:
    """What Prometheus' own collector calls by these names, on other systems than Linux too."""
    this = psutil.Process()
    with this.oneshot():
        times, memory = this.cpu_times(), this.memory_info()
        yield numbers("process_cpu_seconds_total", times.user + times.system)
        yield numbers("process_resident_memory_bytes", memory.rss)
        yield numbers("process_virtual_memory_bytes", memory.vms)
        yield numbers("process_open_fds", this.num_fds())
        yield numbers("process_max_fds", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        yield numbers("process_threads", this.num_threads())
        yield numbers("process_start_time_seconds", this.create_time())


# ── families ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def numbers(name: str, values: Mapping[Any, float] | float) -> Metric:
    """A counter or a gauge, as the table has it: one number, or one by each combination of labels."""
    family = FAMILIES[name]
    make = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    made = make(name, family.about, labels=family.labels)
    for labels, value in values.items() if isinstance(values, Mapping) else [((), values)]:
        made.add_metric(key(labels), float(value))
    return made


def histogram(name: str, values: Mapping[Any, Histogram]) -> Metric:
    return buckets(name, {key(labels): (one.bounds, one.counts, one.total) for labels, one in values.items()})


def buckets(name: str, values: Mapping[Any, tuple[Sequence[float], Sequence[int], float]]) -> Metric:
    family = FAMILIES[name]
    made = HistogramMetricFamily(name, family.about, labels=family.labels)
    for labels, (bounds, counts, total) in values.items():
        upto = [*map(repr, map(float, bounds)), "+Inf"]
        made.add_metric(labels, list(zip(upto, accumulate(counts), strict=True)), total)
    return made


def key(labels: Labels | str) -> Labels:
    return (labels,) if isinstance(labels, str) else labels
