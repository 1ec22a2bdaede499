"""`goclaw sessions` and `goclaw stop`: conversations, and what runs in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import trio
import typer

from gateway.cli import completing
from gateway.cli.naming import find_session, meant
from gateway.cli.reach import Api, ask_or_exit, part
from gateway.cli.shell import AsJson, ExitCode, Yes, confirm, fail, group, hint, say, say_json, talk
from gateway.cli.tables import at, facts, flat, relative, show, table
from gateway.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

sessions = group(None, alone=True)

HINTS = {"not-found": "`goclaw sessions` lists those that there are."}
ENDS_S = 5.0
"""So long what was stopped is watched until it has ended."""
LOOK_AGAIN_S = 0.1

Key = Annotated[
    str,
    typer.Argument(metavar="SESSION", help="Its key, or a part that no other has.", autocompletion=completing.sessions),
]


@sessions.callback()
def overview(context: typer.Context, as_json: AsJson = False) -> None:
    """Look at conversations: who spoke, what runs and waits. Alone: the list.

    \b
    goclaw sessions
    """
    if context.invoked_subcommand is None:
        list_sessions(as_json)


@sessions.command("list")
def list_sessions(as_json: AsJson = False) -> None:
    """List all conversations.

    \b
    goclaw sessions list
    """
    page = ask_or_exit(lambda api: api.all("/v1/sessions", limit=500), HINTS)
    if as_json:
        say_json(page)
        return
    if not page["items"]:
        talk("", "", "Nobody has said anything yet.")
        hint("`goclaw send hello`, or goclaw alone for a chat.")
        return
    now = utc_now()
    rows = [
        (one["key"], one["lines"], one["running"] or "", one["waiting"] or "", relative(one["updated_at"], now))
        for one in page["items"]
    ]
    show(table(("session", "lines>", "running>", "waiting>", "changed"), rows, fold=("session",)))


@sessions.command("show")
def show_session(
    session: Key,
    count: Annotated[int, typer.Option("--count", "-n", min=0, max=500, help="So many lines of what was said.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show a conversation: what is set for it, and what was said last.

    \b
    goclaw sessions show http -n 5
    """

    async def read(api: Api) -> tuple[Any, Any]:
        found = await find_session(api, session)
        path = f"/v1/sessions/{part(found['key'])}/transcript"
        last = await api.get(path, after=max(found["lines"] - count, 0), limit=max(count, 1))
        return found, last["items"][:count]

    found, lines = ask_or_exit(read, HINTS)
    if as_json:
        say_json({**found, "transcript": lines})
        return
    policy = ", ".join(f"{name} {value}" for name, value in found["policy"].items())
    facts(
        [
            ("session", found["key"]),
            ("agent", found["agent"]),
            ("lines", found["lines"]),
            ("running", found["running"]),
            ("waiting", found["waiting"]),
            ("set for it", policy),
            ("changed", f"{at(found['updated_at'])}, {relative(found['updated_at'], utc_now())}"),
        ]
    )
    for line in lines:
        say(f"\n{at(line['at'])} {line['role']}:\n{indented(line['text'])}")


def indented(text: str) -> str:
    from gateway.channels.printable import printable

    return "\n".join(f"  {line}" for line in printable(text).splitlines())


@sessions.command()
def clear(session: Key, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete what was said in a conversation, and what was set for it. This cannot be undone.

    \b
    goclaw sessions clear http --yes
    """
    found = ask_or_exit(lambda api: find_session(api, session), HINTS)
    lines = f"{found['lines']} line{'' if found['lines'] == 1 else 's'}"
    confirm(f"This deletes {lines} of {found['key']}, and what is set for it.", yes=yes)
    answer = ask_or_exit(lambda api: api.delete(f"/v1/sessions/{part(found['key'])}"), HINTS)
    if as_json:
        say_json(answer)
    else:
        say(f"{found['key']} is empty.")


# ── stop ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def stop(
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="SESSION", help="Its key, or a part that no other has.", autocompletion=completing.sessions
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that runs or waits at this gateway.")] = False,
    as_json: AsJson = False,
) -> None:
    """Stop what runs. Alone the only run; else that of a conversation, or everything.

    \b
    goclaw stop
    goclaw stop http
    goclaw stop --all
    """
    if everything and session is not None:
        fail("--all stops every session, so none is to be named", code=ExitCode.USAGE)

    async def work(api: Api) -> list[dict[str, Any]]:
        busy = await busy_sessions(api)
        if everything:
            return await stop_them(api, busy, everything=True)
        if session is not None:
            known = (await api.all("/v1/sessions", limit=500))["items"]
            return await stop_them(api, [meant(session, [*busy, *(one["key"] for one in known)])])
        return await stop_them(api, [the_only_one(api, busy)])

    stopped = ask_or_exit(work, HINTS)
    if as_json:
        say_json({"items": stopped, "next": None})
        return
    for one in stopped:
        say(f"{'Stopped' if one['ended'] else 'Told to stop'}: {one['session']}")
    if any(not one["ended"] for one in stopped):
        talk("", "", "What has not ended yet ends as soon as the gateway that works on it hears of this.")
    if not stopped:
        talk("", "", "Nothing runs and nothing waits here.")


async def busy_sessions(api: Api) -> list[str]:
    """Where something runs or waits, the longest run first; jobs have sessions of their own."""
    running = [one["session"] for one in (await api.get("/v1/status"))["running"]]
    listed = (await api.all("/v1/sessions", limit=500))["items"]
    waiting = [one["key"] for one in listed if one["running"] or one["waiting"]]
    return list(dict.fromkeys([*running, *waiting]))


def the_only_one(api: Api, busy: Sequence[str]) -> str:
    if not busy and not api.served:
        fail("no gateway runs on this machine, so nothing is to be stopped here", "`goclaw run` starts one.")
    if not busy:
        fail("nothing runs and nothing waits", "`goclaw status` tells how the gateway is.")
    if len(busy) > 1:
        listed = "\n".join(f"  goclaw stop '{flat(one)}'" for one in busy)
        fail(f"{len(busy)} sessions are busy", f"name one of them, or --all:\n{listed}", ExitCode.USAGE)
    return busy[0]


async def stop_them(api: Api, keys: Sequence[str], *, everything: bool = False) -> list[dict[str, Any]]:
    """Tell all of them at once; then see that they end, for a while."""
    answers = [await api.post(f"/v1/sessions/{part(key)}/stop", {"everything": everything}) for key in keys]
    left = await going_on(api, answers)
    until = trio.current_time() + (ENDS_S if api.served else 0)
    while left and trio.current_time() < until:
        await trio.sleep(LOOK_AGAIN_S)
        left = await going_on(api, answers)
    return [{**answer, "ended": api.served and answer["session"] not in left} for answer in answers]


async def going_on(api: Api, answers: Sequence[Mapping[str, Any]]) -> set[str]:
    told = {answer["session"] for answer in answers}
    return told & {one["session"] for one in (await api.get("/v1/status"))["running"]}
