"""A message: what a person sees of it now, and every form that it had."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.fakes.telegram.files import KINDS
from tests.fakes.telegram.text import part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.fakes.telegram.files import File
    from tests.fakes.telegram.text import Entity


@dataclass(frozen=True, slots=True)
class Button:
    text: str
    data: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """A message from one send or edit to the next; ``request`` is the number of the request that made it."""

    at: float
    text: str
    entities: tuple[Entity, ...]
    buttons: tuple[tuple[Button, ...], ...]
    request: int | None = None


@dataclass(slots=True, eq=False)
class Message:
    """``json`` is how it is told to the bot. The times ``at`` are those of the double's clock."""

    chat_id: int
    json: dict[str, Any]
    at: float
    by_bot: bool
    file: File | None = None
    versions: list[Version] = field(default_factory=list)
    reactions: list[str] = field(default_factory=list)
    """What the bot put on it."""
    deleted_at: float | None = None

    def __repr__(self) -> str:
        return f"<message {self.id} in {self.chat_id} by {'the bot' if self.by_bot else self.sender_id}: {self.text!r}>"

    @property
    def id(self) -> int:
        return int(self.json["message_id"])

    @property
    def sender_id(self) -> int | None:
        sender: int | None = self.json.get("from", {}).get("id")
        return sender

    @property
    def text(self) -> str:
        """The text, or the caption of something else."""
        return str(self.json.get("text", self.json.get("caption", "")))

    @property
    def kind(self) -> str:
        """What it is: `text`, `photo`, …, or `service`."""
        return next((kind for kind in ("text", *KINDS) if kind in self.json), "service")

    @property
    def entities(self) -> list[Entity]:
        return list(self.json.get("entities", self.json.get("caption_entities", ())))

    @property
    def marked(self) -> list[tuple[str, str]]:
        """The entities as kind and covered text."""
        return [(entity["type"], part(self.text, entity)) for entity in self.entities]

    @property
    def buttons(self) -> tuple[tuple[Button, ...], ...]:
        rows = self.json.get("reply_markup", {}).get("inline_keyboard", ())
        return tuple(tuple(Button(b["text"], b.get("callback_data"), b.get("url")) for b in row) for row in rows)

    @property
    def reply_to(self) -> int | None:
        """The message that it answers; the first one of its topic is not counted, though the bot is told of it."""
        answered = self.json.get("reply_to_message", {})
        number: int | None = answered.get("message_id")
        return None if "forum_topic_created" in answered else number

    @property
    def thread(self) -> int | None:
        return self.json.get("message_thread_id")

    @property
    def edited(self) -> bool:
        return len(self.versions) > 1

    @property
    def deleted(self) -> bool:
        return self.deleted_at is not None

    @property
    def last_at(self) -> float:
        """When it came to look as it does."""
        return self.versions[-1].at if self.versions else self.at

    def button(self, name: str) -> Button:
        """The button with that text or data, of those that it has now or had."""
        for buttons in [self.buttons, *(version.buttons for version in reversed(self.versions))]:
            for button in (button for row in buttons for button in row):
                if name in (button.text, button.data):
                    return button
        raise LookupError(f"{self} never had a button {name!r}, it has {self.buttons}")

    def note(self, at: float, request: int | None = None) -> None:
        """Its present form becomes a part of its history."""
        self.versions.append(Version(at, self.text, tuple(self.entities), self.buttons, request))


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]
