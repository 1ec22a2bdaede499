"""The rules that every store keeps, and the words in which a breach of one is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from store.protocols import RuleBroken
from store.records import DEFAULT_TENANT, HIGHEST, MessageState, WorkerStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.records import Said, SessionKey, Tenant


MOST_CONTEXT = 100.0
"""A history may be longer than the window; by more than this it is a mistake."""


def check_words(*texts: str) -> None:
    """Half a character cannot be written anywhere."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise half_a_character(text) from None


def check_session(session: SessionKey) -> None:
    check_words(session.tenant, session.agent, *session.address)


def plain_json(data: Mapping[str, object]) -> dict[str, object]:
    """A copy that nobody else can change. What would not come back from JSON as it is, NaN for instance, is refused."""
    given = dict(data)
    try:
        copy: dict[str, object] = orjson.loads(orjson.dumps(given))
    except TypeError as refused:
        raise not_json(refused) from None
    if copy != given:
        raise not_json(f"{given!r:.80} would come back as {copy!r:.80}")
    return copy


def copied(said: Sequence[Said]) -> list[Said]:
    """What is kept is not changed by whoever still holds the data that came with it."""
    check_words(*(one.text for one in said))
    return [replace(one, data=plain_json(one.data)) for one in said]


def renamed(tenant: Tenant, name: str | None, zone: str | None) -> Tenant:
    """The tenant under another name or in another zone; what is None stays."""
    return replace(tenant, name=tenant.name if name is None else name, zone=tenant.zone if zone is None else zone)


def at_most(limit: int) -> int:
    """How many are meant by any number: less than one is none."""
    return max(0, min(limit, HIGHEST))


def check_end(state: MessageState) -> None:
    """To settle is to end."""
    if not state.terminal:
        raise ValueError(
            f"{state} is no end: a turn settles as {', '.join(one for one in MessageState if one.terminal)}"
        )


def check_figure(context: float | None) -> None:
    if context is not None and not 0 <= context <= MOST_CONTEXT:
        raise RuleBroken(f"{context!r} does not tell how much of the window is used: expected 0 to 1, or a little more")


def check_status(status: WorkerStatus) -> None:
    if status not in list(WorkerStatus):
        raise RuleBroken(f"a worker is not {status!r}: expected one of {', '.join(WorkerStatus)}")


def half_a_character(text: str) -> RuleBroken:
    return RuleBroken(f"{text[:40]!r} holds half a character (a lone surrogate), which no store can keep")


def unknown_tenant(tenant: str) -> RuleBroken:
    return RuleBroken(f"there is no tenant {tenant!r}: create it first", tenant=tenant)


def default_stays() -> RuleBroken:
    return RuleBroken(f"the tenant {DEFAULT_TENANT!r} cannot be deleted: the gateway's own chats belong to it")


def not_json(reason: object) -> RuleBroken:
    return RuleBroken(f"what comes with it cannot be written as JSON: {reason}")
