"""`goclaw send`: one message, and its answer.

    a gateway runs ──▶ it is handed in there, and followed
    none does ──▶ a whole one works in this process until the answer is there, then ends like any other

The message is kept before anything is answered, under a key of its own: whatever breaks, it is one message.
"""

from __future__ import annotations

import signal
import sys
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from gateway.cli import completing
from gateway.cli.reach import Api, Gone, Refused, asking, explain, here, reached, refused_by
from gateway.cli.shell import (
    AsJson,
    ExitCode,
    at_a_terminal,
    console,
    fail,
    hint,
    run_or_exit,
    say,
    say_json,
    settings_or_exit,
    talk,
)
from gateway.cli.texts import whole_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    import trio

    from gateway.settings import Settings
    from gateway.work import Setup

HINTS = {"agent-missing": "agents are declared in agents.toml; `goclaw config check` names those that there are."}
SILENT_S = 75.0
"""A stream shows twice in this time that it is there."""
ATTEMPTS = 10
AGAIN_S = 1.0
ENDED_WELL = "done"
WORDS = {
    "failed": "it failed",
    "stopped": "somebody stopped it",
    "dropped": "it was dropped, since too much waits in this conversation",
    "quarantined": "it was set aside, since the gateway died of it several times",
}


@dataclass(slots=True)
class Sent:
    """A message on its way, and what is known of it."""

    body: dict[str, Any]
    wait: float | None = None
    """So many seconds its answer is waited for, from when it was taken in."""
    key: str = field(default_factory=lambda: uuid4().hex)
    last: dict[str, Any] = field(default_factory=dict)
    """What the API has said about it last, in the shape of its answers."""
    left: bool = False
    scope: trio.CancelScope | None = None

    def taken_in(self, data: Mapping[str, Any]) -> None:
        import trio

        if not self.kept and self.scope is not None and self.wait is not None:
            self.scope.deadline = trio.current_time() + self.wait
        self.last = {**data, "answer": None, "answers": []}

    @property
    def kept(self) -> bool:
        return bool(self.last)

    @property
    def ended(self) -> bool:
        return self.last.get("state") in (ENDED_WELL, *WORDS)


def send(
    text: Annotated[str, typer.Argument(help="What to say; - reads it from stdin.")],
    agent: Annotated[str, typer.Option(help="Who is asked.", autocompletion=completing.agents)] = "main",
    chat: Annotated[str, typer.Option(help="Which conversation; one is as good as another.")] = "main",
    wait: Annotated[float | None, typer.Option(metavar="SECONDS", min=0, help="No longer than that.")] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Only hand it in.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send a message and print the answer. Exit code 1 if it ends in anything but an answer.

    \b
    goclaw send "what is new?"
    git diff | goclaw send - --chat review
    """
    no_wait = no_wait or wait == 0
    message = Sent({"text": whole_text(text, "the message"), "agent": agent, "chat": chat}, wait)
    show: Callable[[str], None] = (lambda text: None) if as_json or not at_a_terminal() else Screen()
    trouble: list[Exception] = []

    async def main(settings: Settings) -> None:
        import trio

        try:
            # Whoever leaves leaves at once; a gateway of this process leaves with them, and the message is kept.
            with trio.CancelScope() as everything:
                async with reached(settings, here if no_wait else whole) as api:
                    if no_wait:
                        await hand_in(api, message)
                    else:
                        await follow(api, message, show)
                        if not message.ended:
                            everything.cancel()
        except* (Refused, Gone, typer.Exit) as caught:
            trouble.extend(one for one in flattened(caught))

    with showing(show):
        run_or_exit(main, settings_or_exit().settings)
    for error in trouble:
        if isinstance(error, Gone) and message.kept:
            kept = "the gateway has ended. Your message is kept and answered at its next start"
            fail(kept, "`goclaw run` starts it.", ExitCode.UNAVAILABLE)
        explain(error, HINTS)
    finish(message, as_json, no_wait=no_wait)


def finish(message: Sent, as_json: bool, *, no_wait: bool) -> None:
    """Say how it ended, and end with the code that means it."""
    last = message.last
    if as_json and last:
        say_json(last)
    elif last.get("answer"):
        say(plain(last["answer"]))
    if message.ended:
        if last["state"] != ENDED_WELL:
            if not last.get("answer"):
                talk("error", "bold red", WORDS[last["state"]])
            raise typer.Exit(ExitCode.FAILED)
        return
    if no_wait:
        if not as_json:
            say(f"Taken in as message {last['id']} of {last['session']}.")
        return
    if not last:
        talk("", "", "Nothing was sent.")
        raise typer.Exit(ExitCode.INTERRUPTED)
    why = "Left" if message.left else "There is no answer yet"
    talk("", "", f"{why}: message {last['id']} is kept and will be answered. `goclaw stop {last['session']}` stops it.")
    raise typer.Exit(ExitCode.INTERRUPTED if message.left else ExitCode.FAILED)


def plain(text: str) -> str:
    from gateway.channels.printable import printable

    return printable(text) if sys.stdout.isatty() else text


# ── on the way ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def hand_in(api: Api, message: Sent) -> None:
    message.last = await api.post("/v1/messages", message.body, key=message.key)
    if not api.served:
        hint("no gateway runs on this machine; it is answered when one does: goclaw run")


async def follow(api: Api, message: Sent, show: Callable[[str], None]) -> None:
    """Until it has ended, the time is over, or somebody leaves."""
    import trio

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave_on_signal, nursery.cancel_scope, message)
        with trio.CancelScope() as message.scope:
            await insist(api, message, show)
        nursery.cancel_scope.cancel()


async def leave_on_signal(scope: trio.CancelScope, message: Sent) -> None:
    import trio

    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            message.left = True
            scope.cancel()


async def insist(api: Api, message: Sent, show: Callable[[str], None]) -> None:
    """However often the connection is lost: the key makes it one message."""
    import httpx2
    import trio

    for left in reversed(range(ATTEMPTS)):
        try:
            await attempt(api, message, show)
            if message.ended:
                return
        except httpx2.HTTPError as error:
            if not left:
                raise Gone(type(error).__name__) from error
        await trio.sleep(AGAIN_S)
    raise Gone("no end")


async def attempt(api: Api, message: Sent, show: Callable[[str], None]) -> None:
    import httpx2

    from gateway.remote import events

    headers = {"Accept": "text/event-stream", "Idempotency-Key": message.key}
    timeout = httpx2.Timeout(SILENT_S)
    async with api.client.stream("POST", "/v1/messages", json=message.body, headers=headers, timeout=timeout) as answer:
        if answer.status_code >= 400:
            raise refused_by(answer.status_code, await answer.aread())
        shown: dict[str, str] = {}
        async for kind, data in events(answer):
            if kind == "accepted":
                message.taken_in(data)
            elif kind == "delta":
                shown[str(data["turn"])] = shown.get(str(data["turn"]), "") + str(data["text"])
            elif kind == "clear":
                shown.pop(str(data["turn"]), None)
            elif kind == "end":
                message.last = dict(data)  # the stream ends by itself now
            show("".join(shown.values()))


def flattened(group: BaseExceptionGroup[Exception]) -> Iterator[Exception]:
    for one in group.exceptions:
        if isinstance(one, BaseExceptionGroup):
            yield from flattened(one)
        else:
            yield one


# ── a gateway of its own ─────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def whole(setup: Setup) -> AsyncIterator[Api]:
    """A whole gateway in this process. Where another one has the messages, only the API: that one answers."""
    from gateway.http.app import make_app
    from gateway.local import new_token
    from gateway.stores import open_store
    from gateway.work import make_office, working
    from store.records import CHAT_LEASE

    async with open_store(setup.settings, patience_s=0) as opened:
        if setup.settings.managed and await opened.store.lease(CHAT_LEASE) is not None:
            token = new_token()
            office = make_office(setup.settings, opened.store, setup.catalog.agents, token)
            async with asking(office, token, make_app(office)) as api:
                yield api
            return
        async with (
            working(setup, opened, [], lambda holder: None) as at_work,
            asking(at_work.office, at_work.token, make_app(at_work.office)) as api,
        ):
            yield api


class Screen:
    """What is being answered, as it grows; gone when the answer itself is printed."""

    def __init__(self) -> None:
        from rich.live import Live

        self.live = Live(console=console(), transient=True, auto_refresh=False, vertical_overflow="crop")

    def __call__(self, text: str) -> None:
        from rich.text import Text

        from gateway.channels.printable import printable

        rows = printable(text).splitlines()[-max(self.live.console.height - 2, 1) :]
        self.live.update(Text("\n".join(rows)), refresh=True)


@contextmanager
def showing(show: Callable[[str], None]) -> Iterator[None]:
    if isinstance(show, Screen):
        with show.live:
            yield
    else:
        yield
