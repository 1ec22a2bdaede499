"""getUpdates as the real server has it: offsets confirm, one poller at a time, and nothing is told twice unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
import trio
from telegram.error import Conflict

from tests.unit.fakes.telegram_bot import HERE_ONLY, Here, here, open_bot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from telegram import Update


def texts(updates: Sequence[Update]) -> list[str | None]:
    return [update.message.text for update in updates if update.message]


async def say(place: Here, *words: str) -> None:
    for word in words:
        await place.chat.says(place.ann, word)


async def test_an_offset_confirms() -> None:
    """What is below it is never told again; what is not confirmed is."""
    async with here() as place:
        await say(place, "a", "b", "c")
        updates = await place.updates()
        assert texts(updates) == texts(await place.updates()) == ["a", "b", "c"]
        numbers = [update.update_id for update in updates]
        assert numbers == sorted(numbers)
        assert texts(await place.updates(offset=numbers[1])) == ["b", "c"]
        assert texts(await place.updates()) == ["b", "c"]
        assert await place.updates(offset=numbers[2] + 1) == ()
        assert place.api.updates.confirmed == set(numbers)


async def test_a_limit_and_an_offset_from_the_end() -> None:
    """A negative offset forgets all but the last ones."""
    async with here() as place:
        await say(place, "a", "b", "c")
        assert texts(await place.updates(limit=2)) == ["a", "b"]
        assert texts(await place.updates(offset=-1)) == ["c"]
        assert texts(await place.updates()) == ["c"]


async def test_only_wanted_kinds_are_kept() -> None:
    """The wish holds until there is another, and does not bring back what happened before it."""
    async with here() as place:
        await place.updates(allowed_updates=["callback_query"])
        await say(place, "unheard")
        assert await place.updates() == ()
        await place.updates(allowed_updates=[])
        await say(place, "heard")
        assert texts(await place.updates()) == ["heard"]


async def test_a_long_poll_ends_with_an_update_or_with_its_time() -> None:
    async with here() as place:
        assert await place.updates(timeout=1) == ()
        got: list[str | None] = []

        async def poll() -> None:
            got.extend(texts(await place.updates(timeout=30)))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await place.api.until(lambda: place.api.open_polls)
            await say(place, "now")
        assert got == ["now"]


async def test_the_second_poller_ends_the_first() -> None:
    """The first gets 409 and the second the updates."""
    async with here() as place, open_bot(place.api) as other:
        got: list[Any] = []

        async def poll(bot: Any) -> None:
            try:
                got.append(texts(await bot.get_updates(timeout=30)))
            except Conflict as conflict:
                got.append(conflict)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll, place.bot)
            await place.api.until(lambda: place.api.open_polls)
            nursery.start_soon(poll, other)
            await place.api.until(lambda: place.api.polls.conflicts)
            await say(place, "for the second")
        assert isinstance(got[0], Conflict)
        assert "terminated by other getUpdates request" in str(got[0])
        assert got[1:] == [["for the second"]]


async def test_a_poller_that_leaves_is_noticed() -> None:
    """At once, and the next one is no conflict."""
    async with here() as place:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: place.bot.get_updates(timeout=30))
            await place.api.until(lambda: place.api.open_polls)
            nursery.cancel_scope.cancel()
        await place.api.until(lambda: not place.api.open_polls)
        assert place.api.requests[-1].cut
        assert await place.updates() == ()
        assert place.api.polls.conflicts == 0


async def test_conflicts_that_follow_each_other_are_slowed_down() -> None:
    """The first is told at once, the next after a pause."""
    async with here() as place:
        place.api.polls.conflict_pause_s = 0.2
        await place.bot.set_webhook("http://127.0.0.1:9/")
        for _ in range(3):
            with pytest.raises(Conflict, match="can't use getUpdates method while webhook is active"):
                await place.updates()
        await place.api.until(lambda: not place.api.open_polls)
        first, second, third = place.api.asked("getUpdates")
        assert second.ended is not None
        assert second.ended - second.at >= 0.2
        assert third.at - first.at >= 0.2


async def test_setting_a_webhook_ends_the_poll() -> None:
    async with here() as place:

        async def poll() -> None:
            with pytest.raises(Conflict, match="terminated by setWebhook request"):
                await place.updates(timeout=30)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            await place.api.until(lambda: place.api.open_polls)
            await place.bot.set_webhook("http://127.0.0.1:9/")


async def test_updates_told_again_doubled_and_out_of_order() -> None:
    """Each on request: after it was confirmed, twice in one answer, in another order, and two about one message."""
    async with here() as place:
        updates = place.api.updates
        await say(place, "a")
        (first,) = await place.updates()
        assert await place.updates(offset=first.update_id + 1) == ()
        updates.again(updates.all[0])
        assert [update.update_id for update in await place.updates(offset=first.update_id + 1)] == [first.update_id]
        assert await place.updates() == ()

        updates.doubled = 1
        with updates.held(lambda held: held[::-1]):
            await say(place, "b", "c")
            assert await place.updates() == ()
        got = await place.updates()
        assert texts(got) == ["c", "c", "b"]
        assert got[0].update_id == got[1].update_id > got[2].update_id
        updates.drop()

        place.api.again(await place.chat.says(place.ann, "d"))
        one, other = await place.updates()
        assert one.message == other.message
        assert one.update_id != other.update_id


async def test_updates_that_make_no_sense_are_told_as_they_are() -> None:
    """A kind and fields that nobody knows, and a message without a sender."""
    async with here() as place:
        place.api.updates.push_raw({"new_thing": {"x": 1}})
        place.api.updates.push_raw(
            {"message": {"message_id": 1, "date": 1, "chat": {"id": 7, "type": "private", "y": 2}}}
        )
        strange, bare = await place.updates()
        assert strange.effective_message is None
        assert strange.api_kwargs == {"new_thing": {"x": 1}}
        assert bare.message is not None
        assert (bare.message.from_user, bare.message.text) == (None, None)


@pytest.mark.parametrize("way", ["query", "form", "json", "multipart"])
async def test_a_method_can_be_asked_in_every_way(way: str) -> None:
    """By GET and POST, whatever the body is; a method's name may be in any case."""
    given = {"chat_id": "7", "text": "a & b é", "disable_notification": "true"}
    async with here() as place, httpx.AsyncClient(**HERE_ONLY) as client:
        url = f"{place.api.base_url}{place.api.token}/SendMessage"
        match way:
            case "query":
                answer = await client.get(url, params=given)
            case "form":
                answer = await client.post(url, data=given)
            case "json":
                answer = await client.post(url, json={**given, "chat_id": 7, "disable_notification": True})
            case _:
                answer = await client.post(url, files={name: (None, value) for name, value in given.items()})
        assert answer.json()["result"]["text"] == "a & b é"
        assert place.api.requests[-1].parameters == {"chat_id": 7, "text": "a & b é", "disable_notification": True}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "as JSON Object"),
        (b"[]", "object expected"),
        (b'{"chat_id":7,"text":"x","entities":"["}', "entities JSON"),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused(body: bytes, why: str) -> None:
    async with here() as place, httpx.AsyncClient(**HERE_ONLY) as client:
        url = f"{place.api.base_url}{place.api.token}/sendMessage"
        answer = await client.post(url, content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 400
        assert why in answer.json()["description"]
