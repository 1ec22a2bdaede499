"""Keeps what was promised: messages, sessions, jobs and replies.

`store.records` says what is kept and `store.protocols` how it is asked for; the other rooms know these two
alone, and `gateway.app` picks the store behind them. The store imports no other room.
"""
