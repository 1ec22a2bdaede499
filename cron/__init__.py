"""Runs agents on time: a job's schedule is read, its due moments are claimed, run and settled.

Cron is handed the callable that runs an agent, so it imports neither the scheduler nor the gateway. Of the
store it sees only `store.records` and `store.protocols`, and it does not know heartbeat.
"""
