"""The command that people start, killed again and again: what was accepted is answered, what was stopped never runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from store.records import MessageState
from tests.faults.lives import ANSWERED, Lives
from tests.flow.process import over_pipes

if TYPE_CHECKING:
    from pathlib import Path

SHORT_LIFE_S = 1.2
LAST_BREATH_S = 0.3


class Chat(Lives):
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
            self.killed(lines, process.rest())

    def last_life(self) -> None:
        """Everything that is still open is answered; then it leaves by itself."""
        with over_pipes(self.place, queue_debounce=0) as process:
            process.end_input()
            self.left(process.ends_with(0))

    def lines(self, number: int) -> list[str]:
        lines = [f"say {number}.{place}." for place in range(self.random.randint(1, 3))]
        if self.random.random() < 0.5:
            lines.insert(self.random.randint(0, len(lines)), "count to 4")
        if self.random.random() < 0.5:
            lines.append(self.random.choice(("/stop", "/stopall")))
            lines.append(f"say {number}.after.")
        return lines

    def is_told(self, text: str) -> bool:
        return text.startswith("say")


def play(place: Path, seed: int, rounds: int) -> None:
    chat = Chat(place, seed)
    for number in range(rounds):
        chat.live(number)
    chat.last_life()
    states = list(chat.ended.values())
    answered = [text for one, text in chat.texts.items() if chat.ended[one] in ANSWERED and chat.is_told(text)]
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
