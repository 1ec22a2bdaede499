"""`goclaw pair`: strangers who write to the gateway, let in or turned away."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.cli import completing, people
from gateway.cli.reach import ask_or_exit, part
from gateway.cli.shell import AsJson, group, hint, say, say_json, talk
from gateway.cli.tables import flat, relative, show, state, table
from gateway.clock import utc_now

pair = group("Let people in who stand on no list, by the code that they were shown.")

HINTS = {
    "not-found": "a code is good for an hour and for one person; `goclaw pair list` shows who knocks.",
    "bad-code": "for instance: goclaw pair approve K7Q2M9XD",
    "too-many-codes": "`goclaw pair list` shows who knocks; `goclaw pair deny ID` turns somebody away.",
}
KNOWN_HINTS = {"not-found": "`goclaw pair list` shows those that there are."}

Id = Annotated[str, typer.Argument(metavar="ID", help="As the list shows it.", autocompletion=completing.pairings)]


@pair.command("list")
def list_pairings(tenant: people.Tenant = None, as_json: AsJson = False) -> None:
    """List who knocks, who was turned away lately, and who was let in. Never their codes: those are in the chats.

    \b
    goclaw pair list
    """
    page = ask_or_exit(lambda api: api.get("/v1/pairings", tenant=tenant), KNOWN_HINTS)
    if as_json:
        say_json(page)
        return
    if not page["items"]:
        talk("", "", "Nobody knocks, and nobody was let in by a code.")
        return
    now = utc_now()
    rows = [
        (
            one["id"],
            state(one["state"]),
            f"{one['channel']} {one['account']}".strip(),
            one["sender"],
            one["name"],
            one["tenant"],
            relative(one["decided_at"] or one["asked_at"], now),
        )
        for one in page["items"]
    ]
    show(table(("id", "state", "channel", "sender", "name", "tenant", "since"), rows, fold=("id", "sender", "name")))
    if any(one["state"] == "pending" for one in page["items"]):
        hint("a name proves nothing: have them tell you their code, then `goclaw pair approve CODE`.")


@pair.command()
def approve(
    code: Annotated[str, typer.Argument(metavar="CODE", help="What they were shown in the chat.")],
    tenant: people.Tenant = None,
    as_json: AsJson = False,
) -> None:
    """Let somebody in: from now on they may write, and what they write belongs to the tenant.

    \b
    goclaw pair approve K7Q2M9XD
    """
    answer = ask_or_exit(lambda api: api.post("/v1/pairings/approve", {"code": code, "tenant": tenant}), HINTS)
    if as_json:
        say_json(answer)
    else:
        say(f"{called(answer)} may write now and belongs to {answer['tenant']}.")
    hint(f"`goclaw pair rm {answer['id']}` takes it back.")


@pair.command()
def deny(
    code: Annotated[
        str,
        typer.Argument(
            metavar="CODE|ID", help="Their code, or the id in the list.", autocompletion=completing.pairings
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Turn somebody away: their code opens nothing, and for a day they are not heard.

    \b
    goclaw pair deny K7Q2M9XD
    """
    answer = ask_or_exit(lambda api: api.post("/v1/pairings/deny", {"code": code}), HINTS)
    if as_json:
        say_json(answer)
    else:
        say(f"{called(answer)} is turned away for a day.")
    hint(f"`goclaw pair rm {answer['id']}` takes it back.")


@pair.command()
def rm(id: Id, tenant: people.Tenant = None, as_json: AsJson = False) -> None:
    """Make somebody a stranger again: whom you let in, or turned away.

    \b
    goclaw pair rm 1a2b3c4d5e6f7a8b
    """
    answer = ask_or_exit(lambda api: api.delete(f"/v1/pairings/{part(id)}", tenant=tenant), KNOWN_HINTS)
    if as_json:
        say_json(answer)
    else:
        say(f"{id} is a stranger again.")


def called(one: dict[str, str]) -> str:
    """Somebody by the name that they have given and the number that is theirs."""
    name = flat(one["name"], 40)
    who = f"{one['channel']} {flat(one['sender'], 40)}"
    return f"{name} ({who})" if name else who
