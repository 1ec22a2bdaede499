"""What went wrong between here and a model's server, told once for every SDK. No text ever holds the key.

key refused, model unknown, request refused ──> AgentError: a person has to do something
conversation too long ───────────────────────> ContextTooLong
overloaded, failing, unreachable, broken off ─> ModelTrouble: worth another try
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gateway.agents.models import ContextTooLong, ModelTrouble
from gateway.protocols import AgentError
from gateway.redaction import SHORT, STARS, Redactor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr

LONGEST = 200
SHOWN_END = 4
"""So many last characters of a key are what servers mostly show of it."""

_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size)|prompt is too long|too many tokens|maximum context|input is too long",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"insufficient_quota|credit balance|billing|exceeded your current quota", re.IGNORECASE)
# What stands in an error that comes in the middle of a stream, whose own status was 200.
_KINDS: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_PASSING = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class Server:
    """Whom an agent asks, as far as messages need to know."""

    model: str
    address: str
    key: SecretStr | None
    key_name: str

    @property
    def place(self) -> str:
        try:
            parts = urlsplit(self.address)
            return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
        except ValueError:
            return "its address"

    def told(self, text: str) -> str:
        """The server's own words, on one line, cut short, without the key: they go to other agents and their models."""
        secret = self.key.get_secret_value() if self.key is not None else ""
        line = " ".join(without_ends(secret, Redactor(secret)(text)).split())
        return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def without_ends(secret: str, text: str) -> str:
    """Servers repeat keys with stars in their middle; what is left of the key is taken out too."""
    for length in range(len(secret) - 1, SHORT - 1, -1):
        text = text.replace(secret[:length], STARS).replace(secret[-length:], STARS)
    if len(secret) >= SHORT:
        text = re.sub(rf"({re.escape(STARS)}[*.…]*){re.escape(secret[-SHOWN_END:])}(?!\w)", r"\1", text)
    return text


def unreachable(server: Server) -> ModelTrouble:
    return ModelTrouble(f"the model's server at {server.place} cannot be reached")


def too_slow(server: Server) -> ModelTrouble:
    return ModelTrouble(f"the model's server at {server.place} does not answer")


def broken_off() -> ModelTrouble:
    return ModelTrouble("the model's server ended its answer in the middle")


def not_understood() -> ModelTrouble:
    return ModelTrouble("the model's server answers with something that is not understood")


def refusal(server: Server, status: int, kind: str, words: str, headers: Mapping[str, str]) -> Exception:
    """What an answer with an error means; `kind` is the server's own name for it, if it has one."""
    status = _KINDS.get(kind, status) if status < 400 else status
    told = server.told(words)
    if status in (401, 403):
        return AgentError(f"the model's server refuses the key ({status}): check {server.key_name}")
    if status == 402 or _NO_CREDIT.search(f"{kind} {words}"):
        return AgentError(f"the account with the model's server has no credit left ({status}): {told}")
    if status == 413 or (status == 400 and _TOO_LONG.search(f"{kind} {words}")):
        return ContextTooLong("the conversation is too long for the model: begin a new one, or say less at once")
    if status == 404:
        return AgentError(f"the model's server does not know {server.model} (404): check the model and base_url")
    if status in _PASSING or status >= 500 or status < 400:
        return ModelTrouble(_passing(status), retry_after_s=retry_after_s(headers))
    return AgentError(f"the model's server refuses the request ({status}): {told}")


def _passing(status: int) -> str:
    if status in (429, 503, 529):
        return f"the model's server is overloaded ({status})"
    if status < 400:
        return "the model's server failed in the middle of its answer"
    return f"the model's server failed ({status})"


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long the server wants to be left alone; a date, which hardly any server sends, counts as nothing."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value := headers.get(name, "").strip()):
            return float(value) * unit
    return None
