"""A double of Telegram: `open_botapi` in a test, `python -m tests.fakes.botapi` by hand or beside a process.

It is a Bot API server over HTTP on loopback that keeps the real one's rules, and the people who write to the bot.
What a test needs is named here; how it works stands in `tests.fakes.telegram`.

    async with open_botapi(limits=Limits(speed=10)) as api:
        ann = api.person(7, "Ann")
        chat = api.private(ann)
        ...                                          # start the bot with api.token and api.address
        await chat.says(ann, "hello")
        await api.until(lambda: chat.texts == ["hi"])  # what is seen now; chat.last.versions is how it came to be
        api.trouble("bad_gateway", "sendMessage", chat=chat, times=2)
        await chat.press(chat.last, "Stop", by=ann)
"""

from __future__ import annotations

import argparse
import signal
import sys

import trio

from tests.fakes.telegram.chat import Chat, Press
from tests.fakes.telegram.message import Button, Message
from tests.fakes.telegram.pace import UNLIMITED, Limits, most_within
from tests.fakes.telegram.people import Person
from tests.fakes.telegram.request import Request
from tests.fakes.telegram.server import BOT, TOKEN, BotApi, open_botapi
from tests.fakes.telegram.trouble import Drop, Hang, Refuse, Reply, Slow, Trouble, flooded
from tests.fakes.telegram.updates import Update

__all__ = [
    "BOT",
    "TOKEN",
    "UNLIMITED",
    "BotApi",
    "Button",
    "Chat",
    "Drop",
    "Hang",
    "Limits",
    "Message",
    "Person",
    "Press",
    "Refuse",
    "Reply",
    "Request",
    "Slow",
    "Trouble",
    "Update",
    "flooded",
    "most_within",
    "open_botapi",
]

TEAM = -1_001_000_000_001


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fakes.botapi", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument("--token", default=TOKEN, help="the bot's token (default: %(default)s)")
    parser.add_argument("--speed", type=float, default=1.0, help="how much quicker than Telegram's its limits pass")
    parser.add_argument("--unlimited", action="store_true", help="no limits on how much the bot may write")
    parser.add_argument("--privacy", action="store_true", help="in groups the bot hears only what is meant for it")
    parser.add_argument("--empty", action="store_true", help="without the people and chats to begin with")
    arguments = parser.parse_args()
    try:
        trio.run(serve, arguments)
    except OSError as error:
        parser.error(f"port {arguments.port} cannot be had: {error}")
    return 0


async def serve(arguments: argparse.Namespace) -> None:
    limits = UNLIMITED if arguments.unlimited else Limits(speed=arguments.speed)
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with open_botapi(
            token=arguments.token, port=arguments.port, limits=limits, privacy=arguments.privacy
        ) as api:
            if not arguments.empty:
                await furnish(api)
            sys.stdout.write(f"GOCLAW_TELEGRAM_TOKEN={api.token}\nGOCLAW_TELEGRAM_API_URL={api.address}\n")
            sys.stdout.flush()
            sys.stderr.write(f"Chat with the bot at {api.address} ; Ann has the number 7, Ben 8. Ctrl-C ends it.\n")
            sys.stderr.flush()
            async for _ in signals:
                return


async def furnish(api: BotApi) -> None:
    """Two people, and a group with a topic."""
    ann = api.person(7, "Ann", username="ann_fake")
    ben = api.person(8, "Ben", username="ben_fake")
    api.private(ann)
    api.private(ben)
    team = api.group(TEAM, "Team", [ben], owner=ann, forum=True)
    await team.opens_topic("Plans", by=ann)
    api.updates.drop()  # the bot begins with nothing to read


if __name__ == "__main__":
    sys.exit(main())
