"""Everything the scheduler can refuse or end a message with, drawn once.

    SchedulerError
    ├── InvalidRequest     a value that cannot be meant (also a ValueError)
    ├── WaitRefused        waiting here could never end, or too many runs wait already
    └── MessageEnded       what a ticket raises when its message did not run to its end
        ├── QueueDropped   pushed out by a newer message (drop policy ``old``)
        ├── QueueFull      refused because enough messages wait (drop policy ``new``)
        ├── RunCancelled   stopped by a person, an interrupt, a parent or a shutdown
        ├── RunFailed      the handler raised; the exception is the ``__cause__``
        ├── RunTimeout     the run took longer than its policy allows
        └── SchedulerClosed   never started; whoever stored the message still has it

Each error carries ``code`` (stable, for programs), ``fields`` (facts, for logs) and ``retriable``.
"""

from __future__ import annotations

from typing import ClassVar


class SchedulerError(Exception):
    """Base of all errors of this room."""

    code: ClassVar[str] = "scheduler"
    retriable: ClassVar[bool] = False

    def __init__(self, message: str, **fields: object) -> None:
        super().__init__(message)
        self.fields = fields


class InvalidRequest(SchedulerError, ValueError):
    code = "invalid-request"


class WaitRefused(SchedulerError):
    code = "wait-refused"


class MessageEnded(SchedulerError):
    code = "message-ended"


class QueueDropped(MessageEnded):
    code = "queue-dropped"


class QueueFull(MessageEnded):
    code = "queue-full"
    retriable = True


class RunCancelled(MessageEnded):
    code = "run-cancelled"


class RunFailed(MessageEnded):
    code = "run-failed"


class RunTimeout(MessageEnded):
    code = "run-timeout"


class SchedulerClosed(MessageEnded):
    code = "scheduler-closed"
    retriable = True
