"""Wakes an agent from time to time to look at HEARTBEAT.md, and passes on only what a person should know.

Heartbeat is handed the callable that runs an agent, so it imports neither the scheduler nor the gateway. Of
the store it sees only `store.records` and `store.protocols`, and it does not know cron.
"""
