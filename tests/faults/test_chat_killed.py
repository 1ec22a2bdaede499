"""The command that people start, killed again and again: what was accepted is answered, what was stopped never runs."""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from store.files import read_json
from store.records import MessageState
from tests.flow.process import over_pipes

if TYPE_CHECKING:
    from pathlib import Path

SHORT_LIFE_S = 1.2
LAST_BREATH_S = 0.3
ANSWERED = (MessageState.DONE, MessageState.QUARANTINED)


class Found(NamedTuple):
    """What is in the store while nobody works on it."""

    states: dict[str, MessageState]
    """By external id: the chat of a process and the number of a line in it."""
    unsent: list[str]


class Chat:
    """One person's chat over many lives of goclaw."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place = place
        self.random = Random(seed)
        self.said = ""
        self.texts: dict[str, str] = {}
        """What was accepted, by external id."""
        self.ended: dict[str, MessageState] = {}
        self.kills = 0

    def live(self, number: int) -> None:
        """One life: something is typed, and some time later the process is gone."""
        lines = self.lines(number)
        with over_pipes(self.place, queue_debounce=0, queue_cap=1000) as process:
            process.type("".join(f"{line}\n" for line in lines))
            if number % 2:
                process.read_for(self.random.uniform(0, SHORT_LIFE_S))
            else:
                process.expect("You said|Stopped|Nothing to stop|counted|Set aside")
                process.read_for(self.random.uniform(0, LAST_BREATH_S))
            process.kill()
            self.said += process.rest()
        self.kills += 1
        self.check(lines)

    def last_life(self) -> None:
        """Everything that is still open is answered; then it leaves by itself."""
        with over_pipes(self.place, queue_debounce=0) as process:
            process.end_input()
            self.said += process.ends_with(0)
        self.check([])
        assert set(self.ended) == set(self.texts)

    def lines(self, number: int) -> list[str]:
        lines = [f"say {number}.{place}." for place in range(self.random.randint(1, 3))]
        if self.random.random() < 0.5:
            lines.insert(self.random.randint(0, len(lines)), "count to 4")
        if self.random.random() < 0.5:
            lines.append(self.random.choice(("/stop", "/stopall")))
            lines.append(f"say {number}.after.")
        return lines

    def check(self, lines: list[str]) -> None:
        found = look(self.place / "data")
        self.learn(found, lines)
        assert not set(self.texts) - set(found.states), "an accepted message is gone"
        for external_id, state in found.states.items():
            if external_id in self.ended:
                assert state is self.ended[external_id], f"{self.texts[external_id]!r} was {self.ended[external_id]}"
            elif state.terminal:
                self.ended[external_id] = state
                self.check_answer(external_id, state, found)

    def learn(self, found: Found, lines: list[str]) -> None:
        """Which of the typed lines were accepted: a new chat's ids, numbered as they were typed."""
        new = sorted((one for one in found.states if one not in self.texts), key=lambda one: int(one.split(":")[1]))
        assert [int(one.split(":")[1]) for one in new] == list(range(1, len(new) + 1))
        assert len({one.split(":")[0] for one in new}) <= 1
        self.texts |= dict(zip(new, lines, strict=False))

    def check_answer(self, external_id: str, state: MessageState, found: Found) -> None:
        """Nothing is half there: what has ended well was answered, or its answer waits to be sent."""
        text = self.texts[external_id]
        if state in ANSWERED and text.startswith("say"):
            assert text in self.said + "\n".join(found.unsent), f"{text!r} is {state} and nobody was told"


def look(data: Path) -> Found:
    if not data.is_dir():
        return Found({}, [])
    tables = read_json(data).tables
    states = {message.incoming.key.external_id: message.state for message in tables.messages.rows.values()}
    states |= {key.external_id: seen.state for key, seen in tables.seen.rows.items()}
    return Found(states, [reply.note.text for reply in tables.replies.rows.values()])


def play(place: Path, seed: int, rounds: int) -> None:
    chat = Chat(place, seed)
    for number in range(rounds):
        chat.live(number)
    chat.last_life()
    states = list(chat.ended.values())
    answered = [text for one, text in chat.texts.items() if chat.ended[one] in ANSWERED and text.startswith("say")]
    assert len(answered) >= rounds / 2, "hardly anything was accepted: this shows nothing"
    assert not [text for text in answered if text not in chat.said]
    assert not [
        text for one, text in chat.texts.items() if chat.ended[one] is MessageState.STOPPED and again(chat, text)
    ]
    assert states.count(MessageState.STOPPED) >= rounds / 20
    twice = [text for text in answered if len(re.findall(re.escape(f"You said: {text}"), chat.said)) > 1]
    assert len(twice) <= 2 * chat.kills


def again(chat: Chat, text: str) -> bool:
    """Whether somebody answered it all the same."""
    return f"You said: {text}" in chat.said


def test_a_chat_that_is_killed_again_and_again_answers_everything(tmp_path: Path) -> None:
    """SIGKILL at any moment, ten times: what was accepted is answered, what was stopped stays stopped. (P1, P6, P7)"""
    play(tmp_path, seed=7, rounds=10)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(4))
def test_a_chat_that_is_killed_a_hundred_times_answers_everything(tmp_path: Path, seed: int) -> None:
    """The same, 25 times in each of four chats. (P1, P6, P7)"""
    play(tmp_path, seed, rounds=25)
