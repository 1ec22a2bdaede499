"""`goclaw run` on Telegram, killed again and again: what was written to the bot is answered, in order. (P1, P2, R1)

Everything happens in one chat, where one reply at a time is on its way: a kill can double one answer and no more.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
import trio

from tests.telegram.process import killed, said, started
from tests.telegram.world import open_town

if TYPE_CHECKING:
    from pathlib import Path

    from tests.telegram.world import Town

FEW, MANY = 5, 100
LIFE_S = 3.0


async def rounds_of(town: Town, place: Path, rounds: int, random: Random, **variables: object) -> list[str]:
    """So many lives, each with messages and a kill at a drawn moment; then one that may finish. What was written."""
    written: list[str] = []
    async with trio.open_nursery() as nursery:
        for number in range(rounds):
            process = await started(nursery, town.api, place, **variables)
            for at in range(random.randint(1, 3)):
                written.append(f"item {number}.{at}.")
                await town.chat.says(town.ann, written[-1])
                await trio.sleep(random.uniform(0, 0.3))
            with trio.move_on_after(random.uniform(0, LIFE_S)):
                seen = len(town.api.requests) + random.randint(1, 12)
                await town.until(lambda seen=seen: len(town.api.requests) >= seen)
            await killed(process)
        process = await started(nursery, town.api, place, **variables)
        await town.until(lambda: {answered(text) for text in town.chat.texts} >= set(written))
        await town.until(lambda: not town.api.updates.pending)
        await killed(process)
    return written


def answered(text: str) -> str:
    """The message that this is the answer to."""
    return text.split("\n")[0].removeprefix("You said: ")


def check(town: Town, place: Path, written: list[str], kills: int) -> None:
    answers = [answered(text) for text in town.chat.texts]
    assert list(dict.fromkeys(answers)) == written, "all of them, in order"
    assert len(answers) - len(written) <= kills, "a kill doubles the one answer that is on its way, and no other"
    assert "canary" not in said(place).lower()


@pytest.mark.parametrize("seed", [1])
async def test_every_message_is_answered_whatever_is_killed_when(tmp_path: Path, seed: int) -> None:
    """On files: at least once, in order, and no more doubles than kills; the token is in no file. (R1, S15)"""
    async with open_town(deadline_s=120) as town:
        written = await rounds_of(town, tmp_path / "home", FEW, Random(seed))
        check(town, tmp_path / "home", written, FEW)


async def test_every_message_is_answered_on_a_database_too(tmp_path: Path, database: str) -> None:
    """The same on Postgres, where the next gateway waits for the lease of the one that was killed. (R1)"""
    async with open_town(deadline_s=180) as town:
        options = {"postgres_dsn": database, "postgres_lease": 3}
        written = await rounds_of(town, tmp_path / "home", 3, Random(2), **options)
        check(town, tmp_path / "home", written, 3)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(2))
async def test_a_hundred_kills(tmp_path: Path, seed: int) -> None:
    """The same for as long as a coffee takes. (R1)"""
    async with open_town(deadline_s=1200) as town:
        written = await rounds_of(town, tmp_path / "home", MANY, Random(seed))
        check(town, tmp_path / "home", written, MANY)


async def test_a_stop_that_was_answered_holds_through_a_kill(tmp_path: Path) -> None:
    """Once "Stopped" is seen, nothing of that run is ever sent, by the next gateway neither. (P7)"""
    async with open_town(deadline_s=120) as town, trio.open_nursery() as nursery:
        home = tmp_path / "home"
        process = await started(nursery, town.api, home)
        await town.chat.says(town.ann, "count to 7")
        await town.until(lambda: town.chat.actions)
        await town.chat.says(town.ann, "/stop")
        await town.until(lambda: "Stopped 1 run." in town.chat.texts)
        await killed(process)
        process = await started(nursery, town.api, home)
        await town.chat.says(town.ann, "count to 4")
        await town.until(lambda: "I counted to 4." in town.chat.texts)
        await killed(process)
        assert not any("to 7" in version.text for message in town.chat.answers for version in message.versions)


async def test_another_gateway_takes_over_when_the_one_that_reads_is_killed(tmp_path: Path, database: str) -> None:
    """Of two gateways on one database one reads; after its death the other does, and nothing is lost or fought over."""
    async with open_town(deadline_s=120) as town, trio.open_nursery() as nursery:
        options = {"postgres_dsn": database, "postgres_lease": 3}
        first = await started(nursery, town.api, tmp_path / "first", **options)
        await town.chat.says(town.ann, "one.")
        await town.until(lambda: town.chat.texts)
        second = await started(nursery, town.api, tmp_path / "second", **options)
        await town.chat.says(town.ann, "two.")
        await town.until(lambda: len(town.chat.texts) == 2)
        await killed(first)
        died_at = trio.current_time()
        await town.chat.says(town.ann, "three.")
        await town.until(lambda: "three." in [answered(text) for text in town.chat.texts])
        assert trio.current_time() - died_at < 30
        await killed(second)
        check(town, tmp_path, ["one.", "two.", "three."], 1)
        assert not [request for request in town.api.asked("getUpdates") if request.status == 409]
