"""Runs agents on time: a job's schedule is read, its due moments are claimed, run and settled.

Cron is handed what runs an agent, what repeats a verb of the store and what tells the time, so it imports neither the
scheduler nor the gateway. Of the store it sees only records and protocols, and it does not know heartbeat. Everything
that decides is pure; only `service`, `run`, `upkeep`, `jobs` and `work` wait for anything.
"""
