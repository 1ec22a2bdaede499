"""A service manager's stop while a model streams: what can finish within the grace does, the rest is kept. (R20)"""

from __future__ import annotations

import re
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from store.records import MessageState
from tests.fakes.beside import model_beside
from tests.fakes.script import Pause, Say
from tests.faults.lives import look
from tests.flow.process import PROMPT, in_terminal, over_pipes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.fakes.beside import Beside
    from tests.fakes.script import Asked, Steps

GRACE_S = 3
AT_ONCE_S = 2.0
SETTINGS: dict[str, Any] = {"queue_debounce": 0, "session_max_dm": 10, "lane_main": 10, "shutdown_grace": GRACE_S}
LONG, SHORT = [f"long {number}" for number in range(7)], [f"short {number}" for number in range(3)]


class Holding:
    """Says a few words at once; the rest of a long answer only when it no longer holds."""

    holds = True

    def __call__(self, asked: Asked) -> Steps:
        words = f"Answer to {asked.last_user}."
        if asked.last_user.startswith("short"):
            return [Say(words, chunk=1, pause_s=0.05)]
        return [Say("It begins: "), Pause(600), Say(words)] if self.holds else [Say(words)]


@contextmanager
def ten_running(place: Path, backend: str = "openai", **settings: Any) -> Iterator[tuple[Any, Beside, Holding]]:
    script = Holding()
    with model_beside(backend, script) as model:
        (place / "agents.toml").write_text(model.agents_toml())
        with over_pipes(place, **(SETTINGS | settings)) as process:
            process.type("".join(f"{line}\n" for line in LONG + SHORT))
            model.until(lambda: len(model.requests) == 10)
            yield process, model, script


def answers(text: str) -> list[str]:
    return sorted(re.findall(r"Answer to (.*)\.", text))


def next_start(place: Path, script: Holding) -> list[str]:
    """What the next process answers by itself."""
    script.holds = False
    with over_pipes(place, **SETTINGS) as process:
        process.end_input()
        return answers(process.ends_with(0))


@pytest.mark.parametrize("backend", ["openai", "anthropic"])
def test_a_stop_lets_ten_runs_finish_within_the_grace_and_keeps_the_rest(tmp_path: Path, backend: str) -> None:
    """The short ones are answered, the streams of the long ones are cut at its end, the next start answers those."""
    with ten_running(tmp_path, backend) as (process, model, script):
        process.signal(signal.SIGTERM)
        began = time.monotonic()
        process.expect("Answer to short")
        process.type("too late\n")
        model.until(lambda: not model.server.open)
        cut_after_s = time.monotonic() - began
        assert answers(process.ends_with(0)) == SHORT
        assert GRACE_S - 0.5 <= cut_after_s <= GRACE_S + AT_ONCE_S
        assert sum(received.cut for received in model.requests) == len(LONG)
        assert set(look(tmp_path / "data").states.values()) == {MessageState.DONE, MessageState.ACCEPTED}
        assert next_start(tmp_path, script) == LONG


def test_a_second_stop_ends_it_at_once(tmp_path: Path) -> None:
    """Although the grace is long: exit code 0, nothing lost."""
    with ten_running(tmp_path, shutdown_grace=600) as (process, model, script):
        process.signal(signal.SIGTERM)
        process.expect("Answer to short")  # it has heard the first one
        began = time.monotonic()
        process.signal(signal.SIGTERM)
        output = process.ends_with(0)
        assert time.monotonic() - began <= AT_ONCE_S
        model.until(lambda: not model.server.open)
        assert sorted({*answers(output), *next_start(tmp_path, script)}) == LONG + SHORT


@pytest.mark.parametrize("after_s", [0.0, 0.2, 0.5, 0.8, 1.2])
def test_a_stop_during_the_start_loses_nothing(tmp_path: Path, after_s: float) -> None:
    """Before Python listens the signal ends it, then it leaves well; what was accepted is answered by the next one."""
    script = Holding()
    with model_beside("openai", script) as model:
        (tmp_path / "agents.toml").write_text(model.agents_toml())
        with over_pipes(tmp_path, **(SETTINGS | {"shutdown_grace": 0})) as process:
            process.type("long 0\nlong 1\n")
            process.read_for(after_s)
            process.signal(signal.SIGTERM)
            output = process.rest()
            assert process.popen.wait() in (0, -signal.SIGTERM)
            assert "Traceback" not in output
        accepted = len(look(tmp_path / "data").states)
        assert next_start(tmp_path, script) == LONG[:accepted]


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "Ctrl-C", "Ctrl-D"])
def test_one_that_waits_for_another_gateway_leaves_well(tmp_path: Path, database: str, how: str) -> None:
    """Stopped while it waits for its turn: exit code 0, a word, and the terminal as it was. (R20)"""
    with over_pipes(tmp_path, queue_debounce=0, postgres_dsn=database) as first:
        first.type("hello\n")
        first.expect("demo agent")
        with in_terminal(tmp_path, postgres_dsn=database, data_dir=tmp_path / "elsewhere") as waits:
            before = waits.terminal_settings()
            waits.expect(r"waiting until it has\s+ended")
            waits.expect(PROMPT)
            if how.startswith("SIG"):
                waits.signal(signal.Signals[how])
            else:
                waits.type({"Ctrl-C": "\x03", "Ctrl-D": "\x04"}[how])
            waits.expect("Bye.")
            assert waits.terminal_settings() == before
            waits.ends_with(0)
        first.type("still there\n")
        first.expect("You said: still there")
