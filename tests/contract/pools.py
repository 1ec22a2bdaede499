"""What the histories are made of: few sessions, keys, turns and spans, so that they meet again and again."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st

from store.pairing import CODE_LASTS, DENIED_FOR, Sender
from store.records import (
    CHAT_LEASE,
    KEEP_BEATS,
    KEEP_READINGS,
    REMEMBER_KEYS,
    USED_LATELY,
    Cursor,
    DeliveryKey,
    Incoming,
    MessageState,
    Note,
    Reading,
    Role,
    Said,
    SessionKey,
    SessionPolicy,
)

CENTURY = timedelta(days=36_500)
MOMENT = timedelta(microseconds=1)
LONGEST_WAIT = timedelta(days=10)

SESSIONS = [
    SessionKey("default", "main", "fake", "bot", "here"),
    SessionKey("default", "main", "fake", "bot", "here", epoch=1),
    SessionKey("default", "main", "fake", "bot", "there", "7\x00"),
    SessionKey("t", "main", "fake", "bot", "here"),
    SessionKey("t", "main", "fake", "", "é:%"),
    SessionKey("u", "main", "fake", "bot", "here"),
]
TENANTS = ["default", "t", "u"]
KEYS = [DeliveryKey("fake", "bot", str(number)) for number in range(9)] + [DeliveryKey("fake", "bot\x00", "0")]
PLACES = [("fake", "bot"), ("fake", "")]
WORKERS = ["w1", "w2"]
NAMES = [CHAT_LEASE, "other"]

texts = st.sampled_from(["", "hello", "a\x00b", "🦀 \ue000\ue002", "two\nlines", "x" * 3000])
sessions = st.sampled_from([*SESSIONS[:1] * 4, *SESSIONS])
usual_sessions = st.sampled_from([*SESSIONS[:1] * 6, *SESSIONS])
tenants = st.sampled_from(TENANTS)
workers = st.sampled_from(WORKERS)
digests = st.sampled_from(["d1", "d2", "d3"])
views = st.sampled_from([*[0] * 10, 1, 2, None, "other"])
turns = st.sampled_from(["t1", "t1", "t1", "t2", ""])
pick = st.sampled_from([0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6])
picks = st.lists(pick, max_size=4)
some = st.sampled_from([[0], [0, 1], [1, 0], [0, 2, 1]])
troubles = st.lists(pick, min_size=1, max_size=2)
senders = st.sampled_from([None, None, "ann", "bob"])
limits = st.sampled_from([0, 1, 2, 3, 100])
figures = st.sampled_from([None, None, 0.0, 0.25, 1.0])
ends = st.sampled_from([*[MessageState.DONE] * 3, *MessageState])
people = st.builds(Sender, st.just("fake"), st.sampled_from(["bot", "bot", "b\x00t"]), st.sampled_from("123456"))
"""More than may knock at once."""
codes = st.sampled_from(["0", "1", "2", "0again", "c", "d", "e\x00"])
code_spans = st.sampled_from([MOMENT, CODE_LASTS - MOMENT, CODE_LASTS, CODE_LASTS / 2, DENIED_FOR - MOMENT, DENIED_FOR])
spans = st.sampled_from(
    [
        MOMENT,
        timedelta(seconds=30),
        USED_LATELY,
        timedelta(hours=1),
        timedelta(days=3),
        REMEMBER_KEYS - MOMENT,
        KEEP_BEATS,
        KEEP_READINGS,
    ]
)
waits = st.sampled_from([REMEMBER_KEYS - MOMENT, REMEMBER_KEYS, REMEMBER_KEYS + MOMENT])
leases = st.sampled_from([timedelta(seconds=30), timedelta(hours=1), timedelta(days=10), CENTURY])
incoming = st.builds(
    Incoming,
    key=st.sampled_from(KEYS),
    session=usual_sessions,
    sender=st.sampled_from(["ann", "bob"]),
    text=texts,
    group=st.booleans(),
    admin=st.booleans(),
    control=st.sampled_from([False, False, False, True]),
)
cursors = st.none() | st.builds(
    lambda place, position: Cursor(place[0], place[1], position),
    st.sampled_from(PLACES),
    st.integers(min_value=-2, max_value=9),
)
notes = st.lists(st.builds(Note, usual_sessions, texts, urgent=st.booleans()), max_size=3)
data = st.sampled_from([{}, {"a": [1, None, 2.5, {"b": "\x00"}]}, {"": True, "\x00": "🦀"}])
said = st.lists(st.builds(Said, st.sampled_from(Role), texts, data), max_size=3)
policies = st.builds(
    SessionPolicy,
    mode=st.sampled_from([None, "steer", "collect"]),
    cap=st.sampled_from([None, 1, 9]),
    drop=st.sampled_from([None, "new"]),
    debounce_ms=st.sampled_from([None, 0]),
    max_concurrent=st.sampled_from([None, 2]),
    zone=st.sampled_from([None, "Europe/Berlin"]),
)
readings = st.builds(
    Reading,
    workers,
    st.integers(min_value=0, max_value=3),
    st.integers(min_value=0, max_value=3),
    st.sampled_from([None, 0.0, 12.625]),
    st.sampled_from([None, 300.1]),
    data,
)
