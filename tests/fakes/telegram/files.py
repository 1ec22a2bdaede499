"""Files, kept whole, and what the messages that carry them tell of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.fakes.telegram.errors import Failure, bad

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_DOWN = 20 * 2**20
MOST_UP = 50 * 2**20
MOST_PHOTO = 10 * 2**20
PLAYED = {"duration": 3}
SHOWN = {"width": 90, "height": 90}
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "photo": ("jpg", "image/jpeg", SHOWN),
    "document": ("bin", "application/octet-stream", {}),
    "audio": ("mp3", "audio/mpeg", PLAYED),
    "voice": ("oga", "audio/ogg", PLAYED),
    "video": ("mp4", "video/mp4", {**PLAYED, **SHOWN}),
    "animation": ("mp4", "video/mp4", {**PLAYED, **SHOWN}),
    "video_note": ("mp4", "video/mp4", {**PLAYED, "length": 90}),
    "sticker": (
        "webp",
        "image/webp",
        {**SHOWN, "type": "regular", "is_animated": False, "is_video": False, "emoji": "👋"},
    ),
}
"""For each kind of file the ending, the type and what else is told of it."""


@dataclass(frozen=True, slots=True)
class File:
    id: str
    kind: str
    name: str
    mime_type: str
    path: str
    content: bytes = field(repr=False)

    @property
    def json(self) -> dict[str, Any]:
        """As the methods tell it."""
        return {"file_id": self.id, "file_unique_id": f"u{self.id}", "file_size": len(self.content)}

    @property
    def told(self) -> Any:
        """As a message tells it."""
        more = KINDS[self.kind][2]
        if self.kind == "photo":
            return [{**self.json, **more}]
        if self.kind in ("sticker", "video_note"):
            return {**self.json, **more}
        named = {} if self.kind == "voice" else {"file_name": self.name}
        return {**self.json, **more, "mime_type": self.mime_type, **named}


class Files:
    def __init__(self) -> None:
        self._by_id: dict[str, File] = {}
        self._by_path: dict[str, File] = {}
        self.too_big: set[str] = set()
        """The ids of files that are said to be too big to be downloaded."""

    def keep(self, kind: str, content: bytes, name: str | None = None, mime_type: str | None = None) -> File:
        number = len(self._by_id) + 1
        ending, usual, _ = KINDS[kind]
        path = f"{kind}s/file_{number}.{ending if name is None else name.rpartition('.')[2]}"
        file = File(f"FILE{number}", kind, name or f"file_{number}.{ending}", mime_type or usual, path, content)
        self._by_id[file.id] = self._by_path[file.path] = file
        return file

    def get(self, file_id: str) -> File:
        file = self._by_id.get(file_id)
        if file is None:
            raise bad("wrong file_id or the file is temporarily unavailable")
        return file

    def told(self, file_id: str) -> dict[str, Any]:
        """What `getFile` answers."""
        file = self.get(file_id)
        if len(file.content) > MOST_DOWN or file_id in self.too_big:
            raise bad("file is too big")
        return {**file.json, "file_path": file.path}

    def download(self, path: str) -> bytes:
        if path not in self._by_path:
            raise Failure(404, "Not Found")
        return self._by_path[path].content

    @property
    def all(self) -> Sequence[File]:
        return tuple(self._by_id.values())


def check_upload(kind: str, content: bytes) -> None:
    if not content:
        raise bad("file must be non-empty")
    if len(content) > MOST_UP:
        raise Failure(413, "Request Entity Too Large")
    if kind == "photo" and len(content) > MOST_PHOTO:
        raise bad(f"file of size {len(content)} bytes is too big for a photo; the maximum size is {MOST_PHOTO} bytes")
