"""How a command reaches the API: at the gateway that runs on this machine, else in this process, on the same store.

announced and answers ──▶ asked over HTTP
else the store is to be had ──▶ the same application, for as long as the command takes
else the directory is in use ──▶ look again: it may be a command like this one, or a gateway that is just starting
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import typer

from gateway.cli.shell import ExitCode, fail, run_or_exit, settings_or_exit, setup_or_exit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    import httpx2

    from gateway.office import Office
    from gateway.settings import Settings
    from gateway.work import Setup

Answer = TypeVar("Answer")

PATIENCE_S = 10.0
"""So long a directory is waited for, and a gateway's answer to have come from whoever has it."""
LOOK_AGAIN_S = 0.1
CONNECTS_S = 2.0
ANSWERS_S = 30.0
NO_SUCH_PATH = "GET /openapi.json lists every path."
LONGEST_WAIT_S = 10
"""Whoever asks too often is told to wait; for so long it is done without a word."""


class Refused(Exception):
    """The API has answered with a problem."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem.get("detail", f"the gateway answered {status}")))
        self.status = status
        self.problem = problem
        self.code = str(problem.get("code", ""))


class Gone(Exception):
    """The gateway has not answered."""


class Api:
    """The API as commands ask it: with JSON in and out, and `Refused` for everything that is no answer."""

    def __init__(self, client: httpx2.AsyncClient, *, served: bool) -> None:
        self.client = client
        self.served = served
        """A gateway of another process answers; else nothing that is asked for happens before one is started."""

    async def get(self, path: str, **query: Any) -> Any:
        return await self._ask("GET", path, params=given(query))

    async def post(self, path: str, body: Any = None, *, key: str | None = None, **query: Any) -> Any:
        headers = {b"Idempotency-Key": (key or uuid4().hex).encode()}  # what no key may be, the API says
        return await self._ask("POST", path, params=given(query), json=body, headers=headers)

    async def patch(self, path: str, body: Any) -> Any:
        return await self._ask("PATCH", path, json=body)

    async def put(self, path: str, body: Any) -> Any:
        return await self._ask("PUT", path, json=body)

    async def delete(self, path: str, **query: Any) -> Any:
        return await self._ask("DELETE", path, params=given(query))

    async def all(self, path: str, **query: Any) -> dict[str, Any]:
        """Every page of a list, as one."""
        items: list[Any] = []
        after = None
        while True:
            page = await self.get(path, **query, after=after)
            items += page["items"]
            after = page["next"]
            if after is None:
                return {"items": items, "next": None}

    async def _ask(self, method: str, path: str, **more: Any) -> Any:
        import httpx2
        import trio

        while True:
            try:
                answer = await self.client.request(method, path, **more)
            except httpx2.HTTPError as error:
                raise Gone(type(error).__name__) from error
            if answer.status_code < 400:
                return answer.json() if "json" in answer.headers.get("content-type", "") else answer.text
            refused = refused_by(answer.status_code, answer.content)
            wait_s = refused.problem.get("retry_after")
            if answer.status_code != 429 or not isinstance(wait_s, int) or wait_s > LONGEST_WAIT_S:
                raise refused
            await trio.sleep(wait_s)


def given(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def refused_by(status: int, body: bytes) -> Refused:
    with suppress(ValueError):
        problem = json.loads(body)
        if isinstance(problem, dict):
            return Refused(status, problem)
    return Refused(status, {})


def part(text: str) -> str:
    """One part of a path, whatever is in it."""
    return quote(text, safe="")


# ── the ways in ──────────────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def reached(
    settings: Settings, otherwise: Callable[[Setup], AbstractAsyncContextManager[Api]] | None = None
) -> AsyncIterator[Api]:
    """The API, wherever it is to be had: ``otherwise`` in this process, usually `here`."""
    import trio

    from store.protocols import InUse

    until = trio.current_time() + PATIENCE_S
    async with AsyncExitStack() as stack:
        api = None
        while api is None:
            api = await stack.enter_async_context(elsewhere(settings))
            try:
                # What only this needs is read and loaded only for this.
                api = api or await stack.enter_async_context((otherwise or here)(setup_or_exit(settings)))
            except InUse:
                if trio.current_time() >= until:
                    raise
                await trio.sleep(LOOK_AGAIN_S)
        yield api


@asynccontextmanager
async def elsewhere(settings: Settings) -> AsyncIterator[Api | None]:
    """The gateway that runs on this machine, if one does and answers."""
    import httpx2

    from gateway.remote import found
    from gateway.stores import data_directory

    async with found(data_directory(settings)) as client:
        if client is None:
            yield None
        else:
            client.timeout = httpx2.Timeout(ANSWERS_S, connect=CONNECTS_S)
            yield Api(client, served=True)


@asynccontextmanager
async def here(setup: Setup) -> AsyncIterator[Api]:
    """The same application in this process. What takes long is loaded before the store is opened."""
    from gateway.http.app import make_app
    from gateway.local import new_token
    from gateway.stores import open_store
    from gateway.work import make_office

    token = new_token()
    setup.hide(token)
    async with open_store(setup.settings, patience_s=0) as opened:
        office = make_office(setup.settings, opened.store, setup.catalog.agents, token)
        async with asking(office, token, make_app(office)) as api:
            yield api


@asynccontextmanager
async def asking(office: Office, token: str, app: Any) -> AsyncIterator[Api]:
    """A client of an office of this process."""
    import httpx2
    import trio

    from gateway.cli.inside import Inside

    headers = {"Authorization": f"Bearer {token}"}
    async with trio.open_nursery() as nursery:
        transport = Inside(app, nursery)
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers=headers, timeout=None
        ) as client:
            yield Api(client, served=False)
        nursery.cancel_scope.cancel()


# ── what commands do ─────────────────────────────────────────────────────────────────────────────────────────────────


def ask_or_exit(work: Callable[[Api], Awaitable[Answer]], hints: Mapping[str, str] | None = None) -> Answer:
    """Have it done with the API. What is refused ends the command with what happened, why, and what to do next.

    ``hints`` says what to do about a problem of some code, in the words of the command line.
    """
    trouble: list[Exception] = []

    async def attempt(settings: Settings) -> list[Answer]:
        async with reached(settings) as api:
            try:
                return [await work(api)]
            except (Refused, Gone, typer.Exit) as error:  # told when the store is closed
                trouble.append(error)
        return []

    answers = run_or_exit(attempt, settings_or_exit().settings)
    for error in trouble:
        explain(error, hints or {})
    return answers[0]


def explain(error: Exception, hints: Mapping[str, str]) -> None:
    """End the command with what the error means."""
    if isinstance(error, Gone):
        again = "`goclaw status` tells how it is. What was asked for may have been done: look before you do it again."
        fail("the gateway has stopped answering", again, ExitCode.UNAVAILABLE)
    if isinstance(error, Refused):
        fail(words_of(error), hints.get(error.code) or advice_of(error), code_of(error.status))
    raise error


def words_of(error: Refused) -> str:
    """What was wrong, without the names that only the API has for it."""
    if error.problem.get("next") == NO_SUCH_PATH:
        return "there is nothing of this name"  # it has a slash in it
    wrong = error.problem.get("errors")
    if not isinstance(wrong, list) or not wrong:
        return str(error)
    named = [
        (str(one["field"]).partition(".")[2] or str(one["field"]), str(one["error"]).removeprefix("Value error, "))
        for one in wrong
    ]
    return "; ".join(f"{field}: {error}" for field, error in named)


def advice_of(error: Refused) -> str:
    """What to do next, unless that is said to programs that speak HTTP."""
    accepted = error.problem.get("accepted")
    if isinstance(accepted, list) and accepted:
        return "\n".join(["one of these would do:", *(f"  {form}" for form in accepted)])
    advice = str(error.problem.get("next", ""))
    spoken_to_programs = any(word in advice for word in ("/v1/", "/openapi.json", "Idempotency-Key"))
    return "" if spoken_to_programs else advice


def code_of(status: int) -> ExitCode:
    if status in (400, 422):
        return ExitCode.USAGE
    return ExitCode.UNAVAILABLE if status in (429, 503) else ExitCode.FAILED
