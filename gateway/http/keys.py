"""Idempotency-Key: the same request again is the same thing, and the same key for another request is refused.

A key belongs to the token that sent it and to the route; another token's same key is another key. What it was first
used for is noted in the store before anything is made, so it holds over restarts and between gateways.
"""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated
from uuid import NAMESPACE_URL, uuid5

from fastapi import Header
from pydantic import BaseModel

from gateway.http.problems import Problem
from gateway.persist import persist

if TYPE_CHECKING:
    from gateway.access.tokens import Caller
    from gateway.office import Office
    from store.jobs import Job

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="With the same one the same request happens once, however often it is sent. Remembered for a week.",
    ),
]


def own_uid(me: Caller, *parts: object) -> str:
    """The same for the same key of the same token, and for no other."""
    return str(uuid5(NAMESPACE_URL, repr(("goclaw-http", me.tenant, me.token, *parts))))


def digest(*parts: object) -> str:
    """What tells one request from another."""
    said = [part.model_dump_json() if isinstance(part, BaseModel) else repr(part) for part in parts]
    return sha256("\0".join(said).encode(errors="backslashreplace")).hexdigest()


async def once(office: Office, me: Caller, what: str, key: str | None, *asked: object) -> None:
    """Note what the key is used for; refuse it if that was something else before."""
    if key is None:
        return
    meaning = digest(*asked)
    if await first_meaning(office, me, what, key, meaning) != meaning:
        raise reused()


async def made_before(office: Office, me: Caller, key: str | None, asked: BaseModel) -> Job | None:
    """The schedule that the key has made already: what could not be asked for any more was asked for then."""
    if key is None:
        return None
    job = await persist(partial(office.store.cron.job_with, me.tenant, own_uid(me, "schedule", key)))
    if job is not None:
        await once(office, me, "schedule", key, asked)
    return job


async def first_meaning(office: Office, me: Caller, what: str, key: str, meaning: str) -> str:
    return await persist(partial(office.store.note_key, me.tenant, own_uid(me, what, key), meaning))


def reused() -> Problem:
    return Problem(
        422,
        "key-reused",
        "this Idempotency-Key was used for another request before, and nothing was done now",
        next="Send the same body as the first time, or another key.",
    )
