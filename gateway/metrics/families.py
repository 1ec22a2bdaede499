"""The one table of all figures: name, kind, labels, and what it says. docs/metrics.md is made from it.

python -m gateway.metrics.families      prints the tables of that page
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["counter", "gauge", "histogram"]


class Family(NamedTuple):
    name: str
    kind: Kind
    labels: tuple[str, ...]
    about: str


def counter(name: str, about: str, *labels: str) -> Family:
    return Family(f"{name}_total", "counter", labels, about)


def gauge(name: str, about: str, *labels: str) -> Family:
    return Family(name, "gauge", labels, about)


def histogram(name: str, about: str, *labels: str) -> Family:
    return Family(name, "histogram", labels, about)


SECTIONS: dict[str, tuple[Family, ...]] = {
    "Health": (
        gauge("goclaw_build_info", "Always 1; which goclaw this is.", "version", "python", "mode"),
        gauge(
            "goclaw_working", "1: it holds the chat lease and works on messages. 0: it stands by for the one that does."
        ),
        gauge(
            "goclaw_service_up", "1: the service runs. 0: it starts, rests after a failure, or has ended.", "service"
        ),
        counter("goclaw_service_restarts", "How often the service failed and was started again.", "service"),
        counter("goclaw_lost_lines", "Lines of traces.jsonl or scheduler.log that never came to the disk.", "file"),
        gauge("goclaw_workers", "Processes on this store that have not left, by what they last said.", "status"),
        gauge("goclaw_worker_heartbeat_age_seconds", "How long ago the most silent of them gave its sign of life."),
    ),
    "Event loop": (
        histogram("goclaw_loop_lag_seconds", "How late the loop woke a task, looked at twice a second while watched."),
        gauge("goclaw_loop_lag_max_seconds", "The latest of the last minute."),
        counter("goclaw_loop_stalls", "How often nothing went on for five seconds or longer."),
    ),
    "Lanes": (
        gauge("goclaw_lane_slots", "How many runs the lane has at once.", "lane"),
        gauge("goclaw_lane_active", "Runs that hold a slot.", "lane"),
        gauge("goclaw_lane_parked", "Runs that have lent their slot while they wait for a helper.", "lane"),
        gauge("goclaw_lane_waiting", "Turns that wait, in their conversation or for a slot.", "lane"),
        gauge("goclaw_lane_stuck", "Runs that were told to end and have not done so.", "lane"),
        gauge("goclaw_lane_oldest_wait_seconds", "How long the turn that waits longest has waited.", "lane"),
        counter("goclaw_lane_started", "Turns that got a slot.", "lane"),
        histogram(
            "goclaw_lane_wait_seconds", "From entering the queue to getting a slot, of lanes that were used.", "lane"
        ),
    ),
    "Queues": (
        gauge("goclaw_messages_in_hand", "Messages that wait, run, or are just being written down as ended."),
        gauge("goclaw_messages_debouncing", "Messages that wait for more of the same sender before they are queued."),
        gauge("goclaw_sessions_active", "Conversations in which something waits or runs."),
        counter(
            "goclaw_messages_ended",
            "Messages by how they ended. dropped: the queue was full and the oldest had to go. refused: it was full and"
            " the newcomer had to go. closed: the gateway ended, and they go on with the next start.",
            "lane",
            "end",
        ),
        counter("goclaw_callback_errors", "Mistakes in what listens to the scheduler: there should be none."),
    ),
    "Runs": (
        counter(
            "goclaw_runs", "Runs of agents that have ended, by what asked for them and how.", "agent", "of", "status"
        ),
        histogram("goclaw_run_duration_seconds", "How long runs took on their slot.", "of"),
        histogram(
            "goclaw_answer_duration_seconds", "From a message's acceptance to its answer, for those that have one."
        ),
        gauge("goclaw_run_longest_seconds", "How long the run that goes on longest has gone on; 0 without one."),
        counter("goclaw_tokens", "Tokens that models counted, in and out.", "agent", "direction"),
        counter("goclaw_model_requests", "Requests to models, and to programs that answer.", "model", "status"),
        histogram("goclaw_model_request_duration_seconds", "How long they took, to the end of the answer.", "model"),
        counter("goclaw_tool_calls", "Tools called by agents; other is what does not exist.", "tool", "status"),
    ),
    "Cron": (
        gauge("goclaw_cron_up", "1: jobs are fired. 0: cron rests after a failure, or ends."),
        gauge("goclaw_cron_last_check_timestamp_seconds", "When it was last looked whether something is due."),
        gauge("goclaw_cron_overdue_seconds", "For how long the next trigger has been due; 0 while none is."),
        gauge("goclaw_cron_claims_held", "Triggers that this process carries out or is about to."),
        counter("goclaw_cron_claims", "Triggers that it has claimed."),
        counter(
            "goclaw_cron_runs",
            "Attempts of jobs by how they ended. given_back: the gateway ended, and they begin anew.",
            "outcome",
        ),
        counter("goclaw_cron_retries", "Attempts that failed and are tried again."),
        counter(
            "goclaw_cron_slots_skipped",
            "Times of schedules at which nothing ran, by reason; missed is too late.",
            "reason",
        ),
        histogram("goclaw_cron_lateness_seconds", "How long after it was due an attempt began."),
        counter("goclaw_cron_trouble", "What cron had to warn of, by its name in scheduler.log.", "event"),
    ),
    "Channels": (
        counter(
            "goclaw_channel_messages", "Messages handed in: accepted, or repeated deliveries.", "channel", "outcome"
        ),
        counter(
            "goclaw_channel_replies",
            "Replies that have left the outbox: delivered, or failed for good.",
            "channel",
            "outcome",
        ),
        counter(
            "goclaw_channel_retries",
            "Replies that could not go and are tried again: rate_limited (the channel said for how long), or error.",
            "channel",
            "reason",
        ),
        histogram(
            "goclaw_channel_delivery_seconds", "How long the channel took for a reply that it delivered.", "channel"
        ),
        gauge(
            "goclaw_channel_replies_waiting",
            "Replies that may go; of a long outbox as much as was looked at.",
            "channel",
        ),
        gauge("goclaw_channel_replies_sending", "Replies on their way.", "channel"),
        gauge("goclaw_channel_conversations_resting", "Conversations whose replies are tried again later.", "channel"),
        gauge("goclaw_outbox_unreachable", "Conversations with replies for channels that are not connected."),
    ),
    "Store": (
        gauge("goclaw_store_up", "1: the store has answered within two seconds. 0: it has not."),
        gauge("goclaw_store_answer_seconds", "How long that took."),
        histogram("goclaw_store_call_duration_seconds", "How long a call of the store took, failures included."),
        counter("goclaw_store_calls", "Calls of the store by verb.", "verb"),
        counter("goclaw_store_call_seconds", "How long they took together.", "verb"),
        counter("goclaw_store_errors", "Verbs that failed, by the error's code; most are tried again.", "verb", "code"),
    ),
    "HTTP": (
        counter(
            "goclaw_http_requests",
            "Requests by route and status; gone is one that nobody waited for.",
            "method",
            "route",
            "status",
        ),
        histogram("goclaw_http_response_seconds", "How long it took until the answer began.", "route"),
        gauge("goclaw_http_requests_open", "Requests that are being answered, streams included."),
        gauge("goclaw_http_streams_open", "Streams that are open."),
        gauge("goclaw_http_connections", "Connections that are open."),
        counter("goclaw_http_connections_refused", "Connections that were refused because there were too many."),
    ),
    "Process": (
        counter("process_cpu_seconds", "Time on the processor."),
        gauge("process_resident_memory_bytes", "Memory that is really in use."),
        gauge("process_virtual_memory_bytes", "Memory that is reserved."),
        gauge("process_open_fds", "Open files and sockets."),
        gauge("process_max_fds", "How many of those there may be."),
        gauge("process_threads", "Threads."),
        gauge("process_start_time_seconds", "When the process began."),
    ),
}

FAMILIES = {family.name: family for section in SECTIONS.values() for family in section}


def tables() -> Iterator[str]:
    """The tables of docs/metrics.md, line by line."""
    for section, families in SECTIONS.items():
        yield from ("", f"## {section}", "", "| figure | kind | labels | what it says |", "|---|---|---|---|")
        for one in families:
            labels = ", ".join(f"`{label}`" for label in one.labels)
            yield f"| `{one.name}` | {one.kind} | {labels} | {one.about} |"


if __name__ == "__main__":
    sys.stdout.write("\n".join(tables()) + "\n")
