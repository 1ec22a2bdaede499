"""A gateway in a process of its own, asked by schemathesis what it allows to be asked, and much that it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.flow.process import over_pipes

if TYPE_CHECKING:
    from collections.abc import Sequence

TOKEN = "gateway_" + "t" * 43
ROOT = Path(__file__).parents[2]
GATEWAY = (sys.executable, "-m", "tests.http.patient")
COMMAND = Path(sys.executable).with_name("st")
STREAM = "/v1/notifications/stream"
PATIENCE_S = 1_500
SESSION = "default:main:http::main::0"


def seed(client: httpx2.Client) -> None:
    """Something of everything, so that not every id is unknown."""
    for path, body in (
        ("/v1/schedules", {"message": "look", "when": "every day at 9am"}),
        ("/v1/schedules", {"message": "look", "webhook": True}),
        ("/v1/tenants", {"id": "other", "name": "Other"}),
        ("/v1/tokens", {"name": "one", "scopes": ["read"]}),
        ("/v1/schedules/2/trigger", {}),
    ):
        answer = client.post(path, json=body)
        assert answer.status_code in (201, 202), answer.text
    assert client.post("/v1/messages", json={"text": "hello", "wait": 30}).json()["session"] == SESSION


def fuzzed(place: Path, *arguments: str) -> None:
    with over_pipes(place, command=GATEWAY, environ={"PYTHONPATH": str(ROOT)}, gateway_token=TOKEN) as process:
        url = process.expect(r"http://\S+(?=\n)")
        with httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False) as client:
            seed(client)
        found = subprocess.run(
            [str(COMMAND), *asked(url), *arguments], cwd=place, capture_output=True, text=True, timeout=PATIENCE_S
        )
        process.read_for(0.1)
        assert found.returncode == 0, f"{readable(found.stdout)}\n{process.output[-4_000:]}"
        assert "a mistake of ours" not in process.output


def asked(url: str) -> Sequence[str]:
    return [
        *("run", f"{url}/openapi.json", "--header", f"Authorization: Bearer {TOKEN}"),
        *("--checks", "all", "--exclude-checks", "positive_data_acceptance", "--exclude-path", STREAM),
        *(
            "--warnings",
            "off",
            "--no-color",
            "--max-failures",
            "20",
            "--continue-on-failure",
            "--request-timeout",
            "30",
        ),
    ]


def readable(text: str) -> str:
    return "\n".join(line[:500] for line in text.splitlines() if line.strip())


def test_nothing_that_is_asked_breaks_the_api(tmp_path: Path) -> None:
    """No 500, nothing undocumented, every answer as its schema says, bad data refused; the same requests each time."""
    fuzzed(tmp_path, "--max-examples", "8", "--generation-deterministic", "--phases", "examples,coverage,fuzzing")


@pytest.mark.faults
@pytest.mark.parametrize("seed_", range(1, 4))
def test_nothing_random_breaks_the_api(tmp_path: Path, seed_: int) -> None:
    """The same with many more requests, and with chains of them: what one answers is asked of the next."""
    fuzzed(tmp_path, "--max-examples", "60", "--seed", str(seed_))
