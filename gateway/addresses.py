"""Addresses of servers, as they may stand in settings and in `agents.toml`. Pure."""

from __future__ import annotations

from ipaddress import ip_address
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


def is_ip(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_any(bound: str) -> bool:
    return is_ip(bound) and ip_address(bound).is_unspecified


def is_loopback(bound: str) -> bool:
    return bound.lower() == "localhost" or (is_ip(bound) and ip_address(bound).is_loopback)
