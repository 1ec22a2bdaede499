"""The door from outside: what a test beside the process, or a person at the page, does and sees, in JSON.

GET  /                       the page
GET  /control/state?since=7  all that can be seen, as soon as something happened after that version
GET  /control/requests       what the bot asked
POST /control/<verb>         an act; its parameters are members of the body
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import orjson
import trio

from tests.fakes.telegram import trouble as troubles
from tests.fakes.telegram.files import KINDS
from tests.fakes.telegram.room import ACTION_LASTS_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from tests.fakes.telegram.chat import Chat
    from tests.fakes.telegram.message import Message
    from tests.fakes.telegram.server import Answer, BotApi
    from tests.fakes.wire import HttpRequest

PAGE = Path(__file__).with_name("page.html")
LONGEST_WAIT_S = 25.0
TROUBLES = {"refuse": troubles.Refuse, "drop": troubles.Drop, "hang": troubles.Hang, "slow": troubles.Slow}


async def answer(api: BotApi, http: HttpRequest) -> Answer:
    from tests.fakes.telegram.server import Answer

    if http.headers.get("host", "").rpartition(":")[0] not in ("127.0.0.1", "localhost"):
        return Answer(421, orjson.dumps({"error": "this is served on loopback only"}))
    route = (http.method, http.path)
    if route == ("GET", "/"):
        return Answer(200, PAGE.read_bytes(), "text/html; charset=utf-8")
    if route == ("GET", "/control/state"):
        since = int(dict(parse_qsl(http.query)).get("since", -1))
        with trio.move_on_after(LONGEST_WAIT_S):
            await api.until(lambda: api.version > since)
        return Answer(200, orjson.dumps(state(api)))
    if route == ("GET", "/control/requests"):
        return Answer(200, orjson.dumps([request_json(request) for request in api.requests]))
    verb = VERBS.get(http.path.removeprefix("/control/"))
    if http.method != "POST" or verb is None or not http.path.startswith("/control/"):
        return Answer(404, orjson.dumps({"error": f"there is no {http.method} {http.path} here"}))
    if not http.headers.get("content-type", "").startswith("application/json"):
        return Answer(415, orjson.dumps({"error": "the body must be application/json"}))
    try:
        return Answer(200, orjson.dumps(await verb(api, orjson.loads(http.body or b"{}"))))
    except (AttributeError, KeyError, LookupError, TypeError, ValueError) as error:
        return Answer(400, orjson.dumps({"error": f"{type(error).__name__}: {error}"}))


# What is seen.


def state(api: BotApi) -> dict[str, Any]:
    told = {"version": api.version, "bot": api.bot.json, "webhook": api.webhook.info, **api.statistics()}
    told["polling"] = bool(api.open_polls)
    people = [person.json for person in api.people.values() if person is not api.bot]
    return {**told, "people": people, "chats": [chat_json(api, chat) for chat in api.chats.values()]}


def chat_json(api: BotApi, chat: Chat) -> dict[str, Any]:
    topics = [{"id": topic.id, "name": topic.name, "closed": topic.closed} for topic in chat.topics.values()]
    members = [*chat.members] or ([chat.id] if chat.private else [])
    return {
        **chat.json,
        "title": chat.title,
        "members": members,
        "topics": topics,
        "typing": typing(api, chat) if chat.typing else None,
        "draft": chat.drafts[-1].text if chat.drafts and fresh(api, chat) else None,
        "menus": {str(number): api.menu(chat, api.people[number]) for number in members},
        "bot_is": chat.bot_is,
        "upgraded_to": chat.upgraded_to,
        "messages": [message_json(api, message) for message in chat.messages.values()],
    }


def typing(api: BotApi, chat: Chat) -> dict[str, Any]:
    last = chat.actions[-1]
    return {"action": last.action, "thread": last.thread, "left_s": last.at + ACTION_LASTS_S - api.now()}


def fresh(api: BotApi, chat: Chat) -> bool:
    """A draft is seen for thirty seconds, unless the message itself comes before."""
    draft = chat.drafts[-1]
    written = any(message.at > draft.at for message in chat.answers)
    return not written and api.now() < draft.at + 30


def message_json(api: BotApi, message: Message) -> dict[str, Any]:
    versions = [{"at": version.at, "text": version.text} for version in message.versions]
    told = {"by_bot": message.by_bot, "reactions": message.reactions, "deleted": message.deleted, "at": message.at}
    return {**message.json, **told, "versions": versions, "kind": message.kind, "file": file_json(api, message)}


def file_json(api: BotApi, message: Message) -> dict[str, Any] | None:
    if message.kind not in KINDS:
        return None
    carried = message.json[message.kind]
    file = api.files.get((carried[-1] if isinstance(carried, list) else carried)["file_id"])
    return {"name": file.name, "size": len(file.content), "url": f"{api.base_file_url}{api.token}/{file.path}"}


def request_json(request: Any) -> dict[str, Any]:
    names = ("number", "method", "at", "ended", "status", "description", "done", "cut")
    told = {name: getattr(request, name) for name in names}
    return {
        **told,
        "parameters": dict(request.parameters),
        "files": [file.name for file in request.given.files.values()],
    }


# What is done.


async def person(api: BotApi, body: dict[str, Any]) -> Any:
    return api.person(body.pop("id"), body.pop("first_name"), **body).json


async def private(api: BotApi, body: dict[str, Any]) -> Any:
    return api.private(api.people[body["person"]], started=bool(body.get("started"))).json


async def group(api: BotApi, body: dict[str, Any]) -> Any:
    for name in ("members", "admins"):
        body[name] = [api.people[number] for number in body.get(name, ())]
    if "owner" in body:
        body["owner"] = api.people[body["owner"]]
    return api.group(body.pop("id"), body.pop("title"), **body).json


async def says(api: BotApi, body: dict[str, Any]) -> Any:
    """``by`` is a person or a chat; ``files`` are contents in base64 by their kind."""
    chat, by = api.chats[body.pop("chat")], body.pop("by")
    files: dict[str, Any] = {kind: base64.b64decode(content) for kind, content in body.pop("files", {}).items()}
    return (await chat.says(api.chats[by] if by < 0 else api.people[by], **{**body, **files})).json


async def press(api: BotApi, body: dict[str, Any]) -> Any:
    made = await api.chats[body["chat"]].press(body["message"], body["button"], by=api.people[body["by"]])
    return {"id": made.id}


async def press_answer(api: BotApi, body: dict[str, Any]) -> Any:
    made = api.presses[body["id"]]
    return {"answered": made.answered, "text": made.text, "alert": made.alert}


async def deletes(api: BotApi, body: dict[str, Any]) -> Any:
    await api.chats[body["chat"]].deletes(body["message"])


async def reacts(api: BotApi, body: dict[str, Any]) -> Any:
    await api.chats[body["chat"]].reacts(body["message"], *body["emojis"], by=api.people[body["by"]])


async def joins(api: BotApi, body: dict[str, Any]) -> Any:
    return (await api.chats[body["chat"]].joins(api.people[body["by"]])).json


async def leaves(api: BotApi, body: dict[str, Any]) -> Any:
    return (await api.chats[body["chat"]].leaves(api.people[body["by"]])).json


async def bot_becomes(api: BotApi, body: dict[str, Any]) -> Any:
    await api.chats[body["chat"]].bot_becomes(body["status"], by=api.people[body["by"]])


async def becomes_supergroup(api: BotApi, body: dict[str, Any]) -> Any:
    return (await api.chats[body["chat"]].becomes_supergroup(body["id"], by=api.people[body["by"]])).json


async def opens_topic(api: BotApi, body: dict[str, Any]) -> Any:
    return {"thread": await api.chats[body["chat"]].opens_topic(body["name"], by=api.people[body["by"]])}


async def closes_topic(api: BotApi, body: dict[str, Any]) -> Any:
    await api.chats[body["chat"]].closes_topic(body["thread"], by=api.people[body["by"]])


async def deletes_topic(api: BotApi, body: dict[str, Any]) -> Any:
    await api.chats[body["chat"]].deletes_topic(body["thread"])


async def trouble(api: BotApi, body: dict[str, Any]) -> Any:
    """``kind`` is a name, `{"flood": 30}`, or `{"drop": {"when": "mid"}}` and the like."""
    kind = body.pop("kind")
    if isinstance(kind, dict):
        ((name, how),) = kind.items()
        kind = troubles.flooded(how) if name == "flood" else TROUBLES[name](**how)
    api.trouble(kind, body.pop("method", "*"), **body)


async def release(api: BotApi, body: dict[str, Any]) -> Any:
    api.release()


async def again(api: BotApi, body: dict[str, Any]) -> Any:
    """The update with that number once more."""
    api.updates.again(next(update for update in api.updates.all if update.id == body["update"]))


async def raw(api: BotApi, body: dict[str, Any]) -> Any:
    """An update as it stands in the body."""
    return api.updates.push_raw(body).body


VERBS: Mapping[str, Callable[[BotApi, dict[str, Any]], Awaitable[Any]]] = {
    verb.__name__: verb
    for verb in (
        person,
        private,
        group,
        says,
        press,
        press_answer,
        deletes,
        reacts,
        joins,
        leaves,
        bot_becomes,
        becomes_supergroup,
        opens_topic,
        closes_topic,
        deletes_topic,
        trouble,
        release,
        again,
        raw,
    )
}
