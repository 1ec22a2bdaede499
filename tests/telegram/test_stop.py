"""Stopping on Telegram: by command and by button, at once, and only what one may stop. (P7, S4, S5)"""

from __future__ import annotations

import trio

from tests.telegram.world import open_town


async def test_stop_ends_the_run_and_nothing_of_it_is_left_to_be_seen() -> None:
    """What grew, eyes and typing of a stopped run go, and nothing of it is sent afterwards. (P7, lesson 24)"""
    async with open_town() as town, town.gateway():
        message = await town.chat.says(town.ann, "count to 100")
        await town.until(lambda: town.chat.answers and town.chat.last.buttons)
        await town.chat.says(town.ann, "/stop")
        await town.until(lambda: town.chat.texts == ["Stopped 1 run."])
        await town.until(lambda: not message.reactions and not town.chat.typing)
        written = len(town.api.asked("sendMessage")) + len(town.api.asked("editMessageText"))
        await trio.sleep(2.5)  # the run would have shown more by now
        assert len(town.api.asked("sendMessage")) + len(town.api.asked("editMessageText")) == written
        assert town.chat.texts == ["Stopped 1 run."]


async def test_the_button_stops_what_grows_above_it() -> None:
    """Who asked presses Stop: it is answered, the run ends, and the next message works. (lessons 19, 21)"""
    async with open_town() as town, town.gateway():
        await town.chat.says(town.ann, "count to 100")
        await town.until(lambda: town.chat.answers and town.chat.last.buttons)
        press = await town.chat.press(town.chat.last, "Stop", by=town.ann)
        await town.until(lambda: press.text == "Stopping." and town.chat.texts == ["Stopped 1 run."])
        await town.chat.says(town.ann, "hello again")
        await town.until(lambda: len(town.chat.texts) == 2)
        assert town.chat.texts[1].startswith("You said: hello again")


async def test_another_members_press_is_refused_and_an_admins_counts() -> None:
    """In a group only who asked, or an admin, may press Stop; the others are told so. (S5)"""
    async with open_town() as town, town.gateway():
        cem = town.api.person(9, "Cem")
        town.team.members[9] = "member"
        await town.team.says(town.ben, "@fake_bot count to 100")
        await town.until(lambda: town.team.answers and town.team.last.buttons)
        refused = await town.team.press(town.team.last, "Stop", by=cem)
        await town.until(lambda: refused.answered)
        assert refused.text == "Only who asked for this, or an admin, may stop it."
        assert town.team.last.buttons
        taken = await town.team.press(town.team.last, "Stop", by=town.ann)
        await town.until(lambda: taken.text == "Stopping." and town.team.texts == ["Stopped 1 run."])


async def test_a_stale_press_is_answered_and_stops_nothing() -> None:
    """A button that is seen after its run has ended says so; what runs now goes on. (S5)"""
    async with open_town() as town, town.gateway():
        await town.chat.says(town.ann, "count to 5")
        await town.until(lambda: town.chat.answers and town.chat.last.buttons)
        old = town.chat.last
        await town.until(lambda: town.chat.texts == ["I counted to 5."])
        await town.chat.says(town.ann, "count to 6")
        stale = await town.chat.press(old, "Stop", by=town.ann)
        await town.until(lambda: stale.answered)
        assert stale.text == "This has ended already."
        await town.until(lambda: town.api.asked("editMessageReplyMarkup"))
        await town.until(lambda: "I counted to 6." in town.chat.texts)


async def test_a_press_that_is_told_twice_stops_once() -> None:
    """The same press in two updates is one stop. (R15)"""
    async with open_town() as town, town.gateway():
        await town.chat.says(town.ann, "count to 100")
        await town.until(lambda: town.chat.answers and town.chat.last.buttons)
        town.api.updates.doubled = 1
        await town.chat.press(town.chat.last, "Stop", by=town.ann)
        await town.until(lambda: "Stopped 1 run." in town.chat.texts)
        await town.chat.says(town.ann, "hello")
        await town.until(lambda: len(town.chat.texts) == 2)
        assert sum(text.startswith("Stopped") for text in town.chat.texts) == 1


async def test_a_member_stops_only_their_own_and_an_admin_everything() -> None:
    """Ben cannot stop what Ann started; Ann, who owns the group, stops what Ben did. (S4, lesson 23)"""
    async with open_town() as town, town.gateway():
        await town.team.says(town.ann, "@fake_bot count to 100")
        await town.until(lambda: town.team.answers)
        await town.team.says(town.ben, "/stop@fake_bot")
        await town.until(lambda: "Nothing of yours to stop." in town.team.texts)
        await town.team.says(town.ann, "/stop")
        await town.until(lambda: "Stopped 1 run." in town.team.texts)
        await town.team.says(town.ben, "@fake_bot count to 100")
        await town.until(lambda: town.team.last.buttons)
        await town.team.says(town.ann, "/stopall@fake_bot")
        await town.until(lambda: town.team.texts.count("Stopped 1 run.") == 2)


async def test_an_anonymous_admin_and_another_bots_stop_are_nobodys() -> None:
    """Who writes in the group's name, and a command for another bot, stop nothing. (S3, lesson 20)"""
    async with open_town() as town, town.gateway():
        await town.team.says(town.ben, "@fake_bot count to 6")
        await town.until(lambda: town.team.answers)
        await town.team.says(town.team, "/stopall@fake_bot")
        await town.team.says(town.ann, "/stopall@other_bot")
        await town.until(lambda: "I counted to 6." in town.team.texts)


async def test_a_stop_in_the_batch_stops_what_came_before_it() -> None:
    """A backlog with a stop at its end starts nothing of what was stopped. (lesson 22)"""
    async with open_town() as town:
        for number in range(3):
            await town.chat.says(town.ann, f"count to 10{number}")
        await town.chat.says(town.ann, "/STOPALL ")
        async with town.gateway():
            await town.until(lambda: town.chat.texts)
            assert town.chat.texts == ["Stopped 3 waiting messages."]
            await town.chat.says(town.ann, "hello")
            await town.until(lambda: len(town.chat.texts) == 2)
        assert not any(text.startswith("1 2") for message in town.chat.answers for text in [message.versions[0].text])


async def test_a_stop_answers_within_a_second_while_every_lane_is_full() -> None:
    """However full the lanes are, a stop is answered at once. (P7)"""
    async with open_town() as town, town.gateway(lane_main=1):
        await town.team.says(town.ben, "@fake_bot count to 100")
        await town.until(lambda: town.team.answers)
        await town.chat.says(town.ann, "count to 100")
        await town.until(lambda: town.chat.actions)
        began = trio.current_time()
        await town.chat.says(town.ann, "/stop")
        await town.until(lambda: "Stopped 1 waiting message." in town.chat.texts)
        assert trio.current_time() - began < 1.0
