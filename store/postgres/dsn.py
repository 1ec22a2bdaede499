"""Where a Postgres server is, in words that may be shown to anybody: the password never leaves the DSN.

A DSN that cannot be read is not repeated either, since nobody knows which part of it was meant to be the password.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from store.protocols import CannotOpen

HOSTS = re.compile(r"(?:[\w.%-]*|\[[0-9A-Fa-f:.%]+\])(?::\d{1,5})?")
FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
EXPECTED = "postgresql://user:password@host:5432/database"


@dataclass(frozen=True, slots=True)
class Target:
    """What is said about a server in errors."""

    host: str
    port: str
    database: str
    user: str
    dsn: str = field(repr=False)
    files: tuple[Path, ...] = ()
    """Those that are named for TLS."""

    def __str__(self) -> str:
        return f"database {self.database!r} at {self.host} port {self.port} as user {self.user!r}"

    @property
    def fields(self) -> dict[str, object]:
        return {"host": self.host, "port": self.port, "database": self.database, "user": self.user}

    def missing_file(self) -> Path | None:
        """The first of the files that is not there."""
        return next((file for file in self.files if not file.is_file()), None)


def read_dsn(dsn: str) -> Target:
    parts = _split(dsn)
    if parts is None:
        raise CannotOpen(
            f"the DSN of the Postgres server cannot be read: expected {EXPECTED}. "
            "In the password each of @ : / ? # % and the space has to be written as %40 %3A %2F %3F %23 %25 %20"
        )
    person, _, hosts = parts.netloc.rpartition("@")
    asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    host, _, port = hosts.rpartition(":") if re.search(r":\d+$", hosts) else (hosts, "", "")
    user = unquote(person.partition(":")[0]) or asked.get("user") or os.environ.get("PGUSER") or "(yourself)"
    named = parts.path.removeprefix("/") or asked.get("dbname") or asked.get("database") or os.environ.get("PGDATABASE")
    files = [asked.get(name) or os.environ.get(f"PG{name.upper()}") for name in FILES]
    return Target(
        host=unquote(host) or asked.get("host") or os.environ.get("PGHOST") or "localhost",
        port=port or asked.get("port") or os.environ.get("PGPORT") or "5432",
        database=unquote(named or user),
        user=user,
        dsn=dsn,
        files=tuple(Path(file) for file in files if file),
    )


def _split(dsn: str) -> SplitResult | None:
    """None if a stray character of the password may have ended up somewhere else."""
    try:
        parts = urlsplit(dsn)
    except ValueError:
        return None
    hosts = parts.netloc.rpartition("@")[2].split(",")
    whole = (
        parts.scheme in ("postgresql", "postgres")
        and all(HOSTS.fullmatch(host) for host in hosts)
        and not parts.fragment
        and "@" not in parts.path + parts.query
        and re.search(r"%(?![0-9A-Fa-f]{2})", dsn) is None
    )
    return parts if whole else None
