"""What a method was asked with, from a query, a form, JSON or multipart: read once, into plain values.

Whatever way they came, numbers are `int`, flags are `bool` and structures are lists and dictionaries afterwards.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import orjson

from tests.fakes.telegram.errors import bad
from tests.fakes.telegram.words import listed

if TYPE_CHECKING:
    from tests.fakes.wire import HttpRequest

NUMBERS = frozenset(
    listed(
        "chat_id user_id message_id message_thread_id offset limit timeout draft_id reply_to_message_id from_chat_id",
        " max_connections duration width height cache_time",
    )
)
FLAGS = frozenset(
    listed(
        "disable_notification allow_sending_without_reply show_alert is_big drop_pending_updates protect_content",
        " disable_web_page_preview has_spoiler only_if_banned",
    )
)
STRUCTURES = frozenset(
    listed(
        "entities caption_entities reply_markup reply_parameters media commands scope allowed_updates reaction",
        " link_preview_options message_ids permissions",
    )
)
WHOLE = re.compile(r"-?\d+")
NAME = re.compile(r'\bname="((?:[^"\\]|\\.)*)"')
FILE = re.compile(r'\bfilename="((?:[^"\\]|\\.)*)"')
KIND = re.compile(r"^content-type:\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Upload:
    name: str
    mime_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Parameters:
    values: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Upload] = field(default_factory=dict)

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self.values.get(name, otherwise)

    def number(self, name: str, otherwise: int = 0) -> int:
        value = self.values.get(name)
        return value if isinstance(value, int) else otherwise

    def structure(self, name: str, kind: type, otherwise: Any = None) -> Any:
        """A list or a dictionary that was given there, else the other value; a Failure if it is neither."""
        value = self.values.get(name)
        if value in (None, ""):
            return otherwise
        if not isinstance(value, kind):
            raise bad(f"can't parse {name.replace('_', ' ')} JSON object")
        return value


def read_parameters(request: HttpRequest) -> Parameters:
    given: dict[str, Any] = dict(read_pairs(request.query))
    files: dict[str, Upload] = {}
    kind = request.headers.get("content-type", "")
    if kind.startswith("application/json") and request.body:
        given |= read_json(request.body)
    elif kind.startswith("multipart/form-data"):
        values, files = read_multipart(request.body, kind.partition("boundary=")[2].strip('" '))
        given |= values
    elif request.body:
        given |= read_pairs(as_text(request.body))
    return Parameters({name: plain(name, value) for name, value in given.items() if value is not None}, files)


def read_pairs(text: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict"))
    except UnicodeDecodeError:
        raise bad("strings must be encoded in UTF-8") from None


def read_json(body: bytes) -> dict[str, Any]:
    try:
        tree = orjson.loads(body)
    except ValueError:
        raise bad("can't parse request parameters as JSON Object") from None
    if not isinstance(tree, dict):
        raise bad("object expected as a request parameters")
    return tree


def read_multipart(body: bytes, boundary: str) -> tuple[dict[str, str], dict[str, Upload]]:
    values: dict[str, str] = {}
    files: dict[str, Upload] = {}
    for piece in (b"\r\n" + body).split(b"\r\n--" + boundary.encode())[1:-1]:
        raw, _, content = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        head = as_text(raw).replace("\r\n", "\n")
        name, file, kind = NAME.search(head), FILE.search(head), KIND.search(head)
        if name is None:
            raise bad("a part of the multipart body has no name")
        if file is None:
            values[name[1]] = as_text(content)
        else:
            files[name[1]] = Upload(file[1], kind[1] if kind else "application/octet-stream", content)
    return values, files


def as_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise bad("strings must be encoded in UTF-8") from None


def plain(name: str, value: Any) -> Any:
    if name in NUMBERS and isinstance(value, str) and WHOLE.fullmatch(value):
        return int(value)
    if name in FLAGS and isinstance(value, str):
        return value.lower() in ("true", "yes", "1")
    if name in STRUCTURES and isinstance(value, str) and value:
        try:
            return orjson.loads(value)
        except ValueError:
            raise bad(f"can't parse {name.replace('_', ' ')} JSON object") from None
    return value if name in STRUCTURES | NUMBERS | FLAGS or isinstance(value, str) else str(value)
