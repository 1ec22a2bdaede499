"""Tokens and tenants over HTTP."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query

from cron.zones import read_zone
from gateway.access.scopes import read_scopes
from gateway.access.tokens import Caller, new_token
from gateway.http.gate import GuardedRoute, Me, Room
from gateway.http.keys import Key, digest, first_meaning, reused
from gateway.http.problems import Problem, documented, not_found
from gateway.http.shapes import (
    Deleted,
    NewTokenOut,
    Page,
    TenantEdit,
    TenantIn,
    TenantOut,
    TokenIn,
    TokenOut,
    tenant_shape,
    token_shape,
)
from gateway.office import Office
from gateway.persist import persist

router = APIRouter(route_class=GuardedRoute, tags=["access"])

Id = Annotated[str, Path(min_length=1, max_length=128)]
Other = Annotated[str | None, Query(max_length=64, description="Another tenant than one's own; for operators.")]


def of_tenant(me: Caller, wanted: str | None) -> str:
    """Whose tokens are meant. Only operators look beyond their own tenant."""
    if wanted is None or wanted == me.tenant:
        return me.tenant
    if not me.may("operator"):
        raise not_found("tenant of this name")
    return wanted


@router.get("/v1/tokens", responses=documented(401, 403, 404, 422, 429, 503))
async def tokens(me: Me, office: Room, tenant: Other = None) -> Page[TokenOut]:
    """The tenant's tokens, also those that are good for nothing any more. Never their secrets."""
    found = await persist(partial(office.store.tokens, of_tenant(me, tenant)))
    return Page(items=[token_shape(one, office.now()) for one in found], next=None)


@router.post("/v1/tokens", status_code=201, responses=documented(401, 403, 404, 409, 422, 429, 503))
async def create_token(asked: TokenIn, me: Me, office: Room, key: Key = None) -> NewTokenOut:
    """A new token. Its secret is in the answer, and nowhere else, ever.

    So the same Idempotency-Key again is refused, and the problem names the token that was made.
    """
    tenant = of_tenant(me, asked.tenant)
    scopes = read_scopes(asked.scopes)
    if beyond := [scope for scope in scopes if not me.may(scope)]:
        raise Problem(403, "missing-scope", f"this token has not {beyond[0]} itself and cannot give it away")
    if asked.expires_at is not None and asked.expires_at <= office.now():
        raise Problem(422, "in-the-past", "expires_at is past")
    if await persist(partial(office.store.tenant, tenant)) is None:
        raise not_found("tenant of this name")
    new, secret = new_token(tenant, asked.name, scopes, asked.expires_at)
    if key is not None:
        await first_time(office, me, key, digest(asked), new.id)
    if not await persist(partial(office.store.add_token, new)):
        raise Problem(409, "taken", "this was one chance in very many: ask again")
    kept = next(one for one in await persist(partial(office.store.tokens, tenant)) if one.new.id == new.id)
    return NewTokenOut(**token_shape(kept, office.now()).model_dump(), secret=secret)


async def first_time(office: Office, me: Caller, key: str, meaning: str, id: str) -> None:
    """A key makes one token: what was shown once is not shown again."""
    known, _, made = (await first_meaning(office, me, "token", key, f"{meaning}:{id}")).partition(":")
    if known != meaning:
        raise reused()
    if made != id:
        raise Problem(
            409,
            "secret-shown",
            f"with this Idempotency-Key the token {made} was made, and its secret is not shown twice",
            next=f"If the secret is lost, revoke {made} and ask with another key.",
        )


@router.delete("/v1/tokens/{id}", responses=documented(401, 403, 404, 422, 429, 503))
async def revoke(id: Id, me: Me, office: Room, tenant: Other = None) -> Deleted:
    """It opens nothing any more, from now on; streams that it has opened end within a second."""
    if not await persist(partial(office.store.revoke_token, of_tenant(me, tenant), id)):
        raise not_found("token with this id that is still good")
    await office.streams.look()
    return Deleted()


@router.get("/v1/tenants", responses=documented(401, 403, 422, 429, 503))
async def tenants(me: Me, office: Room) -> Page[TenantOut]:
    return Page(items=[tenant_shape(one) for one in await persist(office.store.tenants)], next=None)


@router.post("/v1/tenants", status_code=201, responses=documented(400, 401, 403, 409, 422, 429, 503))
async def create_tenant(asked: TenantIn, me: Me, office: Room, key: Key = None) -> TenantOut:
    """A new tenant. With an Idempotency-Key, asking again tells of the same one."""
    zone = read_zone(asked.zone).key
    mine = key is not None and await promised(office, me, key, asked)
    if not await persist(partial(office.store.create_tenant, asked.id, asked.name, zone)) and not mine:
        raise Problem(409, "taken", f"there is a tenant {asked.id} already")
    return await known(office, asked.id)


async def promised(office: Office, me: Caller, key: str, asked: TenantIn) -> bool:
    """Whether the tenant is this key's own: nobody else's was there when the key was first used."""
    there = await persist(partial(office.store.tenant, asked.id)) is not None
    meaning, state = digest(asked), "taken" if there else "made"
    first, _, found = (await first_meaning(office, me, "tenant", key, f"{meaning}:{state}")).partition(":")
    if first != meaning:
        raise reused()
    return found == "made"


@router.get("/v1/tenants/{id}", responses=documented(401, 403, 404, 422, 429, 503))
async def tenant(id: Id, me: Me, office: Room) -> TenantOut:
    return await known(office, id)


@router.patch("/v1/tenants/{id}", responses=documented(400, 401, 403, 404, 422, 429, 503))
async def edit_tenant(id: Id, asked: TenantEdit, me: Me, office: Room) -> TenantOut:
    """Switch it off: nothing fires, no token opens anything. Switch it on: its schedules are planned anew.

    Another zone is for what is made from now on: schedules keep the one that they were made with.
    """
    zone = None if asked.zone is None else read_zone(asked.zone).key
    if not await persist(partial(office.store.edit_tenant, id, name=asked.name, zone=zone)):
        raise no_tenant()
    if asked.enabled is not None and not await office.jobs.enable_tenant(id, asked.enabled):
        raise no_tenant()
    await office.streams.look()
    return await known(office, id)


@router.delete("/v1/tenants/{id}", responses=documented(401, 403, 404, 409, 422, 429, 503))
async def delete_tenant(id: Id, me: Me, office: Room) -> Deleted:
    """The tenant and everything that is its own are gone."""
    if not await persist(partial(office.store.delete_tenant, id)):
        raise no_tenant()
    await office.forget_files(id)
    await office.streams.look()
    return Deleted()


async def known(office: Office, id: str) -> TenantOut:
    found = await persist(partial(office.store.tenant, id))
    if found is None:
        raise no_tenant()
    return tenant_shape(found)


def no_tenant() -> Problem:
    return not_found("tenant of this name", "GET /v1/tenants lists those that there are.")
