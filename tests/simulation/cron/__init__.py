"""The real cron service in a made-up world: seeded time that jumps, seeded trouble, lives that end without a word.

    plan(seed) ──▶ people ───────┐                   ┌─ store that delays, fails, and fails after the deed
                   clock jumps ──┼─▶ CronService ────┤  runner that dawdles, raises, hangs
                   lives ────────┘   (one or two)    └─ wall clock over two changes of the hour
                                        │
                    rows of the store ──┴──▶ steps ──▶ promises (P4 P5 P9), looked at after every write

Everything follows from one integer. `python -m tests.simulation.cron 7 --trace` replays one; `bugs.py` proves that bugs
are found.
"""
