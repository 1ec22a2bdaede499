"""Keeps one Postgres server for a test run and ends it with that run, however the run ends.

`python -m tests.postgres.guardian DIRECTORY DOOR [durable]` answers at the listening socket that it was handed as file
descriptor DOOR, one line for one line. The server is made when somebody first asks, so a run that needs none costs
nothing. When the standard input closes, because the run closed it or was killed, the server is ended and the directory
removed.

    start     make or start it; answers with its DSN
    restart   as after a crash (SIGQUIT, the `-m immediate` of pg_ctl); answers with its DSN
    crash     the same without starting again
"""

from __future__ import annotations

import selectors
import shutil
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from tests.postgres.cluster import Cluster


class Guardian:
    def __init__(self, cluster: Cluster, door: socket.socket) -> None:
        self.cluster = cluster
        self.events = selectors.DefaultSelector()
        self.door = door
        self.made = False

    def serve(self) -> None:
        """Until nobody holds the other end of the standard input."""
        self.events.register(self.door, selectors.EVENT_READ)
        self.events.register(sys.stdin, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in self.events.select()}
            if sys.stdin in ready:
                return
            if self.cluster.log in ready:
                self.read_log()
            if self.door in ready:
                self.answer()

    def answer(self) -> None:
        asked, _ = self.door.accept()
        with asked, suppress(ConnectionError), asked.makefile("rw") as line:
            try:
                said = self.obey(line.readline().strip())
            except (OSError, RuntimeError) as error:
                said = f"failed {error!r}"
            line.write(said + "\n")

    def obey(self, word: str) -> str:
        if word in ("restart", "crash"):
            self.end(signal.SIGQUIT)
        if word in ("restart", "start"):
            self.begin()
        return self.cluster.dsn

    def begin(self) -> None:
        if not self.made:
            self.cluster.create()
            self.made = True
        if self.cluster.process is None:
            self.cluster.start()
            if self.cluster.log is not None:
                self.events.register(self.cluster.log, selectors.EVENT_READ)

    def end(self, how: signal.Signals) -> None:
        if self.cluster.log is not None and self.cluster.process is not None:
            self.events.unregister(self.cluster.log)
            self.cluster.stop(how)

    def read_log(self) -> None:
        if self.cluster.log is not None and not self.cluster.log.read(65536):
            self.end(signal.SIGQUIT)


def main() -> None:
    root = Path(sys.argv[1])
    guardian = Guardian(Cluster(root, durable="durable" in sys.argv[3:]), socket.socket(fileno=int(sys.argv[2])))
    try:
        guardian.serve()
    finally:
        guardian.end(signal.SIGQUIT)
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
