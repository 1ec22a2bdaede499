"""What happens in a gateway, as those hear it who listen: dashboards, meters, a person who wonders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from tests.flow.models import DM
from tests.flow.world import open_world

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio.testing import MockClock

    from gateway.events import Event, Listener


async def heard(listener: Listener, count: int) -> list[Event]:
    return [await listener.__anext__() for _ in range(count)]


async def test_a_listener_hears_of_every_run_and_of_what_was_delivered(autojump_clock: MockClock) -> None:
    """In order, with the trace that ties them together."""
    async with open_world(queue_debounce=0) as world, world.gateway.bus.listen(tenant="default") as listener:
        await world.say("hello", "fail")
        await world.gateway.drained()
        events = await heard(listener, 6)
        good, bad = (
            [event for event in events if event.trace == trace] for trace in dict.fromkeys(one.trace for one in events)
        )
        for one in (good, bad):
            assert [event.kind for event in one] == ["run.started", "run.ended", "reply.delivered"]
        assert {event.session for event in events} == {str(DM)}
        assert (good[1].data["status"], bad[1].data["status"]) == ("done", "failed")
        assert [event.seq for event in events] == sorted(event.seq for event in events)
        assert listener.lost() == 0


async def test_a_helper_is_heard_of_as_well(autojump_clock: MockClock) -> None:
    """Each on its own lane, and ended however it ended."""
    async with (
        open_world(queue_debounce=0) as world,
        world.gateway.bus.listen({"run.started", "run.ended"}) as listener,
    ):
        await world.start("deep", chat="dm")
        await trio.sleep(1)
        await world.say("/stop")
        await world.gateway.drained()
        events = await heard(listener, 8)
        started = [event.data["of"] for event in events if event.kind == "run.started"]
        assert started == ["message", "subagent", "subagent", "subagent"]
        assert {event.data["status"] for event in events if event.kind == "run.ended"} == {"cancelled"}


async def test_a_service_that_fails_is_heard_of(autojump_clock: MockClock) -> None:
    async with open_world() as world, world.gateway.bus.listen({"service.changed"}) as listener:

        async def stumble() -> None:
            await trio.lowlevel.checkpoint()
            raise OSError("no more disk")

        world.gateway.supervisor.start("stumbling", stumble)
        states: list[Mapping[str, object]] = []
        while len(states) < 2:
            states += [event.data for event in await heard(listener, 1) if event.data["service"] == "stumbling"]
        assert [about["state"] for about in states] == ["running", "resting"]
        assert "no more disk" in str(states[1]["error"])
