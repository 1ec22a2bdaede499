"""What the driver and the server complain about, told in the store's own errors: the one place that knows them all."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import asyncpg

from store.protocols import CannotOpen, RuleBroken, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.postgres.dsn import Target

DRIVER = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError, EOFError)

AGAIN = {
    "08": "the connection to Postgres broke",
    "25": "Postgres takes no writes just now",
    "28": "Postgres does not let us in any more",
    "3D": "the database is not there any more",
    "40": "Postgres gave way to somebody else's transaction",
    "53": "Postgres has run out of something",
    "55": "something was locked for too long",
    "57": "Postgres stopped the work",
    "58": "Postgres has trouble with its own files",
}
"""Classes of SQLSTATE that may be over when it is tried again."""

RACES = ("cron_triggers_executing",)
"""Unique indexes that two claims may meet at, neither of them with a fault."""

GRANT_USE = (
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public and USAGE ON ALL SEQUENCES IN SCHEMA public "
    "to the user in the DSN"
)


@contextmanager
def told() -> Iterator[None]:
    """Whatever the driver raises in the block is raised as a `StoreError`."""
    try:
        yield
    except DRIVER as error:
        raise translated(error) from error


def translated(error: BaseException) -> StoreError:
    match error:
        case asyncpg.PostgresError():
            return _refused(error, (error.sqlstate or "")[:2])
        case TimeoutError():
            return StoreUnavailable("Postgres did not answer in time: see whether it is overloaded, then try again")
        case _:
            return StoreUnavailable(f"the connection to Postgres broke ({said(error)}): try again")


def _refused(error: asyncpg.PostgresError, group: str) -> StoreError:
    if group == "54":
        return RuleBroken(
            f"a name or an id in it is too long: Postgres can index about 2,700 bytes at most ({said(error)})",
            sqlstate=error.sqlstate,
        )
    if error.constraint_name in RACES:
        return StoreUnavailable(
            f"somebody else was faster ({said(error)}): try again",
            sqlstate=error.sqlstate,
            constraint=error.constraint_name,
        )
    if group in ("22", "23"):
        return RuleBroken(f"Postgres refused it: {said(error)}", sqlstate=error.sqlstate)
    if group in AGAIN:
        return StoreUnavailable(f"{AGAIN[group]} ({said(error)}): try again", sqlstate=error.sqlstate)
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return StoreUnavailable(
            f"Postgres does not let this user do it ({said(error)}): as the owner of the tables, {GRANT_USE}",
            retriable=False,
            sqlstate=error.sqlstate,
        )
    return StoreUnavailable(
        f"Postgres could not do it ({said(error)}): compare the schema with `goclaw db status`",
        retriable=False,
        sqlstate=error.sqlstate,
    )


def said(error: BaseException) -> str:
    """The first line of what it says."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def cannot_open(error: BaseException, target: Target) -> CannotOpen:
    """Why a server cannot be used, and what to do."""
    match error:
        case UnicodeError():
            return CannotOpen(
                f"{target.host!r} cannot be the name of a host: between its dots there have to be 1 to 63 characters. "
                "Mend it in the DSN of the Postgres server",
                **target.fields,
            )
        case OSError() if missing := target.missing_file():
            return CannotOpen(
                f"cannot use the Postgres {target}: there is no file {str(missing)!r}, which the DSN or the "
                "environment names for TLS. Put it there, or name another one",
                **target.fields,
            )
        case asyncpg.InsufficientPrivilegeError():
            advice = rights(target)
        case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
            advice = "check the user and the password in the DSN"
        case asyncpg.InvalidCatalogNameError():
            advice = f"create it (`createdb {target.database}`) or name another one in the DSN"
        case asyncpg.TooManyConnectionsError():
            advice = "raise max_connections, or end what else is connected"
        case asyncpg.CannotConnectNowError():
            advice = "the server is starting or stopping: try again in a moment"
        case asyncpg.ClientConfigurationError():
            return CannotOpen("the DSN of the Postgres server cannot be used: check its options", **target.fields)
        case TimeoutError():
            return CannotOpen(
                f"Postgres does not answer ({target}): check that host and port are right and no firewall is between",
                **target.fields,
            )
        case OSError():
            advice = "check that the server runs there and takes connections"
        case _:
            advice = "check the DSN and the server's log"
    return CannotOpen(f"cannot use the Postgres {target}: {said(error)}. What to do: {advice}", **target.fields)


def rights(target: Target) -> str:
    """What somebody who may do so has to grant. Whoever makes the tables owns them and needs nothing else."""
    role, database = quoted(target.user), quoted(target.database)
    return (
        "let a superuser run "
        f"`GRANT CONNECT ON DATABASE {database} TO {role}; GRANT USAGE, CREATE ON SCHEMA public TO {role};` and, if "
        "another role made the tables, `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "
        f"{role}; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role};`"
    )


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
