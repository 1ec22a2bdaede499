"""The agents that answer: each takes a turn and gives a reply.

Agents know nothing of the channel a message came from; `gateway.channels` is closed to them.
"""
