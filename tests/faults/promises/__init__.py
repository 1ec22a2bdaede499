"""What must hold after every kill, whatever it interrupted.

What was told is there. What was asked and not told is there whole or not at all. What was never asked has left no
trace. After each look the promises know the state exactly and go on from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.promises.messages import Messages
from tests.faults.promises.replies import Replies
from tests.faults.promises.sessions import Sessions
from tests.faults.promises.tenants import Tenants

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.faults.found import Found
    from tests.faults.told import Round


class Promises:
    def __init__(self) -> None:
        self.replies = Replies()
        self.messages = Messages()
        self.sessions = Sessions()
        self.tenants = Tenants()
        self.token = 0

    def names(self, heard: Round, random: Random, some: int) -> set[str]:
        """The messages to look at: all that are open or were touched, and some that ended long ago."""
        return self.messages.names(heard, random, some)

    def judge(self, heard: Round, found: Found) -> Iterator[str]:
        """What is broken, one sentence each."""
        yield from heard.complaints
        yield from self.replies.judge(heard, found)
        settled = self.replies.settled
        yield from self.messages.judge(heard, found, settled)
        yield from self.sessions.judge(heard, found, settled)
        yield from self.tenants.judge(heard, found)
        yield from self.leases(heard, found)

    def leases(self, heard: Round, found: Found) -> Iterator[str]:
        for ask in heard.told("acquire"):
            if ask.answer <= self.token:
                yield f"the lease was granted with token {ask.answer} after {self.token}"
            self.token = ask.answer
        if found.token <= self.token:
            yield f"the lease was granted with token {found.token} after {self.token}"
        self.token = found.token
