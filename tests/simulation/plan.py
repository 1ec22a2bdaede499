"""What a seed means: the settings, the chats, the trouble and the fates of one simulated world. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Literal

from gateway.settings import LaneSettings, QueueSettings, SessionSettings, Settings, ShutdownSettings
from store.records import DropPolicy, QueueMode, SessionKey

if TYPE_CHECKING:
    from collections.abc import Sequence

Span = tuple[float, float]

MODES: Sequence[QueueMode] = ("queue", "queue", "followup", "collect", "steer", "steer", "interrupt")
DROPS: Sequence[DropPolicy] = ("old", "new")


@dataclass(frozen=True, slots=True)
class Faults:
    """How store and channel misbehave."""

    delayed: float = 0.0
    """Share of the store's calls that take their time, before the effect or after it."""
    longest_s: float = 0.0
    fails_before: float = 0.0
    fails_after: float = 0.0
    """Share of the calls that fail although they had their effect."""
    outages: tuple[Span, ...] = ()
    send_s: float = 0.0
    send_fails: float = 0.0
    send_outages: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    admin: bool = False


@dataclass(frozen=True, slots=True)
class Chat:
    key: SessionKey
    people: tuple[Person, ...]
    polled: bool
    """Its deliveries come one after the other; else each comes when it wants to."""
    actions: int

    @property
    def name(self) -> str:
        return self.key.chat

    @property
    def group(self) -> bool:
        return len(self.people) > 1


@dataclass(frozen=True, slots=True)
class Fate:
    """How a life of the gateway ends, and for how long nobody is there then."""

    how: Literal["crash", "close"]
    after_s: float
    down_s: float


@dataclass(frozen=True, slots=True)
class Resize:
    after_s: float
    lane: str
    limit: int


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    settings: Settings
    faults: Faults
    chats: tuple[Chat, ...]
    fates: tuple[Fate, ...]
    resizes: tuple[Resize, ...]
    hurry: float
    """How much time people leave between two actions, in seconds."""
    stopping: int
    """How often people want things stopped."""
    temper: Literal["brisk", "mixed", "wild"]
    """What kind of agent it is."""
    can_steer: bool


def plan(seed: int) -> Plan:
    random = Random(f"plan {seed}")
    chats = tuple(a_chat(random, number) for number in range(1, random.randint(2, 5)))
    hurry = random.choice((0.3, 1.5, 4.0))
    return Plan(
        seed=seed,
        settings=settings(random),
        faults=faults(random, 15.0 * hurry),
        chats=chats,
        fates=fates(random, hurry),
        resizes=tuple(a_resize(random, hurry) for _ in range(random.choice((0, 0, 2, 4)))),
        hurry=hurry,
        stopping=random.choice((1, 3, 6)),
        temper=random.choice(("brisk", "mixed", "mixed", "wild")),
        can_steer=random.random() < 0.9,
    )


def settings(random: Random) -> Settings:
    return Settings(
        lane=LaneSettings(main=random.randint(1, 3), subagent=random.randint(1, 3)),
        queue=QueueSettings(
            mode=random.choice(MODES),
            cap=random.choice((1, 2, 3, 10)),
            drop=random.choice(DROPS),
            debounce=random.choice((0, 0, 50, 300, 800, 2000)),
        ),
        session=SessionSettings(max_dm=1, max_group=random.randint(1, 3), run_timeout=random.choice((5, 20, 60))),
        shutdown=ShutdownSettings(grace=random.choice((0, 0, 1, 5, 30))),
    )


def faults(random: Random, busy_s: float) -> Faults:
    kind = random.choice(("none", "slow", "flaky", "stormy"))
    if kind == "none":
        return Faults()
    slow = Faults(delayed=random.choice((0.1, 0.4)), longest_s=random.choice((0.3, 3.0)), send_s=0.4)
    if kind == "slow":
        return slow
    return Faults(
        delayed=slow.delayed,
        longest_s=slow.longest_s,
        fails_before=random.choice((0.02, 0.1)),
        fails_after=random.choice((0.02, 0.1)),
        outages=spans(random, busy_s, 8.0) if kind == "stormy" else (),
        send_s=0.4,
        send_fails=random.choice((0.0, 0.05, 0.2)),
        send_outages=spans(random, busy_s, 8.0) if kind == "stormy" else (),
    )


def spans(random: Random, busy_s: float, longest_s: float) -> tuple[Span, ...]:
    starts = [random.uniform(0, busy_s) for _ in range(random.randint(1, 3))]
    return tuple((start, start + random.uniform(0.2, longest_s)) for start in starts)


def a_chat(random: Random, number: int) -> Chat:
    group = random.random() < 0.45
    key = SessionKey(
        tenant=random.choice(("north", "south")),
        agent="main",
        channel="sim",
        account="",
        chat=f"{'group' if group else 'dm'}{number}",
        thread=random.choice(("", "", "7")),
    )
    names = random.sample(("ann", "bob", "cid", "dee"), random.randint(2, 3) if group else 1)
    people = tuple(Person(name, admin=random.random() < 0.3) for name in names)
    return Chat(key, people, polled=random.random() < 0.7, actions=random.randint(5, 20))


def fates(random: Random, hurry: float) -> tuple[Fate, ...]:
    number, longest_s = random.choice(((0, 0.0), (1, 10 * hurry), (1, 10 * hurry), (3, 8 * hurry), (6, 3.0)))
    return tuple(
        Fate(
            how=random.choice(("crash", "crash", "close")),
            after_s=random.uniform(0.2, longest_s),
            down_s=random.uniform(0.05, 3.0),
        )
        for _ in range(number)
    )


def a_resize(random: Random, hurry: float) -> Resize:
    return Resize(random.uniform(0.1, 8.0 * hurry), random.choice(("main", "subagent")), random.randint(1, 3))
