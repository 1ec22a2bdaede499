"""One person's chat over many lives of goclaw, each of which ends by SIGKILL: what was accepted, what became of it.

After each life the files are read while nobody works on them. A line was accepted if it is found there.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from store.files import read_json
from store.records import MessageState

if TYPE_CHECKING:
    from pathlib import Path

ANSWERED = (MessageState.DONE, MessageState.QUARANTINED)


class Found(NamedTuple):
    """What is in the store while nobody works on it; messages by external id: a process's chat, a line's number."""

    states: dict[str, MessageState]
    unsent: list[str]
    running: set[str]
    being_told: set[str]
    """Those whose answer waits to be sent, or was sent and not marked."""


class Lives:
    def __init__(self, place: Path, seed: int) -> None:
        self.place = place
        self.random = Random(seed)
        self.said = ""
        self.texts: dict[str, str] = {}
        """What was accepted, by external id."""
        self.ended: dict[str, MessageState] = {}
        self.kills = 0
        self.running_at_kills: Counter[str] = Counter()
        """By text, and so is the next."""
        self.told_at_kills: Counter[str] = Counter()

    def killed(self, lines: list[str], said: str) -> None:
        """A life has ended in which these lines were typed."""
        self.kills += 1
        self.said += said
        found = self.check(lines)
        self.running_at_kills.update(self.texts[one] for one in found.running)
        self.told_at_kills.update(self.texts[one] for one in found.being_told if one in self.texts)

    def left(self, said: str) -> None:
        """The last life has ended by itself: everything was answered."""
        self.said += said
        self.check([])
        assert set(self.ended) == set(self.texts)

    def check(self, lines: list[str]) -> Found:
        found = look(self.place / "data")
        self.learn(found, lines)
        assert not set(self.texts) - set(found.states), "an accepted message is gone"
        for external_id, state in found.states.items():
            if external_id in self.ended:
                assert state is self.ended[external_id], f"{self.texts[external_id]!r} was {self.ended[external_id]}"
            elif state.terminal:
                self.ended[external_id] = state
                self.check_answer(external_id, state, found)
        return found

    def learn(self, found: Found, lines: list[str]) -> None:
        """Which of the typed lines were accepted: a new chat's ids, numbered as they were typed."""
        new = sorted((one for one in found.states if one not in self.texts), key=lambda one: int(one.split(":")[1]))
        assert [int(one.split(":")[1]) for one in new] == list(range(1, len(new) + 1))
        assert len({one.split(":")[0] for one in new}) <= 1
        self.texts |= dict(zip(new, lines, strict=False))

    def check_answer(self, external_id: str, state: MessageState, found: Found) -> None:
        """Nothing is half there: what has ended well was answered, or its answer waits to be sent."""
        text = self.texts[external_id]
        if state in ANSWERED and self.is_told(text):
            assert text in self.said + "\n".join(found.unsent), f"{text!r} is {state} and nobody was told"

    def is_told(self, text: str) -> bool:
        """Whether an answer repeats this text."""
        return True


def look(data: Path) -> Found:
    if not data.is_dir():
        return Found({}, [], set(), set())
    tables = read_json(data).tables
    messages, seen, replies = tables.messages.rows.values(), tables.seen.rows, tables.replies.rows.values()
    states = {message.incoming.key.external_id: message.state for message in messages}
    states |= {key.external_id: known.state for key, known in seen.items()}
    names = {message.id: message.incoming.key.external_id for message in messages}
    names |= {known.id: key.external_id for key, known in seen.items()}
    return Found(
        states,
        [reply.note.text for reply in replies],
        {name for name, state in states.items() if state is MessageState.RUNNING},
        {names[answered] for reply in replies for answered in reply.answers if answered in names},
    )
