"""What a model does, whatever the wire: a script goes from what was asked to the steps of the answer.

    Asked ──script──> Say, CallTool, Pause, Wait, … ──wire──> events of OpenAI or of Anthropic

A script is a function. `always`, `in_turn` and `rules` make the usual ones. An answer that does not say how it ends
ends well: because of its tool calls if it has any, else because all was said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import trio

Role = Literal["user", "assistant", "tool", "system"]
CHARACTERS_PER_TOKEN = 4


def tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)


# What was asked.


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the model made; ``arguments`` is its JSON as it was written."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a call came to; ``id`` is the call's."""

    id: str
    text: str
    error: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message. The results that answer the calls of one message are one message of the role `tool`."""

    role: Role
    text: str = ""
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()

    @property
    def all_text(self) -> str:
        return "\n".join([*([self.text] if self.text else []), *(result.text for result in self.results)])

    @property
    def characters(self) -> int:
        return len(self.all_text) + sum(len(call.name) + len(call.arguments) for call in self.calls)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that was offered."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. ``number`` counts the server's requests, ``attempt`` those with just these messages; both from one."""

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    stream: bool = False
    max_tokens: int | None = None
    number: int = 1
    attempt: int = 1

    @property
    def last(self) -> Message:
        return self.messages[-1]

    @property
    def last_user(self) -> str:
        """The last text of a person, "" without any."""
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def tokens(self) -> int:
        return tokens(len(self.system) + sum(message.characters for message in self.messages))


# What is answered.


@dataclass(frozen=True, slots=True)
class Say:
    """Text, at once or in pieces of ``chunk`` characters with ``pause_s`` between them."""

    text: str
    chunk: int | None = None
    pause_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CallTool:
    """A call of a tool, its arguments in pieces. ``raw`` is sent in their place, whether it is JSON or not."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    raw: str | None = None
    chunk: int = 8

    @property
    def written(self) -> str:
        return json.dumps(self.arguments) if self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class Begin:
    """Send what comes before the first word. Without it that goes out with the first word."""


@dataclass(frozen=True, slots=True)
class Ping:
    """A sign of life that says nothing."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence; `Pause(math.inf)` never ends."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Silence until the test lets it go on."""

    event: trio.Event


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the connection here, in the middle of whatever it is; with ``reset`` as a crashed machine does."""

    reset: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """End the response well as far as HTTP goes, but without the answer's own end."""


@dataclass(frozen=True, slots=True)
class Status:
    """An error. Before the first word it is the status of the response, later an error within the stream.

    Without a ``body`` there is one as the wire has it, with the ``message``.
    """

    code: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | str | bytes | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Garbage:
    """Bytes in the place of events; with ``bare`` not even HTTP."""

    data: bytes
    bare: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """The end and its reason: `stop`, `length`, `tools` or `refusal`; another word is sent as it is."""

    reason: str = "stop"


@dataclass(frozen=True, slots=True)
class Count:
    """The usage that is told, wherever it stands; None is counted from the length of the texts.

    ``cached`` are those of the ``tokens_in`` that were read from a cache.
    """

    tokens_in: int | None = None
    tokens_out: int | None = None
    cached: int = 0


Step: TypeAlias = Say | CallTool | Begin | Ping | Pause | Wait | Disconnect | Truncate | Status | Garbage | End | Count
Steps: TypeAlias = Sequence[Step]
Script: TypeAlias = Callable[[Asked], Steps]


def always(*steps: Step) -> Script:
    """The same answer to every request."""
    return lambda asked: steps


def in_turn(*answers: Step | Steps) -> Script:
    """The first answer to the first request, and so on; one request too many is an error."""

    def script(asked: Asked) -> Steps:
        if asked.number > len(answers):
            return [Status(500, message=f"the script has {len(answers)} answers, this is request {asked.number}")]
        answer = answers[asked.number - 1]
        return answer if isinstance(answer, Sequence) else [answer]

    return script


@dataclass(frozen=True, slots=True)
class Rule:
    """Steps for requests whose last message matches: a pattern to be found in it, or a question about the request.

    ``role`` is the one that the last message must have, ``attempts`` how many attempts the rule is good for.
    """

    match: str | Callable[[Asked], object]
    steps: Steps
    role: Role | None = None
    attempts: int | None = None

    def fits(self, asked: Asked) -> bool:
        if self.role not in (None, asked.last.role) or (self.attempts is not None and asked.attempt > self.attempts):
            return False
        if isinstance(self.match, str):
            return re.search(self.match, asked.last.all_text) is not None
        return bool(self.match(asked))


def rules(*rules: Rule, otherwise: Script | None = None) -> Script:
    """The steps of the first rule that fits."""

    def script(asked: Asked) -> Steps:
        for rule in rules:
            if rule.fits(asked):
                return rule.steps
        if otherwise is not None:
            return otherwise(asked)
        return [Status(500, message=f"no rule of the script fits {asked.last.all_text!r}")]

    return script
