"""What the benchmark of cron found, for people, and what is wanted of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.benchmark import Target, table

if TYPE_CHECKING:
    from bench.benchmark import Result

GROWTH = 2.0
BLOCKED_MS = 10.0
LATE_MS = 50.0
WHAT = {
    "add": "add, one caller",
    "add_at_once": "add, a hundred callers",
    "look": "idle: look at the clock",
    "ask": "idle: ask what is due",
    "fire": "fire those that are due",
}
STEADY = ("add", "add_at_once", "look", "ask")
"""What should not depend on how much is stored."""
QUEUES = ("procrastinate", "pgqueuer")
LIBRARIES = ("croniter", "cronsim")


def tables(result: Result) -> str:
    return "\n\n".join([stored_table(result), next_table(result), claim_table(result), single_numbers(result)])


def stored_table(result: Result) -> str:
    counts = list(result["stored"]["add"]["ours"]["us"])
    title = (
        f"Microseconds for one, by jobs stored; for firing all {result['due']:,}; median of {result['rounds']}\n"
        "ours: on the disk, in the JSON store; apscheduler: in memory; scan: a list that every tick goes through, "
        "all of it written on a change"
    )
    rows = [
        (WHAT[what], name, *(f"{figures['us'][count]:,.1f}" for count in counts), f"{figures['growth']:.2f}")
        for what, contenders in result["stored"].items()
        for name, figures in contenders.items()
    ]
    return table(title, ("what", "who", *(f"{int(count):,}" for count in counts), "most/fewest"), rows)


def next_table(result: Result) -> str:
    rows = [
        (
            row["asked"],
            *(f"{row[name]:,}" for name in ("ours", *LIBRARIES)),
            *(f"{row[f'vs_{name}']:.2f}" for name in LIBRARIES),
            *(str(row[f"differs_{name}"]) for name in LIBRARIES),
        )
        for row in result["next"]
    ]
    title = (
        "Next times per second, ten expressions in five zones; how many answers are not the same\n"
        "in a row: each asked on from its own last answer; anywhere: from given moments, as a scheduler does"
    )
    ratios = (f"ours/{name}" for name in LIBRARIES)
    return table(title, ("asked", "ours", *LIBRARIES, *ratios, *(f"not as {name}" for name in LIBRARIES)), rows)


def claim_table(result: Result) -> str:
    rows = [
        (
            str(row["batch"]),
            *(f"{row[name]:,}" for name in ("ours", *QUEUES)),
            *(f"{row[f'vs_{name}']:.2f}" for name in QUEUES),
            *(f"{row['wal_bytes'][name]:,}" for name in ("ours", *QUEUES)),
        )
        for row in result["claims"]
    ]
    title = (
        f"Jobs per second on Postgres, from due to done, {result['claims'][0]['connections']} connections; bytes of "
        "the server's log for one\n"
        "ours: claim, start, settle of jobs that recur: lease, run, two notifications, job, trigger, the next trigger\n"
        "procrastinate: fetch and finish, one by one; pgqueuer: dequeue and log; neither plans a next one"
    )
    ratios = (f"ours/{name}" for name in QUEUES)
    return table(title, ("batch", "ours", *QUEUES, *ratios, *(f"B {name}" for name in ("ours", *QUEUES))), rows)


def single_numbers(result: Result) -> str:
    loop, delay = result["blocked"], result["lateness_ms"]
    about = ", ".join(str(value) for value in result["machine"].values())
    rows = [
        (f"lateness of {delay['samples']} jobs, {delay['stored']:,} others stored, p50", f"{delay['p50']:.1f} ms"),
        ("the same, p99", f"{delay['p99']:.1f} ms"),
        ("the same, latest", f"{delay['max']:.1f} ms"),
        (f"fired and added with {loop['stored']:,} jobs stored", f"{loop['fired']:,} and {loop['added']:,}"),
        ("compactions meanwhile", str(loop["compactions"])),
        ("longest step of a task, computing", f"{loop['longest_computing_ms']:.2f} ms ({loop['longest_in']})"),
        ("the same but for Python's garbage collector", f"{loop['longest_besides_collection_ms']:.2f} ms"),
        ("longest step of a task, by the clock", f"{loop['longest_ms']:.2f} ms"),
        ("psycopg under procrastinate", result["psycopg"]),
    ]
    return table(f"One by one, on {about}", ("what", ""), rows)


def targets(result: Result) -> list[Target]:
    return [*steady_targets(result), loop_target(result), *claim_targets(result), late_target(result)]


def steady_targets(result: Result) -> list[Target]:
    counts = [int(count) for count in result["stored"]["add"]["ours"]["us"]]
    wanted = []
    for what in STEADY:
        growth = result["stored"][what]["ours"]["growth"]
        name = f"{WHAT[what]}, {counts[-1]:,} jobs against {counts[0]:,}"
        wanted.append(Target(name, f"<= {GROWTH:g} x", f"{growth} x", growth <= GROWTH))
    return wanted


def loop_target(result: Result) -> Target:
    loop: dict[str, Any] = result["blocked"]
    held = loop["longest_computing_ms"]
    return Target(
        f"loop held up, {loop['compactions']} compactions, {loop['stored']:,} jobs",
        f"<= {BLOCKED_MS:g} ms",
        f"{held} ms",
        held <= BLOCKED_MS and loop["compactions"] > 0,
    )


def claim_targets(result: Result) -> list[Target]:
    return [
        Target(
            f"Postgres, batches of {row['batch']}, against {name}",
            "> 1 x",
            f"{row[f'vs_{name}']} x",
            row[f"vs_{name}"] > 1,
        )
        for row in result["claims"]
        for name in QUEUES
    ]


def late_target(result: Result) -> Target:
    delay = result["lateness_ms"]
    p99 = delay["p99"]
    return Target(f"lateness of {delay['samples']} jobs, p99", f"< {LATE_MS:g} ms", f"{p99} ms", p99 < LATE_MS)
