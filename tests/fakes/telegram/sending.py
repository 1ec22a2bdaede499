"""The methods that write in a chat, and the checks that all of them share.

The order is the server's: markup is read, the chat is looked up, the rest is checked, then the limits have their say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.fakes.telegram.errors import Failure, bad, forbidden
from tests.fakes.telegram.files import KINDS, check_upload
from tests.fakes.telegram.markup import parse
from tests.fakes.telegram.room import Draft
from tests.fakes.telegram.text import settle, units

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.fakes.telegram.chat import Chat
    from tests.fakes.telegram.files import File
    from tests.fakes.telegram.message import Message
    from tests.fakes.telegram.request import Request
    from tests.fakes.telegram.text import Entity
    from tests.fakes.telegram.world import World

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
LONGEST_DATA = 64
MOST_BUTTONS = 100
ALBUM = range(2, 11)


def send_message(world: World, request: Request) -> dict[str, Any]:
    parsed = marked_up(request, "text", "entities")
    chat = writable(world, request)
    text = settled(parsed)
    return write(world, chat, request, text).json


def settled(parsed: tuple[str, Sequence[Entity]]) -> dict[str, Any]:
    text, entities = settle(*parsed)
    if not text:
        raise bad("message text is empty")
    if units(text) > LONGEST_TEXT:
        raise bad("message is too long")
    return {"text": text, "entities": entities or None}


def captioned(parsed: tuple[str, Sequence[Entity]]) -> dict[str, Any]:
    text, entities = settle(*parsed)
    if units(text) > LONGEST_CAPTION:
        raise bad("message caption is too long")
    return {"caption": text or None, "caption_entities": entities or None}


def marked_up(request: Request, name: str, entities: str) -> tuple[str, Sequence[Entity]]:
    """The text with its entities, whichever way they came."""
    text, mode = str(request.given.get(name, "")), request.given.get("parse_mode")
    if mode:
        return parse(text, mode)
    return text, request.given.structure(entities, list, [])


def write(world: World, chat: Chat, request: Request, content: Mapping[str, Any], file: File | None = None) -> Message:
    """A new message of the bot."""
    placed = chat.placed(answered(chat, request), thread(chat, request))
    markup = keyboard(request)
    world.pace.take(chat.id, group=not chat.private)
    return put(world, chat, request, {**placed, **content, **markup}, file)


def put(world: World, chat: Chat, request: Request, content: Mapping[str, Any], file: File | None = None) -> Message:
    told = {key: value for key, value in content.items() if value is not None}
    message = chat.add({**chat.sender(world.bot), **told}, by_bot=True, request=request.number)
    message.file = file
    return message


def writable(world: World, request: Request) -> Chat:
    chat = present(world, request)
    if not chat.may_write:
        raise bad("not enough rights to send text messages to the chat")
    return chat


def present(world: World, request: Request) -> Chat:
    """The chat, if the bot has any business in it."""
    chat = find_chat(world, request.given.get("chat_id"))
    if chat.upgraded_to is not None:
        told = "group chat was upgraded to a supergroup chat"
        raise Failure(400, f"Bad Request: {told}", migrate_to_chat_id=chat.upgraded_to)
    if chat.private and not chat.started:
        raise forbidden("bot can't initiate conversation with a user")
    if chat.private and chat.bot_is == "kicked":
        raise forbidden("bot was blocked by the user")
    if chat.bot_is == "kicked":
        raise forbidden(f"bot was kicked from the {chat.kind} chat")
    if chat.bot_is == "left":
        raise forbidden(f"bot is not a member of the {chat.kind} chat")
    return chat


def find_chat(world: World, key: Any) -> Chat:
    if key in (None, ""):
        raise bad("chat_id is empty")
    found = world.chats.get(key) if isinstance(key, int) else named(world, str(key))
    if found is None:
        raise bad("chat not found")
    return found


def named(world: World, name: str) -> Chat | None:
    """Groups and channels may have a name; persons cannot be found by theirs."""
    public = (chat for chat in world.chats.values() if chat.username and not chat.private)
    return next((chat for chat in public if f"@{chat.username}".lower() == name.lower()), None)


def thread(chat: Chat, request: Request) -> int | None:
    """General is a topic without a thread: who names it is told that there is none."""
    number = request.given.number("message_thread_id")
    if not number:
        return None
    topic = chat.topics.get(number)
    if topic is None or topic.deleted:
        raise bad("message thread not found")
    if topic.closed and chat.bot_is != "administrator":
        raise bad("TOPIC_CLOSED")
    return number


def answered(chat: Chat, request: Request) -> Message | None:
    """The message that is replied to."""
    given = dict(request.given.structure("reply_parameters", dict, {}))
    number = given.get("message_id", request.given.get("reply_to_message_id"))
    if number is None:
        return None
    message = chat.find(int(number))
    if message is None and not given.get(
        "allow_sending_without_reply", request.given.get("allow_sending_without_reply")
    ):
        raise bad("message to be replied not found")
    return message


def keyboard(request: Request) -> dict[str, Any]:
    """Inline buttons, checked; a keyboard of the other kind is no part of the message."""
    markup = request.given.structure("reply_markup", dict, {})
    if "inline_keyboard" not in markup:
        return {}
    rows = [[checked_button(button) for button in row] for row in markup["inline_keyboard"] if row]
    if sum(len(row) for row in rows) > MOST_BUTTONS:
        raise bad("reply markup is too long")
    return {"reply_markup": {"inline_keyboard": rows}} if rows else {}


def checked_button(button: Any) -> dict[str, Any]:
    if not isinstance(button, dict) or not button.get("text"):
        raise bad('can\'t parse inline keyboard button: Field "text" must be of type String')
    if not {"callback_data", "url", "web_app", "copy_text", "switch_inline_query", "login_url"} & button.keys():
        raise bad("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
    if "callback_data" in button and not 1 <= len(str(button["callback_data"]).encode()) <= LONGEST_DATA:
        raise bad("BUTTON_DATA_INVALID")
    return button


# Files.


def send_file(kind: str) -> Callable[[World, Request], dict[str, Any]]:
    def send(world: World, request: Request) -> dict[str, Any]:
        parsed = marked_up(request, "caption", "caption_entities")
        chat = writable(world, request)
        caption = captioned(parsed)
        file = upload(world, request, kind, request.given.get(kind, kind if kind in request.given.files else None))
        return write(world, chat, request, {**carried(file), **caption}, file).json

    return send


def carried(file: File) -> dict[str, Any]:
    told = {file.kind: file.told}
    return {**told, "document": file.told} if file.kind == "animation" else told


def upload(world: World, request: Request, kind: str, value: Any) -> File:
    """A file that came along, by its name, or one that is here already, by its id."""
    if value is None:
        raise bad(f"there is no {kind.replace('_', ' ')} in the request")
    came = request.given.files.get(str(value).removeprefix("attach://"))
    if came is not None:
        check_upload(kind, came.content)
        return world.files.keep(kind, came.content, came.name, came.mime_type)
    if str(value).startswith(("http://", "https://")):
        raise bad("failed to get HTTP URL content")
    return world.files.get(str(value))


def send_media_group(world: World, request: Request) -> list[dict[str, Any]]:
    chat = writable(world, request)
    items = request.given.structure("media", list, [])
    if len(items) not in ALBUM:
        raise bad("there must be 2-10 items in a media group")
    made = []
    for item in items:
        kind = item.get("type")
        if kind not in KINDS:
            raise bad("can't parse InputMedia: type is invalid")
        caption, mode = str(item.get("caption", "")), item.get("parse_mode")
        parsed = parse(caption, mode) if mode else (caption, item.get("caption_entities", []))
        file = upload(world, request, kind, item.get("media"))
        made.append((file, {**carried(file), **captioned(parsed)}))
    placed = chat.placed(answered(chat, request), thread(chat, request))
    world.pace.take(chat.id, group=not chat.private, number=len(made))
    album = {**placed, "media_group_id": str(9_000_000_000 + request.number)}
    return [put(world, chat, request, {**album, **content}, file).json for file, content in made]


def send_message_draft(world: World, request: Request) -> bool:
    parsed = marked_up(request, "text", "entities")
    chat = writable(world, request)
    if not chat.private:
        raise bad("message drafts can be sent only to private chats")
    if not request.given.number("draft_id"):
        raise bad("draft_id must be non-zero")
    text, entities = settle(*parsed)
    if units(text) > LONGEST_TEXT:
        raise bad("message is too long")
    number = request.given.number("draft_id")
    chat.drafts.append(Draft(world.now(), number, text, tuple(entities), request.given.get("message_thread_id")))
    world.note()
    return True


def own(chat: Chat, request: Request) -> Message:
    """The bot's own message that is to be changed."""
    if "message_id" not in request.parameters:
        raise bad("message identifier is not specified")
    message = chat.find(request.given.number("message_id"))
    if message is None:
        raise bad("message to edit not found")
    if not message.by_bot:
        raise bad("message can't be edited")
    return message


def edit(world: World, chat: Chat, message: Message, request: Request, content: dict[str, Any]) -> dict[str, Any]:
    """What is not given anew is gone, as are the buttons; nothing new is an error."""
    content |= {"reply_markup": None, **keyboard(request)}
    if all(message.json.get(key) == value for key, value in content.items()):
        raise bad(
            "message is not modified: specified new message content and reply markup are exactly the same as a"
            " current content and reply markup of the message"
        )
    world.pace.take(chat.id, group=not chat.private)
    chat.change(message, content, request=request.number, dated=set(content) != {"reply_markup"})
    return message.json


def edit_message_text(world: World, request: Request) -> dict[str, Any]:
    parsed = marked_up(request, "text", "entities")
    chat = present(world, request)
    message = own(chat, request)
    if message.kind != "text":
        raise bad("there is no text in the message to edit")
    return edit(world, chat, message, request, settled(parsed))


def edit_message_caption(world: World, request: Request) -> dict[str, Any]:
    parsed = marked_up(request, "caption", "caption_entities")
    chat = present(world, request)
    message = own(chat, request)
    if message.kind in ("text", "service"):
        raise bad("there is no caption in the message to edit")
    return edit(world, chat, message, request, captioned(parsed))


def edit_message_reply_markup(world: World, request: Request) -> dict[str, Any]:
    chat = present(world, request)
    return edit(world, chat, own(chat, request), request, {})


METHODS: Mapping[str, Callable[[World, Request], Any]] = {
    "sendmessage": send_message,
    "sendmessagedraft": send_message_draft,
    "sendmediagroup": send_media_group,
    "editmessagetext": edit_message_text,
    "editmessagecaption": edit_message_caption,
    "editmessagereplymarkup": edit_message_reply_markup,
    **{f"send{kind.replace('_', '')}": send_file(kind) for kind in KINDS},
}
