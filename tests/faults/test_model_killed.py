"""A gateway in front of a model, killed again and again while it streams: what was accepted is answered.

Three witnesses are compared: the files (what was accepted, what ran and what was being told at each kill), the person
(what was seen) and the model's server, which outlives the gateways (what it was asked).

    the person saw it       at least once, and once more at most for each kill at which it ran or was being told
    the model was asked     once more at most for each kill at which it ran
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from store.records import MessageState
from tests.fakes.beside import Beside, model_beside
from tests.fakes.script import CallTool, Say
from tests.faults.lives import Lives
from tests.flow.process import Process, over_pipes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes.answer import Received
    from tests.fakes.script import Asked, Steps

SETTINGS: dict[str, Any] = {
    "queue_debounce": 0,
    "queue_cap": 1000,
    "session_max_dm": 4,
    "openai_api_key": "k",
    "anthropic_api_key": "k",
}
SHORT_LIFE_S = 2.5
LAST_BREATH_S = 0.6
slowly = partial(Say, chunk=4, pause_s=0.03)


def slow_model(asked: Asked) -> Steps:
    """A helper, a file or only words, all of it slowly."""
    text = asked.last_user
    if asked.last.role == "tool" or text.endswith("alone."):
        return [slowly(f"Answer to {text} " + "so it goes, " * 4), Say("and ends.")]
    if text.endswith("helper."):
        return [slowly("Let me see. "), CallTool("spawn_subagent", {"task": f"the helper of {text} alone."})]
    return [CallTool("write_file", {"path": "notes.txt", "text": text}), CallTool("read_file", {"path": "notes.txt"})]


class ModelChat(Lives):
    def __init__(self, place: Path, seed: int, model: Beside) -> None:
        super().__init__(place, seed)
        self.model = model
        (place / "agents.toml").write_text(model.agents_toml())

    def live(self, number: int) -> None:
        lines = [f"{number}.{at} {self.kind()}." for at in range(self.random.randint(1, 4))]
        with over_pipes(self.place, **SETTINGS) as process:
            process.type("".join(f"{line}\n" for line in lines))
            self.wait(process)
            process.kill()
            self.killed(lines, process.rest())
        self.model.until(lambda: not self.model.server.open)

    def kind(self) -> str:
        return self.random.choice(("alone", "with a helper", "with a file"))

    def wait(self, process: Process) -> None:
        """Until a drawn moment: of its start, of a request to the model, or of an answer to the person."""
        before = len(self.model.requests)
        match self.random.randrange(4):
            case 0:
                return process.read_for(self.random.uniform(0, SHORT_LIFE_S))
            case 1:
                process.expect("and ends|Set aside")
            case _:
                number = before + self.random.randint(1, 5)
                self.model.until(lambda: len(self.model.requests) >= number or self.idle(before))
        return process.read_for(self.random.uniform(0, LAST_BREATH_S))

    def idle(self, before: int) -> bool:
        """There may be fewer requests than were drawn."""
        return len(self.model.requests) > before and not self.model.server.open

    def last_life(self) -> None:
        with over_pipes(self.place, **SETTINGS) as process:
            process.end_input()
            self.left(process.ends_with(0))

    def seen(self, text: str) -> int:
        return len(re.findall(rf"^Answer to {re.escape(text)} .*and ends\.$", self.said, re.MULTILINE))

    def runs(self, text: str) -> int:
        """How often the model was asked for it anew."""
        return sum(begins(received, text) for received in self.model.requests)

    def problems(self) -> list[str]:
        """What is wrong with any message."""
        found = {text: self.problem(text) for text in self.texts.values()}
        return [f"{text}: {problem}" for text, problem in found.items() if problem]

    def problem(self, text: str) -> str:
        seen, runs = self.seen(text), self.runs(text)
        running, told = self.running_at_kills[text], self.told_at_kills[text]
        state = next(self.ended[one] for one, known in self.texts.items() if known == text)
        if state is MessageState.QUARANTINED:
            told_so = f'Set aside after 3 attempts that never finished: "{text}"' in self.said
            return "" if running >= 3 and told_so else f"set aside after {running} kills, told: {told_so}"
        if state is not MessageState.DONE:
            return f"it is {state}"
        if not 1 <= seen <= 1 + running + told:
            return f"seen {seen} times; it ran at {running} kills and was being told at {told}"
        return "" if 1 <= runs <= 1 + running else f"asked {runs} times; it ran at {running} kills"


def begins(received: Received, text: str) -> bool:
    return bool(received.asked.messages) and received.asked.last.role == "user" and received.asked.last_user == text


def play(place: Path, backend: str, seed: int, rounds: int) -> None:
    with model_beside(backend, slow_model) as model:
        chat = ModelChat(place, seed, model)
        for number in range(rounds):
            chat.live(number)
        chat.last_life()
        assert not chat.problems()
        states = list(chat.ended.values())
        doubles = sum(chat.seen(text) - 1 for text in chat.texts.values() if chat.seen(text))
        assert doubles <= chat.running_at_kills.total() + chat.told_at_kills.total()
        assert states.count(MessageState.DONE) >= rounds, "hardly anything was accepted: this shows nothing"
        assert chat.running_at_kills.total() >= rounds / 3, "hardly anything ran at the kills: this shows nothing"


@pytest.mark.parametrize(("backend", "rounds"), [("openai", 6), ("anthropic", 4)])
def test_a_gateway_that_is_killed_while_its_model_streams_answers_everything(
    tmp_path: Path, backend: str, rounds: int
) -> None:
    """SIGKILL at any moment, ten times: all is answered, and doubled only what was in flight at a kill. (R1, P1)"""
    play(tmp_path, backend, seed=5, rounds=rounds)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("backend", ["openai", "anthropic"])
def test_a_gateway_that_is_killed_a_hundred_times_answers_everything(tmp_path: Path, backend: str, seed: int) -> None:
    """The same, 25 times in each of four chats with each backend. (R1, P1)"""
    play(tmp_path, backend, seed, rounds=25)
