"""What the benchmark of the whole gateway found, for people, and what is wanted of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.benchmark import Target, table

if TYPE_CHECKING:
    from bench.benchmark import Result

CPU_TIMES = 3.0
IDLE_MS = 50.0
BLOCKED_MS = 10.0
GROWN = 5_000_000
MARKS = {"warm": "warm", "loaded": "with the keys of a week", "tidied": "a week later"}


def tables(result: Result) -> str:
    return "\n\n".join([turn_table(result), memory_table(result), single_numbers(result)])


def turn_table(result: Result) -> str:
    rows = [
        (
            f"{row['lane']}, {row['batch']}",
            f"{row['per_second']:,}",
            f"{row['bare_per_second']:,}",
            f"{row['times']:.2f}",
            f"{row['cpu_us']:,.0f}",
            f"{row['bare_cpu_us']:,.0f}",
            f"{row['cpu_times']:.2f}",
            f"{row['sign_ms']['p50']:,.1f}",
            f"{row['sign_ms']['p99']:,.1f}",
        )
        for row in result["turns"]
    ]
    title = (
        f"Turns per second, microseconds of processor for one, milliseconds from acceptance to the first sign; median "
        f"of {result['rounds']}\n"
        f"{result['chats']:,} people, each writes again when the answer is there; all of it on disk, in JSON files\n"
        "bare: the same verbs of the store in a row, as many at once, without order, limits, stops or traces"
    )
    head = ("at once, batch", "gateway", "bare", "times", "µs gateway", "µs bare", "times", "sign p50", "p99")
    return table(title, head, rows)


def memory_table(result: Result) -> str:
    whole, traced = result["memory"], result["traced"]
    rows = [
        (
            name,
            *(f"{whole[mark][figure] / 1e6:,.1f}" for figure in ("rss", "trimmed_rss")),
            f"{whole[mark]['objects']:,}",
            f"{whole[mark]['keys']:,}",
            f"{traced[mark]['traced'] / 1e6:,.2f}",
            f"{traced[mark]['keys']:,}",
        )
        for mark, name in MARKS.items()
    ]
    title = (
        f"Megabytes before and after {whole['messages']:,} messages in {whole['chats']:,} chats; traced: what Python "
        f"has allocated, {traced['messages']:,} messages\n"
        "trimmed: free memory was given back to the system (malloc_trim), which nobody does while it runs"
    )
    return table(title, ("when", "RSS", "trimmed", "objects", "keys", "traced", "keys"), rows)


def single_numbers(result: Result) -> str:
    loop, idle, whole, traced = result["blocked"], result["idle_ms"], result["memory"], result["traced"]
    about = ", ".join(str(value) for value in result["machine"].values())
    grown = ", ".join(f"{count:,} {name}" for name, count in whole["grown"].items())
    rows = [
        (f"first sign on an idle gateway, {idle['samples']} messages, p50", f"{idle['p50']:.2f} ms"),
        ("the same, p99", f"{idle['p99']:.2f} ms"),
        ("longest step of a task, computing", f"{loop['longest_computing_ms']:.2f} ms ({loop['longest_in']})"),
        ("the same but for Python's garbage collector", f"{loop['longest_besides_collection_ms']:.2f} ms"),
        ("longest collection of garbage", f"{loop['longest_collection_ms']:.2f} ms"),
        ("longest step of a task, by the clock", f"{loop['longest_ms']:.2f} ms"),
        ("a key that is kept for a week, traced", f"{bytes_per_key(traced):,.0f} bytes"),
        ("sessions left in the scheduler", str(whole["sessions"])),
        ("objects that there are more of afterwards", grown or "none"),
    ]
    return table(f"One by one, on {about}", ("what", ""), rows)


def bytes_per_key(traced: dict[str, Any]) -> float:
    loaded, tidied = traced["loaded"], traced["tidied"]
    freed: int = loaded["traced"] - tidied["traced"]
    forgotten: int = loaded["keys"] - tidied["keys"]
    return freed / max(forgotten, 1)


def targets(result: Result) -> list[Target]:
    return [*cpu_targets(result), idle_target(result), loop_target(result), memory_target(result)]


def cpu_targets(result: Result) -> list[Target]:
    return [
        Target(
            f"processor against bare verbs, {row['lane']} at once, batches of {row['batch']}",
            f"<= {CPU_TIMES:g} x",
            f"{row['cpu_times']} x",
            row["cpu_times"] <= CPU_TIMES,
        )
        for row in result["turns"]
    ]


def idle_target(result: Result) -> Target:
    p99 = result["idle_ms"]["p99"]
    return Target("first sign on an idle gateway, p99", f"<= {IDLE_MS:g} ms", f"{p99} ms", p99 <= IDLE_MS)


def loop_target(result: Result) -> Target:
    loop = result["blocked"]
    held = loop["longest_computing_ms"]
    return Target(
        f"loop held up, {loop['messages']:,} messages", f"<= {BLOCKED_MS:g} ms", f"{held} ms", held <= BLOCKED_MS
    )


def memory_target(result: Result) -> Target:
    whole = result["memory"]
    grown = whole["tidied"]["trimmed_rss"] - whole["warm"]["trimmed_rss"]
    return Target(
        f"RSS after {whole['messages']:,} messages, a week later, against the warm start",
        f"<= {GROWN / 1e6:g} MB more",
        f"{grown / 1e6:.1f} MB",
        grown <= GROWN,
    )
