"""A real Postgres for the whole test run, shared by all of its processes.

The process that was started first has a guardian for it; the others are told where that answers. The server is made
when a test first needs it. GOCLAW_TEST_POSTGRES_DSN names another server to be used instead: its role must be allowed
to create databases.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from hypothesis import settings

from tests.postgres.databases import Databases
from tests.postgres.server import Guarded, Server, call_up, memory, running, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

GUARDED = pytest.StashKey[Guarded]()
SHARED = pytest.StashKey[dict[str, str]]()
ELSEWHERE = "GOCLAW_TEST_POSTGRES_DSN"

settings.register_profile("ours", deadline=None)  # how long an example takes depends on what else the machine does
settings.load_profile("ours")


def pytest_configure(config: pytest.Config) -> None:
    if (place := memory()) is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(place))  # where `tmp_path` is made
    told: dict[str, Any] | None = getattr(config, "workerinput", None)
    if told is not None:
        config.stash[SHARED] = told["postgres"]
    elif ELSEWHERE in os.environ:
        config.stash[SHARED] = {"run": uuid4().hex[:8], "dsn": os.environ[ELSEWHERE]}
    else:
        config.stash[GUARDED] = Guarded()
        config.stash[SHARED] = {"run": "run", "door": str(config.stash[GUARDED].door)}


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["postgres"] = node.config.stash[SHARED]


def pytest_collection_finish(session: pytest.Session) -> None:
    """It starts while other tests run, if any test says that it will be needed."""
    needed = any("postgres" in getattr(item, "fixturenames", ()) for item in session.items)
    if needed and "door" in session.config.stash[SHARED] and not session.config.option.collectonly:
        call_up(Path(session.config.stash[SHARED]["door"]))


def pytest_unconfigure(config: pytest.Config) -> None:
    if GUARDED in config.stash:
        config.stash[GUARDED].end()
    elif not hasattr(config, "workerinput") and SHARED in config.stash:
        Databases(config.stash[SHARED]["dsn"], config.stash[SHARED]["run"]).drop_template()


@pytest.fixture(scope="session")
def postgres(pytestconfig: pytest.Config) -> Databases:
    """The server of this run, by the databases that can be had on it."""
    shared = pytestconfig.stash[SHARED]
    if "door" in shared:
        databases = Databases(serving(Path(shared["door"])).dsn, shared["run"], "STRATEGY FILE_COPY")
    else:
        databases = Databases(shared["dsn"], shared["run"])
    databases.make_template()
    return databases


@pytest.fixture
def database(postgres: Databases) -> Iterator[str]:
    """The DSN of a database of one's own, with the newest schema and no rows."""
    with postgres.fresh() as dsn:
        yield dsn


@pytest.fixture
def empty_database(postgres: Databases) -> Iterator[str]:
    """The DSN of a database of one's own without a schema."""
    with postgres.empty() as dsn:
        yield dsn


@pytest.fixture
def own_postgres() -> Iterator[Server]:
    """A server of one's own, which the test may bring down and start again."""
    with running() as server:
        yield server
