"""The errors of the room: one tree, facts beside the text, texts that can be shown."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cron import errors
from cron.errors import CronError, quoted


def test_every_error_of_the_room_has_one_base_and_its_own_code() -> None:
    """(H19) Programs tell them apart by their code, and none is tried again by itself."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, CronError)]
    assert len({kind.code for kind in kinds}) == len(kinds) > 15
    assert not any(kind.retriable for kind in kinds)


def test_every_error_is_in_the_drawing() -> None:
    """(H19) The tree in the docstring names them all."""
    kinds = [name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, CronError)]
    assert [name for name in kinds if name not in (errors.__doc__ or "")] == []


@pytest.mark.parametrize(
    ("error", "text", "fields"),
    [
        (errors.AlreadyRunning(), "Scheduler is already running", {}),
        (errors.JobNotFound("acme", 99), "schedule #99 not found", {"tenant": "acme", "id": 99}),
        (
            errors.SchedulerShutdownError(timed_out=True, running=2, after=timedelta(seconds=5)),
            "Scheduler shutdown timed out after 5000ms with 2 job(s) still running",
            {"running": 2, "after_ms": 5000},
        ),
        (errors.AgentMissing("ada"), 'there is no agent "ada"', {"agent": "ada"}),
        (
            errors.ScheduleTriggerError("the store is away", agent="ada", schedule="daily"),
            "the store is away",
            {"agent": "ada", "schedule": "daily"},
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, CronError) else "",
)
def test_an_error_says_what_happened_and_carries_the_facts(
    error: CronError, text: str, fields: dict[str, object]
) -> None:
    """(H19) The texts are those of the references."""
    assert str(error) == text
    assert error.fields == fields


@pytest.mark.parametrize(
    ("value", "shown"),
    [("x", '"x"'), ("a\nb\0", '"a\\nb\\x00"'), ("é", '"é"'), ("\ud800", '"\\ud800"'), ("x" * 101, f'"{"x" * 100}…"')],
)
def test_an_input_is_shown_on_one_line_and_not_too_long(value: str, shown: str) -> None:
    """(S) What somebody typed cannot break a log or fill a chat."""
    assert quoted(value) == shown
