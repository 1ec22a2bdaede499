"""Records: sessions have one text form, and a message moves only along the drawn lines."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.records import MOVES, DeliveryKey, Incoming, Message, MessageState, SessionKey

parts = st.text(max_size=12) | st.text(alphabet=":%/@+ \n\t\x00é中🦀", max_size=12)
sessions = st.builds(SessionKey, parts, parts, parts, parts, parts, parts, st.integers(min_value=0, max_value=10**12))

TERMINAL = {
    MessageState.DONE,
    MessageState.STOPPED,
    MessageState.DROPPED,
    MessageState.FAILED,
    MessageState.QUARANTINED,
}


def message(state: MessageState = MessageState.ACCEPTED, *, turn: str = "", attempts: int = 0) -> Message:
    session = SessionKey("default", "main", "fake", "", "here")
    incoming = Incoming(DeliveryKey("fake", "", "1"), session, "ann", "hello")
    return Message(7, incoming, datetime(2026, 1, 1, tzinfo=UTC), state, attempts, turn)


@given(sessions)
def test_the_text_form_of_a_session_reads_back(session: SessionKey) -> None:
    """Whatever the parts hold, colons and percent signs included, the text leads back to the same session."""
    assert SessionKey.parse(str(session)) == session


@given(sessions, sessions)
def test_different_sessions_have_different_texts(one: SessionKey, other: SessionKey) -> None:
    """No two sessions share a text form: nobody is answered in another chat. (P11)"""
    assert (str(one) == str(other)) == (one == other)


@given(sessions)
def test_the_text_form_is_seven_parts_on_one_line(session: SessionKey) -> None:
    """Safe for a log line and for a key: exactly six colons, no line end, no control character."""
    text = str(session)
    assert text.count(":") == 6
    assert text.isprintable()


def test_a_usual_session_is_easy_to_read() -> None:
    """What people see most is not disguised."""
    assert str(SessionKey("default", "main", "terminal", "", "local")) == "default:main:terminal::local::0"
    assert str(SessionKey("t", "a", "mail", "me@x.org", "-100 200", "7", 3)) == "t:a:mail:me@x.org:-100 200:7:3"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "a:b:c:d:e:f",
        "a:b:c:d:e:f:",
        "a:b:c:d:e:f:x",
        "a:b:c:d:e:f:-1",
        "a:b:c:d:e:f:1.0",
        "a:b:c:d:e:f:²",
        "a:b:c:d:e:f:1:g",
        "a:b:c:d:e:f:٣",
        "a:b:c:d:e:f: 1",
        "a:b:c:d:e:f:1\n",
    ],
)
def test_what_is_no_session_is_refused_with_an_example(text: str) -> None:
    """The error repeats the input and shows what was expected."""
    with pytest.raises(ValueError, match="is not a session: expected tenant:agent:channel") as caught:
        SessionKey.parse(text)
    assert repr(text) in str(caught.value)


def test_every_state_has_its_moves() -> None:
    """The drawing is complete: no state is missing, and none moves to itself."""
    assert set(MOVES) == set(MessageState)
    assert all(state not in moves for state, moves in MOVES.items())


@pytest.mark.parametrize("state", MessageState)
def test_terminal_means_that_there_is_no_way_on(state: MessageState) -> None:
    """Accepted and running go on, everything else is an end. (P6)"""
    assert state.terminal == (state in TERMINAL)
    assert bool(MOVES[state]) == (state not in TERMINAL)


def test_only_a_run_leads_to_done_and_only_a_shutdown_or_crash_back() -> None:
    """A message is done only after it ran, is dropped only before it ran, and waits again only after running."""
    ways_to = {state: {start for start, moves in MOVES.items() if state in moves} for state in MessageState}
    assert ways_to[MessageState.DONE] == {MessageState.RUNNING}
    assert ways_to[MessageState.DROPPED] == {MessageState.ACCEPTED}
    assert ways_to[MessageState.ACCEPTED] == {MessageState.RUNNING}
    assert ways_to[MessageState.RUNNING] == {MessageState.ACCEPTED}


@pytest.mark.parametrize("start", MessageState)
@pytest.mark.parametrize("end", MessageState)
def test_a_message_makes_legal_moves_only(start: MessageState, end: MessageState) -> None:
    """Along a line it moves; any other move is refused with both ends named."""
    if end in MOVES[start]:
        assert message(start).moved(end).state is end
    else:
        with pytest.raises(ValueError, match=f"message 7 cannot go from {start} to {end}"):
            message(start).moved(end)


def test_a_move_takes_the_message_out_of_its_turn() -> None:
    """Unless told a turn, the moved row has none; its attempts stay counted and all else is the same."""
    before = message(MessageState.RUNNING, turn="turn", attempts=2)
    after = before.moved(MessageState.ACCEPTED)
    assert (after.turn, after.attempts) == ("", 2)
    assert (after.id, after.incoming, after.accepted_at) == (before.id, before.incoming, before.accepted_at)
    assert message().moved(MessageState.RUNNING, turn="t", attempts=1).turn == "t"
