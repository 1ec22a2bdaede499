"""Addresses of servers, as they may stand in settings and in `agents.toml`. Pure."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

EXPECTED = "expected http:// or https:// with a host, without a name or password in it"


def is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username and parts.port != 0
    except ValueError:
        return False


def checked(text: str) -> str:
    if not is_address(text):
        raise ValueError(EXPECTED)
    return text


ServerAddress = Annotated[str, AfterValidator(checked)]
