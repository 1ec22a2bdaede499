"""The command `goclaw`: a client of the API, that drives the same application in its own process where no gateway runs.

It knows the API by its paths and its JSON and nothing of what is behind it. `reach.py` and `sending.py` alone open a
store, for as long as a command takes.
"""
