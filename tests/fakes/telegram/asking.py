"""The other methods: who is who, files, menus, and what the bot does without writing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from telegram.constants import ChatAction, ReactionEmoji

from tests.fakes.telegram.errors import bad
from tests.fakes.telegram.menus import read_scope
from tests.fakes.telegram.people import member_json
from tests.fakes.telegram.room import GENERAL, Action
from tests.fakes.telegram.sending import find_chat, present, thread, writable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.fakes.telegram.chat import Chat
    from tests.fakes.telegram.message import Message
    from tests.fakes.telegram.request import Request
    from tests.fakes.telegram.world import World

ACTIONS = frozenset(action.value for action in ChatAction)
REACTIONS = frozenset(emoji.value for emoji in ReactionEmoji)
FULL = {"accent_color_id": 0, "max_reaction_count": 11}
GIFTS = dict.fromkeys(
    ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels"), False
)


def get_me(world: World, request: Request) -> dict[str, Any]:
    told = {"can_join_groups": True, "can_read_all_group_messages": not world.privacy, "supports_inline_queries": False}
    return {**world.bot.json, **told, "can_connect_to_business": False, "has_main_web_app": False}


def get_chat(world: World, request: Request) -> dict[str, Any]:
    chat = present(world, request)
    return {**chat.json, **FULL, "accepted_gift_types": GIFTS}


def get_chat_member(world: World, request: Request) -> dict[str, Any]:
    chat = present(world, request)
    person = world.people.get(request.given.number("user_id"))
    if person is None:
        raise bad("invalid user_id specified")
    return chat.member(person)


def get_chat_administrators(world: World, request: Request) -> list[dict[str, Any]]:
    chat = present(world, request)
    if chat.private:
        raise bad("there are no administrators in the private chat")
    told = [member_json(person, "creator") for person in chat.stands("creator")]
    told += [member_json(person, "administrator") for person in chat.stands("administrator")]
    return told + ([chat.member(world.bot)] if chat.bot_is == "administrator" else [])


def get_chat_member_count(world: World, request: Request) -> int:
    return len(present(world, request).members) + 1


def leave_chat(world: World, request: Request) -> bool:
    present(world, request).bot_is = "left"
    world.note()
    return True


def get_file(world: World, request: Request) -> dict[str, Any]:
    return world.files.told(str(request.given.get("file_id", "")))


def set_my_commands(world: World, request: Request) -> bool:
    commands = request.given.structure("commands", list, [])
    world.menus.set(*menu_of(world, request), commands)
    world.note()
    return True


def get_my_commands(world: World, request: Request) -> list[dict[str, Any]]:
    return world.menus.get(*menu_of(world, request))


def delete_my_commands(world: World, request: Request) -> bool:
    world.menus.delete(*menu_of(world, request))
    world.note()
    return True


def menu_of(world: World, request: Request) -> tuple[tuple[str, int | None, int | None], str]:
    scope = read_scope(request.given.structure("scope", dict, {}))
    if scope[1] is not None:
        find_chat(world, scope[1])
    return scope, str(request.given.get("language_code", ""))


def send_chat_action(world: World, request: Request) -> bool:
    """Here, and only here, the General topic has a number."""
    action = request.given.get("action")
    if action not in ACTIONS:
        raise bad("wrong parameter action in request")
    chat = writable(world, request)
    number = request.given.get("message_thread_id")
    place = number if chat.forum and number == GENERAL else thread(chat, request)
    chat.actions.append(Action(world.now(), action, place))
    world.note()
    return True


def set_message_reaction(world: World, request: Request) -> bool:
    chat = present(world, request)
    message = chat.find(request.given.number("message_id"))
    if message is None:
        raise bad("message to react not found")
    reactions = request.given.structure("reaction", list, [])
    if len(reactions) > 1:
        raise bad("REACTIONS_TOO_MANY")
    if any(reaction.get("emoji") not in REACTIONS for reaction in reactions):
        raise bad("REACTION_INVALID")
    message.reactions = [reaction["emoji"] for reaction in reactions]
    world.note()
    return True


def delete_message(world: World, request: Request) -> bool:
    chat = present(world, request)
    message = chat.find(request.given.number("message_id"))
    if message is None:
        raise bad("message to delete not found")
    if not deletable(chat, message):
        raise bad("message can't be deleted")
    chat.remove(message)
    return True


def deletable(chat: Chat, message: Message) -> bool:
    return message.by_bot or chat.private or chat.bot_is == "administrator"


def delete_messages(world: World, request: Request) -> bool:
    """Those that cannot be found are passed over."""
    chat = present(world, request)
    for number in request.given.structure("message_ids", list, []):
        message = chat.find(int(number))
        if message is not None and deletable(chat, message):
            chat.remove(message)
    return True


def answer_callback_query(world: World, request: Request) -> bool:
    press = world.presses.get(str(request.given.get("callback_query_id")))
    if press is None or press.expired:
        raise bad("query is too old and response timeout expired or query ID is invalid")
    if len(str(request.given.get("text", ""))) > 200:
        raise bad("MESSAGE_TOO_LONG")
    press.answers.append(dict(request.parameters))
    world.note()
    return True


def nothing(world: World, request: Request) -> bool:
    return True


METHODS: Mapping[str, Callable[[World, Request], Any]] = {
    "getme": get_me,
    "getchat": get_chat,
    "getchatmember": get_chat_member,
    "getchatadministrators": get_chat_administrators,
    "getchatmembercount": get_chat_member_count,
    "leavechat": leave_chat,
    "getfile": get_file,
    "setmycommands": set_my_commands,
    "getmycommands": get_my_commands,
    "deletemycommands": delete_my_commands,
    "sendchataction": send_chat_action,
    "setmessagereaction": set_message_reaction,
    "deletemessage": delete_message,
    "deletemessages": delete_messages,
    "answercallbackquery": answer_callback_query,
    "logout": nothing,
    "close": nothing,
}
