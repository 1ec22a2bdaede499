"""Benchmarks: what goclaw's parts cost, measured beside what a user would write without them.

`python -m bench` runs all, `python -m bench lanes` one. Numbers come with their targets; to miss one is news, not a
failure, unless `--strict` says otherwise. No room imports this one, and it is not installed.
"""
