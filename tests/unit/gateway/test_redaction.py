"""No secret survives, wherever it stands in a line and however it is written. (P12, S15, S21)"""

from __future__ import annotations

import html
import json
from base64 import b64encode, urlsafe_b64encode
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.loading import load_settings
from gateway.redaction import STARS, Redactor, in_base64, passwords_in, secrets_of

if TYPE_CHECKING:
    from collections.abc import Callable

BOT = "123456789:AAcanary-Canary_canaryCANARYcanary01"
KEY = "sk-ant-api03-canaryCANARYcanary"

# Without stars, which two secrets side by side would become, and without half characters, which are no text.
CHARACTERS = st.characters(exclude_characters="*", exclude_categories=["Cs"])
SECRETS = st.text(CHARACTERS, min_size=6, max_size=40).filter(lambda text: text.strip() != "")
SURROUNDINGS = st.text(CHARACTERS, max_size=20)

FORMS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "percent": lambda text: quote(text, safe=""),
    "percent, slash kept": quote,
    "percent, lower case": lambda text: quote(text, safe="").replace("%3A", "%3a").replace("%2F", "%2f"),
    "percent, twice": lambda text: quote(quote(text, safe=""), safe=""),
    "form": quote_plus,
    "json": lambda text: json.dumps(text)[1:-1],
    "json with all characters": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "json in json": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "repr": lambda text: repr(text)[1:-1],
    "repr of bytes": lambda text: repr(text.encode())[2:-1],
    "repr in json": lambda text: json.dumps(repr(text)[1:-1])[1:-1],
    "html": html.escape,
}


@pytest.mark.parametrize("form", FORMS)
@given(secret=SECRETS, before=SURROUNDINGS, after=SURROUNDINGS)
def test_no_secret_survives_in_any_form(form: str, secret: str, before: str, after: str) -> None:
    """Whatever stands around it."""
    written = FORMS[form](secret)
    line = Redactor(secret)(before + written + after)
    assert written not in line
    assert STARS in line


@given(secret=SECRETS, user=st.text(CHARACTERS, max_size=9), after=st.text(CHARACTERS, max_size=9))
def test_no_secret_survives_in_base64(secret: str, user: str, after: str) -> None:
    """Basic auth joins it to a name of any length."""
    redact = Redactor(secret)
    for encode in (b64encode, urlsafe_b64encode):
        written = encode(f"{user}:{secret}{after}".encode()).decode()
        line = redact(f"<{written}>")
        assert not any(core in line for core in in_base64(secret))
        assert STARS in line


@given(secrets=st.lists(SECRETS, min_size=1, max_size=4), pieces=st.lists(SURROUNDINGS, min_size=5, max_size=5))
def test_several_secrets_do_not_protect_each_other(secrets: list[str], pieces: list[str]) -> None:
    """One inside another, or overlapping."""
    line = "".join(piece + secret for piece, secret in zip(pieces, secrets * 5, strict=False))
    redacted = Redactor(*secrets)(line)
    assert not any(secret in redacted for secret in secrets)


@given(text=st.text(st.sampled_from("abc xyz\n:/@-0"), max_size=80))
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    """A redactor that knows nothing changes next to nothing: only passwords in addresses."""
    redacted = Redactor()(text)
    assert redacted == text or ("://" in text and "@" in text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"GET https://api.telegram.org/bot{BOT}/getMe", f"GET https://api.telegram.org/bot{STARS}/getMe"),
        (f"GET /bot{BOT.replace(':', '%3A')}/getMe", f"GET /bot{STARS}/getMe"),
        (f"key={KEY} refused", f"key={STARS} refused"),
        ("key sk-proj-0123456789abcdefghij.", f"key {STARS}."),
        ("Authorization: Bearer abc.def-ghi", f"Authorization: Bearer {STARS}"),
        ("'authorization': 'Basic dXNlcjpwYXNzd29yZA=='", f"'authorization': 'Basic {STARS}'"),
        ("'x-api-key': 'whatever it is'", f"'x-api-key': '{STARS} it is'"),
        ("postgresql://me:p%40ss@host/db", f"postgresql://me:{STARS}@host/db"),
        ("postgresql://me:p@ss@host/db", f"postgresql://me:{STARS}@host/db"),
        ("redis://:secret@host", f"redis://:{STARS}@host"),
        ("see http://localhost:8080/x and mail a@b.c", "see http://localhost:8080/x and mail a@b.c"),
        ("the task-force-of-many-people met", "the task-force-of-many-people met"),
    ],
)
def test_what_looks_like_a_secret_goes_although_nobody_named_it(text: str, expected: str) -> None:
    """And nothing else."""
    assert Redactor()(text) == expected


@pytest.mark.parametrize(
    ("secret", "text", "expected"),
    [
        ("pw1", "password pw1, pw1.", "password ***, ***."),
        ("pw1", "pw12 is another word", "pw12 is another word"),
        ("a", "a banana", "*** banana"),
        ("", "nothing", "nothing"),
        ("  ", "two  blanks", "two  blanks"),
    ],
)
def test_a_short_secret_is_a_whole_word(secret: str, text: str, expected: str) -> None:
    """Stars inside other words would tell it."""
    assert Redactor(secret)(text) == expected


def test_a_secret_may_be_added_later() -> None:
    """Keys that are named in agents.toml are read after the log has begun."""
    redact = Redactor()
    assert redact("a-canary-key") == "a-canary-key"
    redact.add("a-canary-key")
    assert redact("a-canary-key") == STARS


def test_the_secrets_of_the_settings_are_known() -> None:
    """All of them, and the password inside of the DSN."""
    environ = {
        "GOCLAW_POSTGRES_DSN": "postgresql://me:p%40ssword@host/db",
        "GOCLAW_OPENAI_API_KEY": "canary-openai",
        "GOCLAW_ANTHROPIC_API_KEY": "canary-anthropic",
    }
    found = set(secrets_of(load_settings(environ, None).settings))
    assert {*environ.values(), "p%40ssword", "p@ssword"} <= found


@pytest.mark.parametrize(
    ("address", "password"),
    [
        ("postgresql://me:p%40ss@host/db", "p@ss"),
        ("postgresql://host/db?user=me&password=p%40ss", "p@ss"),
        ("host=here password=plain user=me", "plain"),
        ("host=here password = 'with \\' quote' user=me", "with ' quote"),
        ("postgresql://me:secret@[::1", "secret"),
    ],
)
def test_a_password_is_found_in_an_address(address: str, password: str) -> None:
    """However it is written there; the general net catches it where the address cannot be read."""
    assert password in set(passwords_in(address)) or password not in Redactor()(address)
