"""`goclaw token` and `goclaw tenant`: who may do what over the API, and for whom."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli import completing
from gateway.cli.reach import Api, ask_or_exit, part
from gateway.cli.shell import AsJson, ExitCode, Yes, confirm, fail, group, hint, say, say_json, talk
from gateway.cli.tables import at, flat, relative, show, state, table
from gateway.cli.texts import in_the_future
from gateway.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Mapping

token = group("Make, list and revoke tokens for the API.")
tenant = group("People who share a gateway and see nothing of each other.")

TOKEN_HINTS = {
    "not-found": "`goclaw token list` shows the tokens, `goclaw tenant list` the tenants that there are.",
    "unknown-scope": "`goclaw token create --help` says what each is good for.",
}
TENANT_HINTS = {
    "not-found": "`goclaw tenant list` shows those that there are.",
    "taken": "`goclaw tenant list` shows it.",
    "bad-zone": "for instance: --tz Europe/Berlin",
}

Tenant = Annotated[
    str | None, typer.Option(metavar="TENANT", help="Of this tenant.", autocompletion=completing.tenants)
]
TenantId = Annotated[str, typer.Argument(metavar="TENANT", help="Its id.", autocompletion=completing.tenants)]


@token.command()
def create(
    name: Annotated[str, typer.Argument(help="What it is for, so that you recognise it.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE",
            help="What it may do: read, chat, schedule, trigger, admin, operator. Several times for several; without"
            " it the first four.",
            autocompletion=completing.scopes,
        ),
    ] = None,
    tenant: Tenant = None,
    expires: Annotated[str | None, typer.Option(metavar="SPAN|TIME", help="Good until then, for instance 30d.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a token. Its secret is printed once, alone on stdout, and is kept nowhere.

    \b
    goclaw token create phone --scope read --scope chat --expires 30d
    """
    if not name.strip():
        fail("the name is empty", "say what the token is for: goclaw token create phone", ExitCode.USAGE)
    body: dict[str, Any] = {"name": name, "tenant": tenant}
    if expires is not None:
        body["expires_at"] = in_the_future(expires)
    if scope:
        body["scopes"] = [one.strip() for given in scope for one in given.split(",") if one.strip()]
    made = ask_or_exit(lambda api: api.post("/v1/tokens", body), TOKEN_HINTS)
    if as_json:
        say_json(made)
    else:
        say(made["secret"])
    until = f", until {at(made['expires_at'])}" if made["expires_at"] else ""
    talk("", "", f"Token {made['id']} of {made['tenant']} may {', '.join(made['scopes'])}{until}.")
    talk("", "", "Keep the secret now: it is not shown again.")
    hint(f"`goclaw token revoke {made['id']}` takes it back.")


@token.command("list")
def list_tokens(tenant: Tenant = None, as_json: AsJson = False) -> None:
    """List the tokens, also those that are good for nothing any more. Never their secrets.

    \b
    goclaw token list
    """
    page = ask_or_exit(lambda api: api.get("/v1/tokens", tenant=tenant), TOKEN_HINTS)
    if as_json:
        say_json(page)
        return
    if not page["items"]:
        talk("", "", "There are no tokens.")
        hint("`goclaw token create NAME` makes one.")
        return
    now = utc_now()
    rows = [
        (
            one["id"],
            one["name"],
            state(one["state"]),
            " ".join(one["scopes"]),
            relative(one["expires_at"], now) or "never",
            relative(one["last_used_at"], now) or "never",
        )
        for one in page["items"]
    ]
    show(table(("id", "name", "state", "scopes", "expires", "last used"), rows, fold=("name", "scopes")))


@token.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="As the list shows it.", autocompletion=completing.tokens)],
    tenant: Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Take a token back: it opens nothing any more, and what it has open ends within a second.

    \b
    goclaw token revoke gck_1a2b3c4d
    """
    answer = ask_or_exit(lambda api: api.delete(f"/v1/tokens/{part(id)}", tenant=tenant), TOKEN_HINTS)
    if as_json:
        say_json(answer)
    else:
        say(f"Token {id} opens nothing any more.")


@tenant.command()
def add(
    id: Annotated[str, typer.Argument(metavar="TENANT", help="Lower case letters, digits, - and _.")],
    name: Annotated[str, typer.Option(help="What people call it.")] = "",
    tz: Annotated[str, typer.Option("--tz", metavar="ZONE", help="Its time zone.")] = "UTC",
    as_json: AsJson = False,
) -> None:
    """Make a tenant.

    \b
    goclaw tenant add acme --name "Acme Inc." --tz America/New_York
    """
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", id):
        allowed = "a small letter, then small letters, digits, - and _, 32 at most"
        fail(f"{flat(id, 60)!r} is no id of a tenant: expected {allowed}", "for instance: acme", ExitCode.USAGE)
    made = ask_or_exit(lambda api: api.post("/v1/tenants", {"id": id, "name": name, "zone": tz}), TENANT_HINTS)
    if as_json:
        say_json(made)
    else:
        say(f"Tenant {made['id']} is there, in {made['zone']}.")
    hint(f"`goclaw token create NAME --tenant {made['id']}` makes a token for it.")


@tenant.command("list")
def list_tenants(as_json: AsJson = False) -> None:
    """List the tenants.

    \b
    goclaw tenant list
    """
    page = ask_or_exit(lambda api: api.get("/v1/tenants"), TENANT_HINTS)
    if as_json:
        say_json(page)
        return
    rows = [(one["id"], one["name"], one["zone"], switched(one), at(one["created_at"])) for one in page["items"]]
    show(table(("tenant", "name", "zone", "state", "made"), rows, fold=("name",)))


def switched(one: Mapping[str, Any]) -> Any:
    return state("active" if one["enabled"] else "disabled")


@tenant.command()
def disable(id: TenantId, as_json: AsJson = False) -> None:
    """Switch a tenant off: nothing of it fires, and its tokens open nothing.

    \b
    goclaw tenant disable acme
    """
    switch(id, as_json, enabled=False)


@tenant.command()
def enable(id: TenantId, as_json: AsJson = False) -> None:
    """Switch a tenant on again: its schedules are planned anew.

    \b
    goclaw tenant enable acme
    """
    switch(id, as_json, enabled=True)


def switch(id: str, as_json: bool, *, enabled: bool) -> None:
    answer = ask_or_exit(lambda api: api.patch(f"/v1/tenants/{part(id)}", {"enabled": enabled}), TENANT_HINTS)
    if as_json:
        say_json(answer)
    else:
        say(f"Tenant {answer['id']} is switched {'on' if answer['enabled'] else 'off'}.")


@tenant.command()
def rm(id: TenantId, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a tenant with everything that is its own. This cannot be undone.

    \b
    goclaw tenant rm acme --yes
    """

    async def look(api: Api) -> int:
        await api.get(f"/v1/tenants/{part(id)}")
        return len((await api.get("/v1/tokens", tenant=id))["items"])

    tokens = ask_or_exit(look, TENANT_HINTS)
    kept = f"{tokens} token{'' if tokens == 1 else 's'}, its conversations, its schedules and their history"
    confirm(f"This deletes tenant {id} for good: {kept}.", yes=yes)
    answer = ask_or_exit(lambda api: api.delete(f"/v1/tenants/{part(id)}"), TENANT_HINTS)
    if as_json:
        say_json(answer)
    else:
        say(f"Tenant {id} is gone.")
