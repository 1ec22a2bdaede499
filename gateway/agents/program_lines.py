"""What a program writes, taken apart: plain text, or JSON lines that are answered. Bounds on everything.

What comes first decides: text that does not begin with a brace is plain from its first piece on; a brace waits for the
end of its line, which is an object with a "type" or plain text too.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from gateway.agents.models import clean
from gateway.protocols import AgentError, Usage

if TYPE_CHECKING:
    from gateway.protocols import AgentContext

LARGEST_ANSWER = 1_000_000
LONGEST_LINE = 1_000_000
MOST_CALLS = 32
Sending = trio.MemorySendChannel[dict[str, object]]


class Conversation:
    """What was said so far by one program, and what it is told."""

    most_waiting = 4 * MOST_CALLS

    def __init__(self, context: AgentContext) -> None:
        self._context = context
        self._plain: bool | None = None
        """None: nothing has decided yet."""
        self._buffer = ""
        self._pieces: list[str] = []
        self._size = 0
        self._whole: str | None = None
        self._calls = 0
        self.heard: list[str] = []
        """What the person has added, as far as the program has asked for it."""

    @property
    def answer(self) -> str:
        return "".join(self._pieces) if self._whole is None else self._whole

    async def hear(self, text: str, send: Sending, nursery: trio.Nursery) -> None:
        """The next piece of its output."""
        self._buffer += text
        if self._plain is None:
            self._decide()
        if self._plain:
            self._piece(self._take_all())
        elif self._plain is False:
            await self._lines(send, nursery)

    def end(self) -> None:
        """No more will come; a last line needs no line end."""
        if self._plain is None and self._buffer.strip():
            self._plain = _object(self._buffer) is None
        if self._plain:
            self._piece(self._take_all())
        elif self._buffer.strip():
            self._answered_nowhere(self._take_all())

    def _decide(self) -> None:
        start = self._buffer.lstrip()
        if not start:
            self._bounded(self._take_all())  # blanks before the first word, which nobody misses
        elif not start.startswith("{"):
            self._plain = True
        elif "\n" in start or len(start) > LONGEST_LINE:
            self._plain = _object(start.partition("\n")[0]) is None
            self._buffer = self._buffer if self._plain else start

    async def _lines(self, send: Sending, nursery: trio.Nursery) -> None:
        *lines, self._buffer = self._buffer.split("\n")
        for line in lines:
            if line.strip():
                await self._line(line, send, nursery)
        if len(self._buffer) > LONGEST_LINE:
            raise AgentError(f"the program wrote a line of more than {LONGEST_LINE} characters")

    async def _line(self, line: str, send: Sending, nursery: trio.Nursery) -> None:
        message = _understood(line)
        if message["type"] == "tool":
            await self._tool(message, send, nursery)
        elif message["type"] == "steering":
            texts = await self._context.steering()
            self.heard += texts
            await _tell(send, {"type": "steering", "texts": list(texts)})
        else:
            self._take(message)

    def _answered_nowhere(self, line: str) -> None:
        message = _understood(line)
        if message["type"] not in ("tool", "steering"):
            self._take(message)

    def _take(self, message: dict[str, object]) -> None:
        kind, text = message["type"], message.get("text", "")
        if kind == "usage":
            self._context.spend(Usage(_count(message, "tokens_in"), _count(message, "tokens_out")))
            return
        if not isinstance(text, str):
            raise AgentError(f"the program wrote {kind} without a text")
        if kind == "text":
            self._piece(text)
        elif kind == "show":
            self._context.show(text)
        elif kind == "answer":
            self._whole = self._bounded(text)
        elif kind == "error":
            raise AgentError(" ".join(text.split())[:500] or "the program gave up and did not say why")
        else:
            raise AgentError(f"the program wrote a line of unknown type {str(kind)[:40]!r}")

    async def _tool(self, message: dict[str, object], send: Sending, nursery: trio.Nursery) -> None:
        call_id, name, arguments = message.get("id"), message.get("name"), clean(message.get("arguments", {}))
        if not isinstance(name, str) or arguments is None:
            wrong = "expected a name and arguments that are an object"
            await _tell(send, {"type": "result", "id": call_id, "ok": False, "text": wrong})
        elif self._calls >= MOST_CALLS:
            wrong = f"at most {MOST_CALLS} tools can be called at once"
            await _tell(send, {"type": "result", "id": call_id, "ok": False, "text": wrong})
        else:
            self._calls += 1
            nursery.start_soon(self._call, call_id, name, arguments, send)

    async def _call(self, call_id: object, name: str, arguments: dict[str, object], send: Sending) -> None:
        result = await self._context.call(name, arguments)
        self._calls -= 1
        await _tell(send, {"type": "result", "id": call_id, "ok": result.ok, "text": result.text})

    def _piece(self, text: str) -> None:
        if text:
            self._pieces.append(self._bounded(text))
            self._context.show(text)

    def _bounded(self, text: str) -> str:
        self._size += len(text)
        if self._size > LARGEST_ANSWER:
            raise AgentError(f"the program answered with more than {LARGEST_ANSWER} characters")
        return text

    def _take_all(self) -> str:
        text, self._buffer = self._buffer, ""
        return text


async def _tell(send: Sending, message: dict[str, object]) -> None:
    # Its input may be closed: it asked for what it cannot be given.
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await send.send(message)


def _object(line: str) -> dict[str, object] | None:
    """The object that a line is, if it has a type."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("type"), str) else None


def _understood(line: str) -> dict[str, object]:
    message = _object(line)
    if message is None:
        raise AgentError(f"the program wrote a line that is no JSON object with a type: {line.strip()[:100]!r}")
    return message


def _count(message: dict[str, object], key: str) -> int:
    value = message.get(key, 0)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise AgentError(f"the program wrote usage with {key} that is no whole number")
