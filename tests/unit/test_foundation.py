"""The promises of the files that everything stands on: locks, make targets, packaging and the example of settings."""

import importlib
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from gateway.settings import Settings
from gateway.variables import env_example

ROOT = Path(__file__).parents[2]
LOCKS = ["run.lock", "dev.lock"]
ROOMS = {"gateway", "scheduler", "cron", "heartbeat", "store"}
TARGETS = {"help", "run", "test", "check", "format", "lock", "bench", "simulate", "faults", "soak", "clean"}


def lock_entries(name: str) -> list[str]:
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return [entry for entry in "\n".join(lines).replace("\\\n", " ").splitlines() if entry.strip()]


def pins(name: str) -> dict[str, str]:
    return dict(entry.split()[0].split("==") for entry in lock_entries(name))


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9-]", requirement)[0] for requirement in requirements}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_is_pinned_and_hashed(lock: str) -> None:
    """A package can only be installed in the version and with the content that was locked."""
    entries = lock_entries(lock)
    assert len(entries) > 10
    for entry in entries:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9][\w.]*( ;[^\\]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*", entry), entry


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_source(lock: str) -> None:
    """Where packages come from is the reader's choice: a lock holds no address, index or path."""
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    assert not re.search(r"://|\bindex\b|find-links|trusted-host|file:| @ |(^|\s)\.{0,2}/\w", text)


def test_users_run_what_was_tested() -> None:
    """The run lock is a part of the dev lock, version by version."""
    assert pins("run.lock").items() <= pins("dev.lock").items()


def test_the_locks_cover_what_the_project_declares() -> None:
    """Every declared dependency is locked, and so is the build backend."""
    declared, groups = project()["project"]["dependencies"], project()["dependency-groups"]
    assert names(declared) | {"setuptools"} <= pins("run.lock").keys()
    assert names(groups["dev"]) | {"setuptools"} <= pins("dev.lock").keys()
    assert names(groups["dev"]) & pins("run.lock").keys() == {"h11"}  # which the models' SDKs bring along


def test_make_offers_the_documented_targets() -> None:
    """Plain `make` lists exactly the targets there are, and the guide for contributors names no other."""
    listed = subprocess.run(
        ["make"], cwd=ROOT, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True
    ).stdout
    assert set(re.findall(r"^  make (\w+) ", listed, re.MULTILINE)) == TARGETS
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`make ([a-z]+)", guide)) <= TARGETS


def test_continuous_integration_runs_make_check_from_the_root(tmp_path: Path) -> None:
    """`.ci/run` does what a person does by hand, wherever it is called from, and passes the failure on."""
    make = tmp_path / "make"
    make.write_text('#!/bin/sh\necho "$(pwd -P) $*"\nexit 3\n')
    make.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        [ROOT / ".ci" / "run"], cwd=tmp_path, env={"PATH": path}, capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.returncode) == (f"{ROOT.resolve()} check\n", 3)


def test_only_the_rooms_are_installed() -> None:
    """Tests and benchmarks stay in the repository; every room is packaged."""
    rules = project()["tool"]["setuptools"]["packages"]["find"]
    found = importlib.import_module("setuptools").find_packages(str(ROOT), **rules)
    assert {package.split(".")[0] for package in found} == ROOMS
    assert {"gateway.agents", "gateway.channels"} <= set(found)


def test_the_example_of_settings_has_not_drifted() -> None:
    """`.env.example` is what `goclaw config example` prints; renew it with that command."""
    assert (ROOT / ".env.example").read_text(encoding="utf-8") == env_example(Settings)
