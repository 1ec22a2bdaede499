"""What systemd is told, where it has started us and wants to know (`Type=notify`, `WatchdogSec=`).

READY=1      it works on messages, or stands by for the gateway that does
WATCHDOG=1   at half of the time within which systemd wants a sign, said by the event loop: one that is stuck says
             nothing, and systemd starts the process anew
STOPPING=1   it was asked to end

Without NOTIFY_SOCKET nothing is done. What cannot be told is nobody's trouble: systemd draws its own conclusions.
"""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger("goclaw.systemd")

MICROSECONDS = 1_000_000


class Systemd:
    def __init__(self, environ: Mapping[str, str], pid: int) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        wanted = environ.get("WATCHDOG_USEC", "")
        meant = environ.get("WATCHDOG_PID", "") in ("", str(pid))
        within_s = int(wanted) / MICROSECONDS if meant and wanted.isascii() and wanted.isdigit() else 0.0
        self.every_s = within_s / 2
        """How often a sign of life is due; 0 for never."""

    def working(self) -> None:
        self._tell("READY=1", "STATUS=works on messages")

    def waiting(self) -> None:
        self._tell("READY=1", "STATUS=stands by: another gateway works on the messages")

    def stopping(self) -> None:
        self._tell("STOPPING=1", "STATUS=ends: what runs may finish")

    async def keep_alive(self) -> None:
        """Give signs of life for as long as the loop turns, if any are wanted."""
        while self._address and self.every_s:
            self._tell("WATCHDOG=1")
            await trio.sleep(self.every_s)

    def _tell(self, *lines: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
                door.setblocking(False)
                door.sendto("\n".join(lines).encode(), address)
        except OSError as error:
            logger.info("systemd could not be told %s: %s", lines[0], error)
