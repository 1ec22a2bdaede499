"""The ways in and out: each channel turns what a person sends into messages and replies into what they see.

Channels know nothing of the agent that will answer; `gateway.agents` is closed to them.
"""
