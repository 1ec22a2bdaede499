"""Sessions as people name them: by their key, or by any part of it that no other session has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from gateway.cli.shell import ExitCode, fail

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gateway.cli.reach import Api

SHOWN = 10
KEY_COLONS = 6


async def find_session(api: Api, text: str) -> dict[str, Any]:
    """The session that is meant."""
    page = await api.all("/v1/sessions", limit=500)
    found = {one["key"]: one for one in page["items"]}
    key = meant(text, found)
    if key not in found:
        refuse(key, [])
    return dict(found[key])


def meant(text: str, keys: Iterable[str]) -> str:
    """The one key that the text stands for."""
    known = list(dict.fromkeys(keys))
    if text in known or text.count(":") == KEY_COLONS:  # a whole key may be that of a first message
        return text
    fitting = [key for key in known if text and text.lower() in key.lower()]
    if len(fitting) != 1:
        refuse(text if len(text) <= 60 else text[:59] + "…", fitting)
    return fitting[0]


def refuse(shown: str, fitting: Sequence[str]) -> NoReturn:
    if not fitting:
        fail(f'there is no session with "{shown}" in its key', "`goclaw sessions` lists those that there are.")
    listed = "\n".join(f"  {key}" for key in fitting[:SHOWN])
    more = f"\n  and {len(fitting) - SHOWN} more" if len(fitting) > SHOWN else ""
    fail(f'"{shown}" could be any of these', f"name more of the one that you mean:\n{listed}{more}", ExitCode.USAGE)
