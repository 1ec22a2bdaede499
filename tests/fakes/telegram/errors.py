"""What the Bot API says when it does not do what it was asked."""

from __future__ import annotations

from typing import Any


class Failure(Exception):
    """An answer that is not ok: the status, the words, and what Telegram calls the response parameters."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"ok": False, "error_code": self.code, "description": self.description}
        return {**body, "parameters": self.parameters} if self.parameters else body


def bad(why: str) -> Failure:
    return Failure(400, f"Bad Request: {why}")


def forbidden(why: str) -> Failure:
    return Failure(403, f"Forbidden: {why}")


def flood(retry_after: int) -> Failure:
    return Failure(429, f"Too Many Requests: retry after {retry_after}", retry_after=retry_after)
