"""Who may stop what: members their own, admins everything, nobody another chat."""

from __future__ import annotations

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.flow.world import World, incoming, open_world

both = pytest.mark.parametrize("stop", ["/stop", "/stopall"])


async def group_at_work(world: World) -> None:
    for sender in ("ann", "bob"):
        await world.start(f"long {sender}", chat="group", sender=sender, group=True)


@both
async def test_members_stop_their_own_runs_only(autojump_clock: MockClock, stop: str) -> None:
    """The run of somebody else goes on to its answer. (lesson 23)"""
    async with open_world(lane_main=5) as world:
        await group_at_work(world)
        assert await world.ask(stop, "group", "bob", group=True) == "Stopped 1 run."
        await world.gateway.drained()
        assert world.replies("group")[1:] == ["re: long ann"]


@both
async def test_a_member_without_a_run_stops_nothing(autojump_clock: MockClock, stop: str) -> None:
    """Told truly: nothing of theirs was there, which is not to say that nothing runs. (lesson 23, Q8)"""
    async with open_world(lane_main=5) as world:
        await group_at_work(world)
        said = await world.ask(stop, "group", "eve", group=True)
        assert said.startswith("Nothing")
        assert "nothing runs or waits here" not in said
        await world.gateway.drained()
        assert sorted(world.replies("group")[1:]) == ["re: long ann", "re: long bob"]


async def test_admins_stop_the_oldest_run_of_anybody(autojump_clock: MockClock) -> None:
    """An admin's stop takes the oldest run, whoever started it. (lesson 23, L10)"""
    async with open_world(lane_main=5) as world:
        await group_at_work(world)
        await world.gateway.receive([incoming("/stop", "group", "root", group=True, admin=True)])
        await world.gateway.drained()
        assert world.replies("group") == ["Stopped 1 run.", "re: long bob"]


async def test_admins_stop_everything(autojump_clock: MockClock) -> None:
    """An admin's stopall ends runs and empties the queue of everybody. (lesson 23)"""
    async with open_world(lane_main=5) as world:
        for sender in ("ann", "bob", "cid", "dan"):
            await world.start(f"long {sender}", chat="group", sender=sender, group=True)
        await world.gateway.receive([incoming("/stopall", "group", "root", group=True, admin=True)])
        await world.gateway.drained()
        assert world.replies("group") == ["Stopped 3 runs and 1 waiting message."]


@both
async def test_members_stop_their_own_waiting_messages_only(autojump_clock: MockClock, stop: str) -> None:
    """With nothing of theirs running, what they have waiting goes; the neighbours' messages stay. (lesson 23)"""
    async with open_world(lane_main=1) as world:
        await world.start("long", chat="other")
        for sender in ("ann", "bob", "ann"):
            await world.start(f"hello from {sender}", chat="group", sender=sender, group=True)
        said = await world.ask(stop, "group", "ann", group=True)
        assert said == "Stopped 2 waiting messages; 1 message still waiting."
        await world.gateway.drained()
        assert world.replies("group")[1:] == ["re: hello from bob"]


async def test_a_member_stops_only_their_own_part_of_a_batch(autojump_clock: MockClock) -> None:
    """In a batch of several people the stop takes back what its sender wrote before it. (lessons 22, 23)"""
    async with open_world(queue_debounce=0) as world:
        batch = [("ann", "one"), ("bob", "two"), ("ann", "/stop"), ("ann", "three")]
        await world.gateway.receive([incoming(text, "group", sender, group=True) for sender, text in batch])
        await world.gateway.drained()
        assert sorted(world.replies("group")[1:]) == ["re: three", "re: two"]
        assert world.replies("group")[0].startswith("Stopped 1 waiting message")


async def test_a_stop_does_not_leak_into_another_chat(autojump_clock: MockClock) -> None:
    """The same person's run in another chat goes on. (lesson 22)"""
    async with open_world(lane_main=5) as world:
        await world.start("long", chat="one")
        await world.start("long", chat="two")
        assert await world.ask("/stopall", "one") == "Stopped 1 run."
        await world.gateway.drained()
        assert world.replies("two") == ["re: long"]


async def test_an_interrupt_in_a_group_touches_only_its_senders_run(autojump_clock: MockClock) -> None:
    """Ann's newer message ends Ann's run; Bob's goes on. (L6)"""
    async with open_world(lane_main=5, queue_mode="interrupt") as world:
        await group_at_work(world)
        await world.start("newer", chat="group", sender="ann", group=True)
        await world.gateway.drained()
        said = world.replies("group")
        assert said == ['Stopped "long ann": your newer message took its place.', "re: newer", "re: long bob"]


@both
async def test_helpers_of_others_go_on(autojump_clock: MockClock, stop: str) -> None:
    """A member's stop ends the helpers that work for them and no others. (lessons 22, 23)"""
    async with open_world(lane_main=5, lane_subagent=10) as world:
        for sender in ("ann", "bob"):
            await world.start("deep", chat="group", sender=sender, group=True)
        assert world.agent.helpers == 6
        assert await world.ask(stop, "group", "ann", group=True) == "Stopped 1 run and 3 helpers."
        await wait_all_tasks_blocked()
        assert world.agent.helpers == 3
        await world.gateway.drained()
        assert world.replies("group")[1:] == ["the bottom"]
