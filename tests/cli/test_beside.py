"""The command line beside HTTP clients, on one store: nobody's change is lost, and nobody stands in another's way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import trio

from tests.cli.world import Gateway, open_gateway
from tests.flow.process import COMMAND, DEADLINE_S, environment

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 4 * DEADLINE_S
ROUNDS = 30
CLIENTS = 3
COMMANDS = 2


async def goclaw(place: Path, *arguments: str, **variables: Any) -> Any:
    """The real command; what its JSON says."""
    environ = environment(place, **variables)
    ended = await trio.run_process(
        [str(COMMAND), *arguments, "--json"],
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        env=environ,
        cwd=place,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    return json.loads(ended.stdout)


class Beside:
    """Writers that each have a field of one schedule to themselves, and make schedules of their own as well."""

    def __init__(self, gateway: Gateway, place: Path, **variables: Any) -> None:
        self.gateway = gateway
        self.place = place
        self.variables = variables
        self.job = gateway.job(rules={"max_retries": 0})["id"]
        self.last: dict[str, Any] = {}
        self.made: list[int] = []

    async def over_http(self, client: httpx2.AsyncClient) -> None:
        """The name, which nobody else writes, again and again."""
        for number in range(ROUNDS):
            self.last["name"] = f"name {number}"
            changed = await client.patch(f"/v1/schedules/{self.job}", json={"name": self.last["name"]})
            assert changed.json()["name"] == self.last["name"]

    async def rules_over_http(self, client: httpx2.AsyncClient) -> None:
        for number in range(ROUNDS):
            self.last["max_retries"] = number % 20
            rules = {"max_retries": self.last["max_retries"]}
            changed = await client.patch(f"/v1/schedules/{self.job}", json={"rules": rules})
            assert changed.json()["rules"]["max_retries"] == self.last["max_retries"]

    async def many_over_http(self, client: httpx2.AsyncClient, who: int) -> None:
        for number in range(ROUNDS // CLIENTS):
            body = {"when": "every day", "message": f"http {who} {number}"}
            self.made.append((await client.post("/v1/schedules", json=body)).json()["id"])

    async def messages(self) -> None:
        """The message, from the command line."""
        for number in range(COMMANDS):
            self.last["message"] = f"message {number}"
            changed = await self.goclaw("cron", "edit", str(self.job), "--message", self.last["message"])
            assert changed["message"] == self.last["message"]

    async def pauses(self) -> None:
        """Pauses and resumptions from the command line; the last one is a pause."""
        for _ in range(COMMANDS // 2):
            assert (await self.goclaw("cron", "resume", str(self.job)))["status"] == "active"
            assert (await self.goclaw("cron", "pause", str(self.job), "--reason", "beside"))["status"] == "paused"

    async def more(self) -> None:
        for number in range(COMMANDS):
            self.made.append((await self.goclaw("cron", "add", f"every day: command {number}"))["id"])

    async def goclaw(self, *arguments: str) -> Any:
        return await goclaw(self.place, *arguments, **self.variables)

    async def run(self) -> None:
        url, headers = self.gateway.client.base_url, self.gateway.client.headers
        with trio.fail_after(PATIENCE_S):
            async with (
                httpx2.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE_S, trust_env=False) as client,
                trio.open_nursery() as nursery,
            ):
                for writer in (self.over_http, self.rules_over_http):
                    nursery.start_soon(writer, client)
                for who in range(CLIENTS):
                    nursery.start_soon(self.many_over_http, client, who)
                for command in (self.messages, self.pauses, self.more):
                    nursery.start_soon(command)

    def check(self) -> None:
        """Every field holds what its one writer has written last, and every schedule that was made is there once."""
        kept = self.gateway.get(f"/v1/schedules/{self.job}")
        found = {"name": kept["name"], "message": kept["message"], "max_retries": kept["rules"]["max_retries"]}
        assert found == self.last
        assert (kept["status"], kept["reason"]) == ("paused", "beside")
        assert len(set(self.made)) == len(self.made) == ROUNDS // CLIENTS * CLIENTS + COMMANDS
        listed = {job["id"] for job in self.gateway.get("/v1/schedules")["items"]}
        assert listed == {self.job, *self.made}


async def test_commands_beside_http_clients_on_files(tmp_path: Path) -> None:
    """The command asks the gateway that has the directory: no update is lost."""
    with open_gateway(tmp_path) as gateway:
        beside = Beside(gateway, tmp_path)
        await beside.run()
        beside.check()


async def test_commands_beside_the_gateway_of_another_machine(tmp_path: Path, database: str) -> None:
    """The command finds no gateway here and works on the database itself: no update is lost either."""
    here = tmp_path / "here"
    here.mkdir()
    with open_gateway(tmp_path, postgres_dsn=database) as gateway:
        beside = Beside(gateway, here, postgres_dsn=database, data_dir=here / "data")
        await beside.run()
        beside.check()
        assert not (here / "data" / "LOCK").exists()


async def test_commands_while_a_gateway_starts(tmp_path: Path) -> None:
    """On a fresh directory everything is started at the same time: each has its turn, and nothing fails."""
    made: list[int] = []
    done = trio.Event()

    async def add(number: int) -> None:
        made.append((await goclaw(tmp_path, "cron", "add", f"every day: {number}"))["id"])
        if len(made) == 3:
            done.set()

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for number in range(2):
                nursery.start_soon(add, number)
            await trio.lowlevel.checkpoint()
            with open_gateway(tmp_path) as gateway:
                nursery.start_soon(add, 2)
                await done.wait()
                assert {job["id"] for job in gateway.get("/v1/schedules")["items"]} == set(made)
    assert len(set(made)) == 3
