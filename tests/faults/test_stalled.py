"""A whole gateway whose process does not get on for a while: it is seen from outside, and told afterwards. (R21)"""

from __future__ import annotations

import os
import re
import signal
import time
from typing import TYPE_CHECKING

import httpx2
import pytest

from gateway.metrics.lag import PERIOD_S, STALL_S
from tests.flow.process import over_pipes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.faults

DEADLINE_S = 30.0


def test_a_process_that_stood_still_is_red_and_says_so_afterwards(tmp_path: Path) -> None:
    """While it is stopped no probe is answered; then it lives, and is not ready for a while, with the reason."""
    with over_pipes(tmp_path, "run", port=0) as process:
        url = re.sub(r".* ", "", process.expect(r"listens on http://\S+"))
        with httpx2.Client(base_url=url, timeout=DEADLINE_S, trust_env=False) as client:
            assert client.get("/readyz").status_code == 200  # it is measured from now on
            process.signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.popen.pid, os.WSTOPPED | os.WNOWAIT)
            with pytest.raises(httpx2.TimeoutException):
                client.get("/healthz", timeout=STALL_S + 3 * PERIOD_S)
            process.signal(signal.SIGCONT)
            ready = until_unready(client)
            assert re.match(r"nothing went on here for \d+ s; that was over \d+ s ago", ready["problems"][0])
            assert client.get("/healthz").status_code == 200
        process.signal(signal.SIGTERM)
        assert process.popen.wait(DEADLINE_S) == 0


def until_unready(client: httpx2.Client) -> dict[str, list[str]]:
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        answer = client.get("/readyz")
        if answer.status_code == 503:
            told: dict[str, list[str]] = answer.json()
            return told
    raise AssertionError("it was ready all the time")
