"""The command `goclaw`: a client of the API, that drives the same application in its own process where no gateway runs.

It knows the API by its addresses and its JSON, and nothing of what is behind it; only `reach.py` opens a store.
"""
