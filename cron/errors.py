"""Everything cron can refuse or end with, drawn once.

    CronError
    ├── BadInput                what a person typed cannot be used (also a ValueError)
    │   ├── DurationError       `10m`, `1.5h`
    │   │   └── IntervalParseError   the same, read strictly
    │   ├── CronParseError      `0 9 * * 1-5`
    │   ├── ZoneError           `Europe/Berlin`
    │   ├── PhraseError         `every monday at 09:00`
    │   └── PastError           an instant that has passed
    ├── ScheduleTriggerError    a schedule could not be fired
    ├── AlreadyRunning          a second start
    ├── SchedulerShutdownError  runs outlasted the shutdown
    ├── JobNotFound             no such job in this tenant
    ├── JobEnded                there is nothing left to pause or resume
    ├── QuotaReached            as many jobs as are allowed
    ├── AgentMissing            the job's agent is not there
    ├── PermanentFailure        a run that failed and need not be tried again
    ├── RunTimedOut             a run that took longer than it may
    └── RunStopped              a run that a person stopped

Each error carries ``code`` (stable, for programs), ``fields`` (facts, for logs) and ``retriable``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from datetime import timedelta

LONGEST_QUOTE = 100
"""Characters of an input that an error's text repeats; the error itself keeps all of it."""


def quoted(value: str) -> str:
    """An input as an error's text shows it: in double quotes, on one line, not too long."""
    clipped = value if len(value) <= LONGEST_QUOTE else value[:LONGEST_QUOTE] + "…"
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in clipped)
    return f'"{shown}"'


class CronError(Exception):
    """Base of all errors of this room."""

    code: ClassVar[str] = "cron"
    retriable: ClassVar[bool] = False

    def __init__(self, message: str, **fields: object) -> None:
        super().__init__(message)
        self.fields = fields


class BadInput(CronError, ValueError):
    """The text says what is wrong, with the value, and shows what would be right."""

    code = "bad-input"

    def __init__(self, message: str, *, field: str, value: str, example: str, **fields: object) -> None:
        super().__init__(message, field=field, value=value, example=example, **fields)
        self.field = field
        self.value = value
        self.example = example


class DurationError(BadInput):
    code = "bad-duration"

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message, field="duration", value=text, example="10m")
        self.text = text

    @property
    def input(self) -> str:
        return self.text


class IntervalParseError(DurationError):
    code = "bad-interval"


class CronParseError(BadInput):
    """`field` is the name of one of the five fields, `fields` (their number is wrong) or `expression`."""

    code = "bad-cron"


class ZoneError(BadInput):
    code = "bad-zone"

    def __init__(self, message: str, value: str, example: str = "Europe/Berlin") -> None:
        super().__init__(message, field="zone", value=value, example=example)


class PhraseError(BadInput):
    """`forms` lists what is understood."""

    code = "bad-phrase"

    def __init__(self, message: str, *, value: str, example: str, forms: tuple[str, ...] = ()) -> None:
        super().__init__(message, field="phrase", value=value, example=example)
        self.forms = forms


class PastError(BadInput):
    code = "in-the-past"


class ScheduleTriggerError(CronError):
    code = "trigger-failed"

    def __init__(self, message: str, *, agent: str, schedule: str) -> None:
        super().__init__(message, agent=agent, schedule=schedule)
        self.agent = agent
        self.schedule = schedule


class AlreadyRunning(CronError):
    code = "already-running"

    def __init__(self) -> None:
        super().__init__("Scheduler is already running")


class SchedulerShutdownError(CronError):
    code = "shutdown"

    def __init__(self, *, timed_out: bool, running: int, after: timedelta) -> None:
        ms = round(after.total_seconds() * 1000)
        what = f"timed out after {ms}ms" if timed_out else f"ended after {ms}ms"
        super().__init__(f"Scheduler shutdown {what} with {running} job(s) still running", running=running, after_ms=ms)
        self.timed_out = timed_out
        self.running = running


class JobNotFound(CronError):
    code = "job-not-found"

    def __init__(self, tenant: str, id: int) -> None:
        super().__init__(f"schedule #{id} not found", tenant=tenant, id=id)
        self.tenant = tenant
        self.id = id


class JobEnded(CronError):
    code = "job-ended"

    def __init__(self, id: int, status: str) -> None:
        super().__init__(f"schedule #{id} has ended ({status}): make it anew", id=id, status=status)
        self.id = id
        self.status = status


class QuotaReached(CronError):
    code = "quota-reached"


class AgentMissing(CronError):
    code = "agent-missing"

    def __init__(self, agent: str) -> None:
        super().__init__(f"there is no agent {quoted(agent)}", agent=agent)
        self.agent = agent


class PermanentFailure(CronError):
    code = "permanent-failure"


class RunTimedOut(CronError):
    code = "run-timed-out"


class RunStopped(CronError):
    code = "run-stopped"
