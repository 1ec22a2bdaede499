"""The fakes beside a process: started by hand, asked over loopback, ended by a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from tests.unit.fakes.sdks import KEY, LEFT_BEHIND, Sdk, both, leave, read, read_texts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = LEFT_BEHIND
PROJECT = Path(__file__).parents[3]
DEADLINE_S = 30
RULES = [
    {"match": "weather", "role": "user", "steps": ["Let me see. ", {"tool": "weather", "arguments": {"city": "Rome"}}]},
    {"match": "slow down", "attempts": 1, "steps": [{"status": 429, "headers": {"retry-after": "3"}}]},
    {"match": "", "steps": [{"say": "anything", "chunk": 3}, {"end": "length"}, {"count": [10, 20]}]},
]


@dataclass(frozen=True, slots=True)
class Running:
    """A process, and the address that it printed; what it says on stderr is known at its end."""

    process: trio.Process
    base_url: str

    async def end(self, how: signal.Signals) -> tuple[int, str]:
        assert self.process.stderr is not None
        self.process.send_signal(how)
        told = b"".join([bytes(data) async for data in self.process.stderr])
        return await self.process.wait(), told.decode()


@asynccontextmanager
async def running(sdk: Sdk, *arguments: str) -> AsyncIterator[Running]:
    command = [sys.executable, "-m", f"tests.fakes.{sdk.name}", *arguments]
    process = await trio.lowlevel.open_process(
        command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    async with process.stdout, process.stderr:
        try:
            with trio.fail_after(DEADLINE_S):
                printed = b""
                while not printed.endswith(b"\n"):
                    printed += await process.stdout.receive_some() or b"(it ended)\n"
                yield Running(process, printed.decode().strip())
        finally:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


@both
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_it_prints_its_address_serves_and_ends_well(sdk: Sdk, how: signal.Signals) -> None:
    """With exit code 0 and no traceback, also with a stream under way; stderr tells what was asked."""
    async with running(sdk) as fake:
        client = sdk.client(fake)
        assert "".join((await read(sdk, client, "hello")).texts) == "You said: hello"
        stream = await sdk.start(client, "Ann: count to 9999")
        await read_texts(sdk, stream, 1)
        code, told = await fake.end(how)
        await leave(stream)
        await client.close()
    assert code == 0
    assert "Traceback" not in told
    assert "last by user: 'hello'" in told
    assert "1: finished, status 200" in told


@both
async def test_a_script_file_is_followed(sdk: Sdk, tmp_path: Path) -> None:
    """Rule by rule: by the last message, by its role and by the attempt; and only the right key is let in."""
    file = tmp_path / "script.json"
    file.write_text(json.dumps(RULES))
    async with running(sdk, "--script", str(file), "--key", KEY) as fake:
        async with sdk.client(fake, api_key="another") as stranger:
            with pytest.raises(sdk.errors.AuthenticationError):
                await sdk.ask(stranger, "hello")
        async with sdk.client(fake) as client:
            got = await sdk.ask(client, "the weather?")
            assert (got.texts, [call[1:] for call in got.calls]) == (
                ["Let me see. "],
                [["weather", '{"city": "Rome"}']],
            )
            with pytest.raises(sdk.errors.RateLimitError):
                await sdk.ask(client, "slow down")
            got = await read(sdk, client, "slow down")
            assert got.texts == ["any", "thi", "ng"]
            assert (got.tokens_in, got.tokens_out) == (10, 20)


@both
async def test_a_script_that_cannot_be_read_is_said_so(sdk: Sdk, tmp_path: Path) -> None:
    """By the rule, with the exit code of a wrong argument."""
    file = tmp_path / "script.json"
    file.write_text('[{"steps": ["fine"]}, {"steps": [{"shout": "x"}]}]')
    command = [sys.executable, "-m", f"tests.fakes.{sdk.name}", "--script", str(file)]
    ended = await trio.run_process(command, cwd=PROJECT, capture_stderr=True, check=False)
    assert ended.returncode == 2
    assert b"rule 2 cannot be read" in ended.stderr
    assert b"Traceback" not in ended.stderr
