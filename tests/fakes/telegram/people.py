"""Who writes: persons and bots, and where each stands in a chat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tests.fakes.telegram.words import listed

Status: TypeAlias = Literal["creator", "administrator", "member", "restricted", "left", "kicked"]

RIGHTS = listed(
    "can_manage_chat can_delete_messages can_manage_video_chats can_restrict_members can_promote_members",
    " can_change_info can_invite_users can_post_stories can_edit_stories can_delete_stories can_pin_messages",
)
ALLOWED = listed(
    "can_change_info can_invite_users can_pin_messages can_send_messages can_send_polls can_send_other_messages",
    " can_add_web_page_previews can_manage_topics can_send_audios can_send_documents can_send_photos can_send_videos",
    " can_send_video_notes can_send_voice_notes can_edit_tag",
)


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    first_name: str
    username: str | None = None
    last_name: str | None = None
    language: str | None = None
    is_bot: bool = False

    @property
    def json(self) -> dict[str, Any]:
        told = {"id": self.id, "is_bot": self.is_bot, "first_name": self.first_name, "last_name": self.last_name}
        told |= {"username": self.username, "language_code": self.language}
        return {name: value for name, value in told.items() if value is not None}


ANONYMOUS_ADMIN = Person(1087968824, "Group", "GroupAnonymousBot", is_bot=True)
CHANNEL_BOT = Person(136817688, "Channel", "Channel_Bot", is_bot=True)
TELEGRAM = Person(777000, "Telegram")
"""In whose name a channel's posts appear in its group."""


def member_json(person: Person, status: Status) -> dict[str, Any]:
    """Where a person stands, as `getChatMember` tells it."""
    told: dict[str, Any] = {"user": person.json, "status": status}
    if status in ("creator", "administrator"):
        told["is_anonymous"] = False
    if status == "administrator":
        told |= {"can_be_edited": False, **dict.fromkeys(RIGHTS, True), "can_promote_members": False}
    if status == "restricted":
        told |= {"is_member": True, **dict.fromkeys(ALLOWED, False)}
    if status in ("restricted", "kicked"):
        told["until_date"] = 0
    return told
