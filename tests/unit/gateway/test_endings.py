"""Ends in words: every end has a state that can be reached and a sentence, unless a stop has already answered."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway.endings import Ending, quoted, words
from gateway.plain import one_line
from scheduler import End, Outcome, Policy, Reason
from store.records import MOVES, DeliveryKey, Incoming, Message, MessageState, SessionKey

SESSION = SessionKey("default", "main", "fake", "", "here")
SAID = "please water\nthe plants in the kitchen and on the balcony"
SHORT = "please water the plants in the kitchen…"


def ending(outcome: Outcome, text: str = SAID, cap: int = 10) -> Ending:
    message = Message(1, Incoming(DeliveryKey("fake", "", "1"), SESSION, "ann", text), datetime(2026, 1, 1, tzinfo=UTC))
    return Ending(message, outcome, Policy(cap=cap, timeout_s=600.0), lambda number: None)


def said_of(one: Ending) -> tuple[MessageState, str]:
    return words(one, quoted([one.message.text]))


@pytest.mark.parametrize(
    ("outcome", "state", "text"),
    [
        (
            Outcome(End.DROPPED),
            MessageState.DROPPED,
            f'Dropped "{SHORT}": 10 newer messages were waiting. Send it again later.',
        ),
        (
            Outcome(End.REFUSED),
            MessageState.DROPPED,
            f'Not taken: "{SHORT}". 10 messages wait already; send it again later.',
        ),
        (
            Outcome(End.TIMED_OUT, reason=Reason.TIMEOUT, run=1),
            MessageState.FAILED,
            f'Gave up on "{SHORT}" after 600 s, the longest a run may take.',
        ),
        (
            Outcome(End.FAILED, error=OSError("no water\n  at all"), run=1),
            MessageState.FAILED,
            f'"{SHORT}" did not work: no water at all',
        ),
        (
            Outcome(End.CANCELLED, reason=Reason.INTERRUPTED, run=1),
            MessageState.STOPPED,
            f'Stopped "{SHORT}": your newer message took its place.',
        ),
        (Outcome(End.CANCELLED, reason=Reason.STOPPED, run=1), MessageState.STOPPED, ""),
    ],
    ids=["dropped", "refused", "timeout", "failed", "interrupted", "stopped"],
)
def test_every_end_has_its_words(outcome: Outcome, state: MessageState, text: str) -> None:
    """The sender learns which message it was and why; only a stop is silent, its answer says it all. (P6, lesson 16)"""
    assert said_of(ending(outcome)) == (state, text)


@pytest.mark.parametrize(
    ("end", "text"),
    [(End.DROPPED, "1 newer message was waiting"), (End.REFUSED, "1 message waits already")],
)
def test_one_waiting_message_is_told_in_the_singular(end: End, text: str) -> None:
    """With a cap of one the words fit the number."""
    assert text in said_of(ending(Outcome(end), cap=1))[1]


@pytest.mark.parametrize("end", [End.DROPPED, End.REFUSED])
def test_what_never_ran_ends_in_a_state_that_it_can_reach(end: End) -> None:
    """A dropped message goes from accepted to its end in one move."""
    state, _ = said_of(ending(Outcome(end)))
    assert state in MOVES[MessageState.ACCEPTED]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad\n\tthing "), "bad thing"),
        (ValueError(), "ValueError"),
        (TimeoutError(), "TimeoutError"),
        (ValueError("   "), "ValueError"),
        (ValueError("x" * 5000), "x" * 200),
        (KeyError("name"), "'name'"),
    ],
)
def test_an_error_is_told_in_one_short_line(error: BaseException, text: str) -> None:
    """No traceback, no second line, no novel; an error without words gives its name."""
    assert one_line(error) == text


def test_an_error_of_several_tasks_is_told_by_what_went_wrong() -> None:
    """A person is told about the cause, not about the nursery it came through."""
    error = ExceptionGroup("Exceptions from Trio nursery (1 sub-exception)", [ValueError("no water")])
    assert one_line(error) == "no water"
    nested = ExceptionGroup("outer", [ExceptionGroup("inner", [ValueError("no water")])])
    assert one_line(nested) == "no water"
