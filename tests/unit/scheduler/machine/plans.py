"""What a message is told to do: plain values, and how hypothesis draws them.

A `Plan` says where a message goes, how its session treats it and, step by step, what its handler does. Children are
plans inside of plans. The first value of every choice is the plainest one, so that shrinking ends in something short.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeAlias

from hypothesis import strategies as st

from scheduler import Drop, Mode, Policy

LIMITS = {"main": 1, "side": 1, "wide": 3}
LANES = [*LIMITS, "nobody-made-this-one"]
SESSIONS = ["dm", "other-dm", "room"]
SENDERS = ["ann", "bob"]


class Brief:
    """Shows only what differs from the plainest."""

    def __repr__(self) -> str:
        return brief(self, type(self).__name__)


def brief(value: Any, name: str) -> str:
    shown = []
    for field in fields(value):
        part = getattr(value, field.name)
        if part == field.default:
            continue
        if isinstance(part, Policy):
            part = brief(part, "Policy")
        shown.append(f"{field.name}={part}" if isinstance(part, str) else f"{field.name}={part!r}")
    return f"{name}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class Pause(Brief):
    """Let others run."""

    checkpoints: int = 1


@dataclass(frozen=True, repr=False)
class Sleep(Brief):
    seconds: float = 1.0


@dataclass(frozen=True, repr=False)
class Deaf(Brief):
    """Sleep, and hear of no cancellation meanwhile."""

    seconds: float = 1.0


@dataclass(frozen=True, repr=False)
class Fail(Brief):
    """Raise."""


@dataclass(frozen=True, repr=False)
class Steer(Brief):
    """A boundary: take what came in meanwhile."""


@dataclass(frozen=True, repr=False)
class Seal(Brief):
    """The result is being written from here on."""


@dataclass(frozen=True, repr=False)
class Stop(Brief):
    """Cancel in a session, one's own if none is named."""

    session: str = ""
    everything: bool = True


@dataclass(frozen=True, repr=False)
class Await(Brief):
    """Wait for a message that somebody else scheduled: the latest, the one before, and so on."""

    back: int = 0


@dataclass(frozen=True, repr=False)
class Nest(Brief):
    """Schedule a child and wait for it."""

    child: Plan


@dataclass(frozen=True, repr=False)
class Hurry(Brief):
    """Schedule a child and wait for it, but not for long."""

    child: Plan
    patience_s: float = 0.5


@dataclass(frozen=True, repr=False)
class Detach(Brief):
    """Schedule a child and go on."""

    child: Plan


@dataclass(frozen=True, repr=False)
class Linger(Brief):
    """Leave a task behind that waits for a child in the run's name and may outlive the run, then schedules again."""

    child: Plan


@dataclass(frozen=True, repr=False)
class Twins(Brief):
    """Two tasks of the run, each with a child to wait for; the second starts later."""

    first: Plan
    second: Plan
    lag_s: float = 0.0


Step: TypeAlias = Pause | Sleep | Deaf | Fail | Steer | Seal | Stop | Await | Nest | Hurry | Detach | Linger | Twins


AT_ONCE = Policy(debounce_s=0)


@dataclass(frozen=True, repr=False)
class Plan(Brief):
    """One message."""

    session: str = ""  # none: one of its own
    lane: str = "main"
    sender: str = "ann"
    thread: str = ""
    policy: Policy = AT_ONCE
    context_used: float = 0.0
    steerable: bool = False
    resumed: bool = False
    script: tuple[Step, ...] = ()
    unwind_s: float = 0.0  # how long its handler cleans up after a cancellation
    then: Plan | Stop | None = None  # done by the callback that tells its end


# Who may run at once in which session, and whether several people write there.
PLACES = [("dm", 1, False), ("other-dm", 1, False), ("room", 3, False), ("room", 3, True), ("room", 1, True)]
OWN_PLACE = ("", 1, False)

SIMPLE_STEPS: list[Step] = [
    Pause(),
    Sleep(1.0),
    Pause(3),
    Sleep(0.1),
    Sleep(10.0),
    Steer(),
    Steer(),
    Fail(),
    Seal(),
    Deaf(2.0),
    Deaf(30.0),
    Deaf(90.0),
    Stop(),
    Stop("room"),
    Stop("dm", everything=False),
    Await(0),
    Await(1),
    Await(4),
]


# What each part of a plan is drawn from, the plainest first. Made once: building strategies costs more than drawing.
PLACE = st.sampled_from(PLACES)
ANY_PLACE = st.sampled_from([OWN_PLACE, *PLACES])
LANE = st.sampled_from(LANES)
SENDER = st.sampled_from(SENDERS)
THREAD = st.sampled_from(["", "", "", "topic"])
MODE = st.sampled_from([Mode.QUEUE, Mode.COLLECT, Mode.STEER, Mode.INTERRUPT, Mode.FOLLOWUP])
ROOM = st.sampled_from([(10, Drop.OLD), (1, Drop.OLD), (1, Drop.NEW), (2, Drop.OLD), (2, Drop.NEW), (3, Drop.OLD)])
DEBOUNCE = st.sampled_from([0.0, 0.5, 2.0])
TIMEOUT = st.sampled_from([None, None, 0.5, 5.0])
CONTEXT = st.sampled_from([0.0, 0.49, 0.5, 0.55, 0.6])
STEERABLE = st.booleans()
RESUMED = st.sampled_from([False, False, False, True])
UNWIND = st.sampled_from([0.0, 0.0, 0.3, 20.0])
SIMPLE_STEP = st.sampled_from(SIMPLE_STEPS)


@st.composite
def draw_plan(draw: st.DrawFn, steps: st.SearchStrategy[Step], *, nested: bool) -> Plan:
    session, most, shared = draw(ANY_PLACE if nested else PLACE)
    cap, drop = draw(ROOM)
    policy = Policy(draw(MODE), cap, drop, draw(DEBOUNCE), most, shared, draw(TIMEOUT))
    return Plan(
        session=session,
        lane=draw(LANE),
        sender=draw(SENDER),
        thread=draw(THREAD),
        policy=policy,
        context_used=draw(CONTEXT),
        steerable=draw(STEERABLE),
        resumed=draw(RESUMED),
        script=tuple(draw(st.lists(steps, max_size=2 if nested else 3))),
        unwind_s=draw(UNWIND),
        then=None if nested else draw(AFTERTHOUGHT),
    )


@cache
def plans(depth: int = 3, *, nested: bool = False) -> st.SearchStrategy[Plan]:
    """A message whose children go at most ``depth`` deep."""
    steps = SIMPLE_STEP | st.deferred(lambda: family(depth - 1)) if depth else SIMPLE_STEP
    return draw_plan(steps, nested=nested)


@cache
def family(depth: int) -> st.SearchStrategy[Step]:
    """A step with children."""
    child = st.deferred(lambda: plans(depth, nested=True))  # deferred, because its repr would be enormous
    return st.one_of(
        st.builds(Nest, child),
        st.builds(Twins, child, child, st.sampled_from([0.0, 0.1, 2.0])),
        st.builds(Hurry, child),
        st.builds(Detach, child),
        st.builds(Linger, child),
    )


AFTERTHOUGHT: st.SearchStrategy[Plan | Stop | None] = st.one_of(
    st.none(), st.sampled_from([Stop(), Stop("room"), Stop(everything=False)]), plans(0, nested=True)
)
