"""`goclaw db` and `goclaw migrate`: what there is to know and to do about the store."""

from __future__ import annotations

from dataclasses import asdict

import typer

from gateway.cli.shell import AsJson, ExitCode, group, run_or_exit, say, say_json, settings_or_exit, talk

db = group("Look after the store.")
migrate = group("Copy what is kept to another store.")


@db.command()
def status(as_json: AsJson = False) -> None:
    """Tell what is kept where, and whether it can be used as it is. Changes nothing. Exit code 1 if it cannot.

    \b
    goclaw db status
    """
    from gateway import stores

    found = run_or_exit(stores.look, settings_or_exit().settings)
    if as_json:
        say_json(asdict(found))
    else:
        say(found.summary)
        for problem in found.problems:
            talk("warning", "bold yellow", problem)
    if not found.ready:
        raise typer.Exit(ExitCode.FAILED)


@db.command()
def upgrade(as_json: AsJson = False) -> None:
    """Bring the schema of the Postgres database up to date. Files are brought up to date when they are opened.

    \b
    goclaw db upgrade
    """
    from gateway import stores

    done(run_or_exit(stores.upgrade, settings_or_exit().settings), as_json)


@migrate.command("json-to-postgres")
def json_to_postgres(as_json: AsJson = False) -> None:
    """Copy everything from GOCLAW_DATA_DIR to GOCLAW_POSTGRES_DSN. The files stay; repeating it does no harm.

    \b
    goclaw migrate json-to-postgres
    """
    from gateway import stores

    done(run_or_exit(stores.copy_to_postgres, settings_or_exit().settings), as_json)


def done(text: str, as_json: bool) -> None:
    if as_json:
        say_json({"done": text})
    else:
        say(text)
