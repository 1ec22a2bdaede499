"""`python -m tests.http.patient`: a whole gateway that bears any number of wrong tokens, until it is killed."""

from __future__ import annotations

import os
from pathlib import Path

import trio

from gateway.access.limits import Limits
from tests.http.world import serve_for_ever

if __name__ == "__main__":
    place, token = Path(os.environ["GOCLAW_DATA_DIR"]), os.environ["GOCLAW_GATEWAY_TOKEN"]
    trio.run(serve_for_ever, place, token, Limits(wrong_burst=1_000_000))
