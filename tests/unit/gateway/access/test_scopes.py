"""Scopes and the table that uses them."""

from __future__ import annotations

import pytest

from gateway.access.scopes import ABOUT, SCOPES, USUAL, UnknownScope, read_scopes
from gateway.access.tokens import ID_LENGTH, LONGEST, Caller, Doorkeeper, digest_of, new_token
from gateway.clock import utc_now
from gateway.http.table import ACCESS
from store.memory import MemoryStore


def test_scopes_are_read_by_name() -> None:
    """Each once, in their own order, whatever was asked for twice."""
    assert read_scopes(["operator", "read", "read"]) == ("read", "operator")
    assert read_scopes([]) == ()
    assert read_scopes(SCOPES) == SCOPES


@pytest.mark.parametrize("name", ["", "READ", "read ", "all", "*", "x" * 500])
def test_what_is_no_scope_is_told(name: str) -> None:
    """With what there is, and without repeating all of a long one."""
    with pytest.raises(UnknownScope, match="expected read, chat, schedule") as refused:
        read_scopes(["read", name])
    assert len(str(refused.value)) < 200


def test_every_scope_is_explained_and_of_use() -> None:
    """None is without words, none opens nothing, and the usual ones look after nobody else."""
    assert set(ABOUT) == set(SCOPES) == {need for need in ACCESS.values() if need not in ("anybody", "any-token")}
    assert not {"admin", "operator"} & set(USUAL)


def test_what_changes_something_is_not_for_readers() -> None:
    """`read` opens no route that changes anything, and what is open to all is only looked at."""
    for (method, path), need in ACCESS.items():
        if need in ("read", "anybody", "any-token"):
            assert method == "GET" or path == "/v1/schedules/preview"
        if path.startswith(("/v1/tenants", "/v1/workers")) or (path.startswith("/v1/lanes") and method != "GET"):
            assert need == "operator"


def test_a_token_is_known_by_its_beginning_and_kept_as_a_digest() -> None:
    """Nothing else of the secret is in what is kept."""
    kept, secret = new_token("default", "name", ("read",))
    assert kept.id == secret[:ID_LENGTH]
    assert kept.digest == digest_of(secret)
    assert secret[ID_LENGTH:] not in repr(kept)
    assert len({new_token("default", "name", ())[1] for _ in range(100)}) == 100


@pytest.mark.parametrize("secret", ["", " ", "x" * (LONGEST + 1), "ä", "a b", "a\0", "\ud800", "\n"])
async def test_what_can_be_no_secret_is_not_looked_up(secret: str) -> None:
    """It is nobody's."""
    assert await Doorkeeper(MemoryStore(utc_now)).caller(secret) is None


async def test_tokens_of_the_process_are_found_by_what_they_are() -> None:
    """Each is its own caller, in the tenant of the gateway."""
    doorkeeper = Doorkeeper(MemoryStore(utc_now), {"local": "a" * 20, "gateway": "b" * 20})
    found = [await doorkeeper.caller(letter * 20) for letter in "abc"]
    assert [None if one is None else (one.name, one.tenant) for one in found] == [
        ("local", "default"),
        ("gateway", "default"),
        None,
    ]
    assert isinstance(found[0], Caller)
    assert "aaaa" not in repr(doorkeeper.__dict__)
