"""The real scheduler and the real gateway in a made-up world: seeded time, seeded order, seeded trouble.

    plan(seed) ──▶ people ─┐                     ┌─ store that delays, fails, and fails after the deed
                           ├─▶ the real gateway ─┤  agent that dawdles, raises, nests, will not die
                 crashes ──┘   and scheduler     └─ channel that stumbles
                                    │
                                    └──▶ history ──▶ promises, looked at after every step of every task

Everything follows from one integer: the same seed plays the same history, byte for byte.
`make simulate SEED=7` replays one. `planted.py` proves that bugs are found.
"""
