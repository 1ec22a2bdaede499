"""The server of the test run: a real one, and gone with the run however that ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres.databases import ask
from tests.postgres.server import PROJECT

HOLD = """
from tests.postgres.server import running
with running() as server:
    print(server.dsn, flush=True)
    print((server.door.parent / "data" / "postmaster.pid").read_text().split()[0], flush=True)
    input()
"""


async def test_a_database_is_a_real_and_recent_postgres(database: str) -> None:
    """What the tests run against is a server, not something that looks like one."""
    ((version,),) = await ask(database, "SELECT current_setting('server_version_num')::integer")
    assert version >= 140_000


def test_a_killed_run_leaves_no_server_behind() -> None:
    """SIGKILL gives nobody a chance to clean up: the guardian does, and removes the directory."""
    command = [sys.executable, "-c", HOLD]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=PROJECT, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        root = Path(process.stdout.readline().partition("host=")[2].strip())
        server = int(process.stdout.readline())
        assert root.is_dir()
        process.kill()
        # The guardian has the same standard error, so this ends when it has ended.
        assert process.stderr.read() == ""
    assert not root.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)
