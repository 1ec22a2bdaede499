"""Who is let in by the list of numbers. (S2, S3)"""

from __future__ import annotations

import pytest

from gateway.access.doorman import Allowlist, read_allowlist


class Guests:
    """Lets in 9, and has a code for everybody else."""

    async def allowed(self, channel: str, account: str, sender: str) -> str | None:
        return "acme" if sender == "9" else None

    async def knock(self, channel: str, account: str, sender: str, name: str) -> str | None:
        return f"code for {name}"


async def test_an_empty_list_means_nobody() -> None:
    """Without a list and without anybody let in later, everybody is a stranger, and there is no code. (S2)"""
    doorman = Allowlist(read_allowlist(""))
    assert await doorman.allowed("telegram", "42", "7") is None
    assert await doorman.knock("telegram", "42", "7", "Ann") is None


async def test_the_list_lets_in_by_number_and_guests_are_asked_next() -> None:
    """Who is on the list belongs to the default tenant, others to the one that let them in."""
    doorman = Allowlist(read_allowlist("7, -1001,"), Guests())
    tenants = [await doorman.allowed("telegram", "42", number) for number in ("7", "-1001", "9", "8")]
    assert tenants == ["default", "default", "acme", None]
    assert await doorman.knock("telegram", "42", "8", "Ben") == "code for Ben"


@pytest.mark.parametrize("text", ["*", "@ann", "7,@ann", "seven", "7 8", "+7"])
def test_whatever_is_not_a_number_is_refused(text: str) -> None:
    """A name could be somebody else's tomorrow, and a star is everybody. (S2)"""
    with pytest.raises(ValueError, match=r"name|everybody"):
        read_allowlist(text)
