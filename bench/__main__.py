"""`python -m bench [NAME ...] [--json] [--quick] [--strict]`: run benchmarks and show what they found."""

from __future__ import annotations

import argparse
import json
import sys

from bench.benchmark import say, target_table
from bench.cron import BENCHMARK as CRON
from bench.gateway import BENCHMARK as GATEWAY
from bench.lanes import BENCHMARK as LANES
from bench.store import BENCHMARK as STORE

BENCHMARKS = {benchmark.name: benchmark for benchmark in (LANES, STORE, CRON, GATEWAY)}


def arguments(argv: list[str]) -> argparse.Namespace:
    names = "\n".join(f"  {benchmark.name:<10} {benchmark.about}" for benchmark in BENCHMARKS.values())
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure goclaw.",
        epilog=f"benchmarks:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which ones to run; all if none is named")
    parser.add_argument("--json", action="store_true", help="results as JSON on stdout, everything else on stderr")
    parser.add_argument("--quick", action="store_true", help="a small load, once: to see that it works")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    parsed = parser.parse_args(argv)
    unknown = [name for name in parsed.names if name not in BENCHMARKS]
    if unknown:
        parser.exit(2, f"there is no benchmark {unknown[0]!r}; there are:\n{names}\n")
    return parsed


def main(argv: list[str]) -> int:
    options = arguments(argv)
    results = {}
    missed = False
    for name in options.names or BENCHMARKS:
        benchmark = BENCHMARKS[name]
        say(f"{name}: {benchmark.about}")
        results[name] = result = benchmark.measure(options.quick)
        targets = benchmark.targets(result)
        missed = missed or not all(target.met for target in targets)
        if not options.json:
            print(f"\n{benchmark.tables(result)}\n\n{target_table(targets)}")
    if options.json:
        only = results[options.names[0]] if len(options.names) == 1 else results
        print(json.dumps(only, indent=2))
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
