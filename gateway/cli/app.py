"""The command `goclaw` as a whole: every command, in the order in which people come to need them."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gateway.cli.config import config
from gateway.cli.cron import cron
from gateway.cli.logs import logs
from gateway.cli.pairing import pair
from gateway.cli.people import tenant, token
from gateway.cli.sending import send
from gateway.cli.sessions import sessions, stop
from gateway.cli.shell import ExitCode, fail, run_or_exit, settings_or_exit, setup_or_exit, talk
from gateway.cli.state import lanes, status, top
from gateway.cli.store import db, migrate
from gateway.cli.texts import refuse_bytes

ORDER = (
    "chat", "run", "send", "status", "top", "stop", "cron", "sessions", "lanes", "logs", "pair", "token", "tenant",
    "config", "db", "migrate",
)  # fmt: skip


class Commands(TyperGroup):
    """In an order that teaches; whatever is typed is text."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for one in args:
            refuse_bytes(one)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return [*(name for name in ORDER if name in self.commands), *(set(self.commands) - set(ORDER))]


# Help without boxes and colours reads the same in a terminal, a file and a pipe.
app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, cls=Commands)


def main() -> None:
    app(prog_name="goclaw")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"goclaw {version('goclaw')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def goclaw(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """A gateway between people who chat and AI agents. Without a command: a chat in this terminal.

    \b
    try it                goclaw send hello
    keep it running       goclaw run
    things for later      goclaw cron add "every weekday at 9am: what is new?"
    see what it does      goclaw top

    Every command explains itself with --help, and those that read print JSON with --json.

    \b
    exit codes   0 ok, 1 failed, 2 not understood, 3 unhealthy,
                 69 not to be had (gateway, store), 78 settings
    """
    if context.invoked_subcommand is None:
        chat()


@app.command()
def chat() -> None:
    """Chat in this terminal: the same as goclaw alone.

    \b
    goclaw chat
    """
    from gateway.chat import chat as run_chat

    run_or_exit(run_chat, setup_or_exit(settings_or_exit().settings, keep_log=True))


@app.command()
def run() -> None:
    """Run the gateway with its API, until SIGTERM or Ctrl-C.

    \b
    goclaw run
    """
    from functools import partial

    from gateway.serve import serve

    settings = settings_or_exit().settings
    refuse_open_door(settings)
    setup = setup_or_exit(settings, keep_log=True)
    run_or_exit(partial(serve, tell=tell), setup)


def tell(text: str) -> None:
    """To whoever looks now, and to whoever reads the log later."""
    import logging

    talk("goclaw", "bold", text)
    logging.getLogger("goclaw.run").info(text)


def refuse_open_door(settings: Any) -> None:
    """Whatever others can reach needs a token. (S6)"""
    from gateway.addresses import is_loopback

    if not is_loopback(settings.host) and settings.gateway_token is None:
        where = f'GOCLAW_HOST="{settings.host}" can be reached from elsewhere'
        fail(f"{where}: set GOCLAW_GATEWAY_TOKEN too, or GOCLAW_HOST=127.0.0.1.", code=ExitCode.CONFIG)


for command in (send, status, top, stop, logs):
    app.command()(command)
for name, sub in (
    ("cron", cron), ("sessions", sessions), ("lanes", lanes), ("pair", pair), ("token", token),
    ("tenant", tenant), ("config", config), ("db", db), ("migrate", migrate),
):  # fmt: skip
    app.add_typer(sub, name=name)
