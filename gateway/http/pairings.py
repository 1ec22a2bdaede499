"""Who was let in without standing on a list, and who knocks, over HTTP.

Who knocks belongs to no tenant yet, so only an operator sees them: a list of strangers would tell one tenant whom
another one expects. Whoever may look after a tenant lets somebody into it by the code that this person was shown and
has passed on; the code is in the body of the request, since addresses are written down in many places.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path

from gateway.access.pairing import TooManyTries, is_id, read_code
from gateway.access.tokens import Caller
from gateway.http.gate import GuardedRoute, Me, Room
from gateway.http.keys import Key, once
from gateway.http.people import Other, of_tenant
from gateway.http.problems import Problem, documented, not_found
from gateway.http.shapes import CodeIn, Deleted, KnockIn, Page, PairingOut, pairing_shape
from gateway.office import Office
from gateway.persist import persist

router = APIRouter(route_class=GuardedRoute, tags=["access"])

Id = Annotated[str, Path(min_length=1, max_length=128)]


@router.get("/v1/pairings", responses=documented(401, 403, 404, 422, 429, 503))
async def pairings(me: Me, office: Room, tenant: Other = None) -> Page[PairingOut]:
    """Whom the tenant has let in; before them, for operators, who knocks and who was turned away. Never the codes."""
    wanted = of_tenant(me, tenant)
    knocks = await office.pairings.knocks() if me.may("operator") else ()
    found = [*knocks, *await office.pairings.of_tenant(wanted)]
    return Page(items=[pairing_shape(one) for one in found], next=None)


@router.post("/v1/pairings/approve", responses=documented(400, 401, 403, 404, 422, 429, 503))
async def approve(asked: CodeIn, me: Me, office: Room, key: Key = None) -> PairingOut:
    """Let in whoever was shown this code. It is spent by that; the same tenant is told the same again.

    Five wrong codes an hour are looked at; then every code is refused for a while.
    """
    tenant, code = of_tenant(me, asked.tenant), code_in(asked.code)
    if await persist(partial(office.store.tenant, tenant)) is None:
        raise not_found("tenant of this name")
    await once(office, me, "approve", key, code, tenant)
    try:
        found = await office.pairings.approve(code, tenant, me.token, asker=me.tenant)
    except TooManyTries as refused:
        raise too_many(refused) from None
    if found is None:
        raise no_such_code()
    return pairing_shape(found)


@router.post("/v1/pairings/deny", responses=documented(400, 401, 403, 404, 422, 429, 503))
async def deny(asked: KnockIn, me: Me, office: Room, key: Key = None) -> PairingOut:
    """Turn away whoever was shown this code: for a day they are not heard. Operators may name the id in the list."""
    await once(office, me, "deny", key, asked)
    found = await turned_away(office, me, asked.code)
    if found is None:
        raise no_such_code()
    return found


async def turned_away(office: Office, me: Caller, named: str) -> PairingOut | None:
    if me.may("operator") and is_id(named):
        known = await office.pairings.deny_known(named, me.token)
        return None if known is None else pairing_shape(known)
    try:
        found = await office.pairings.deny(code_in(named), me.token, asker=me.tenant)
    except TooManyTries as refused:
        raise too_many(refused) from None
    return None if found is None else pairing_shape(found)


@router.delete("/v1/pairings/{id}", responses=documented(401, 403, 404, 422, 429, 503))
async def dismiss(id: Id, me: Me, office: Room, tenant: Other = None) -> Deleted:
    """Whom the tenant has let in is a stranger again. For operators also who knocks or was turned away."""
    gone = await office.pairings.dismiss(of_tenant(me, tenant), id)
    if not gone and not (me.may("operator") and await office.pairings.dismiss_knock(id)):
        raise not_found("pairing with this id", "GET /v1/pairings lists those that there are.")
    return Deleted()


def code_in(text: str) -> str:
    code = read_code(text)
    if code is None:
        raise Problem(
            400,
            "bad-code",
            "this is no pairing code: one has eight letters and digits",
            next="Ask for the code that the gateway has shown in the chat.",
        )
    return code


def no_such_code() -> Problem:
    return not_found("stranger with this code", "A code is good for an hour and for one person.")


def too_many(refused: TooManyTries) -> Problem:
    seconds = int(refused.wait.total_seconds()) + 1
    return Problem(
        429,
        "too-many-codes",
        str(refused),
        next=f"Wait {seconds // 60 + 1} min.",
        headers={"Retry-After": str(seconds)},
        retry_after=seconds,
    )
