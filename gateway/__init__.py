"""Brings people and agents together: settings, channels, commands, and the one place where the parts are joined.

The gateway may import every other room and none of them imports it. Only `gateway.app` names a concrete store.
"""
