"""`goclaw db` and `goclaw migrate`: what there is to know and to do about the store."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from gateway import stores
from gateway.cli.shell import ExitCode, run_or_exit, settings_or_exit, talk

db = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
migrate = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@db.command()
def status(as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False) -> None:
    """Tell what is kept where, and whether it can be used as it is. Changes nothing. Exit code 1 if it cannot."""
    found = run_or_exit(stores.look, settings_or_exit().settings)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
    else:
        typer.echo(found.summary)
        for problem in found.problems:
            talk("warning", "bold yellow", problem)
    if not found.ready:
        raise typer.Exit(ExitCode.FAILED)


@db.command()
def upgrade() -> None:
    """Bring the schema of the Postgres database up to date. Files are brought up to date when they are opened."""
    typer.echo(run_or_exit(stores.upgrade, settings_or_exit().settings))


@migrate.command("json-to-postgres")
def json_to_postgres() -> None:
    """Copy everything from GOCLAW_DATA_DIR to GOCLAW_POSTGRES_DSN. The files stay; repeating it does no harm."""
    typer.echo(run_or_exit(stores.copy_to_postgres, settings_or_exit().settings))
