"""One turn on its slot: begin, let the agent work, settle.

    begin ──▶ agent ──▶ seal ──▶ settle
      │         │         └── stopped before: nothing is written here
      │         └── raises, is cancelled, takes too long: `gateway.endings` writes how it ended
      └── everything was stopped meanwhile: nothing happens

Only the good end is written here, in one atomic, shielded write. All other ends are the scheduler's to tell and are
written in one place, so there is exactly one mapping from ends to words.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

import trio

from gateway.persist import GivenUp, persist
from gateway.protocols import Turn
from scheduler import Policy, Request
from store.records import MessageState, Note, Role, Said, turn_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.endings import Endings
    from gateway.outbound import Outbound
    from gateway.protocols import Agent
    from scheduler import Run
    from store.protocols import MessageStore
    from store.records import Message

Written = TypeVar("Written")

HELPER_LANE = "subagent"
HELPER_POLICY = Policy(debounce_s=0, cap=1000)


class Asking(Protocol):
    """A run's context, as the helpers that work for it see it."""

    helpers: int
    """How many it has asked."""

    def show(self, text: str) -> None: ...


class Turns:
    """The scheduler's handler for messages of people."""

    def __init__(self, process: str, store: MessageStore, agent: Agent, outbound: Outbound, endings: Endings) -> None:
        self._process = process
        self._endings = endings
        self._store = store
        self._agent = agent
        self._outbound = outbound
        self.can_steer = agent.can_steer
        self._writing: set[trio.CancelScope] = set()

    async def __call__(self, run: Run) -> None:
        turn = turn_id(self._process, run.id)
        wanted = [request.payload.id for request in run.requests]
        await self._endings.caught_up(run.request.payload.session)
        messages = await persist(partial(self._store.begin, turn, wanted))
        if not messages:
            return
        context = RunContext(run, turn, messages, self, self._agent, self._outbound)
        session = messages[0].session
        text = await self._agent.run(Turn(session, tuple(message.text for message in messages)), context)
        if not run.seal():
            return
        said = [*(Said(Role.USER, one) for one in context.texts), Said(Role.ASSISTANT, text)]
        notes = [Note(session, text)]
        await self.write(partial(self._store.settle, turn, context.ids, MessageState.DONE, notes, said))
        self._outbound.poke()

    async def begin(self, turn: str, wanted: list[int]) -> tuple[Message, ...]:
        """Take more messages into a turn: once asked they belong to it, whatever is cancelled meanwhile."""
        return await self.write(partial(self._store.begin, turn, wanted))

    async def write(self, verb: Callable[[], Awaitable[Written]]) -> Written:
        """A write that a cancellation does not cut short. It ends with the fence, or when the process gives up."""
        with trio.CancelScope(shield=True) as scope:
            self._writing.add(scope)
            try:
                return await persist(verb)
            finally:
                self._writing.discard(scope)
        raise GivenUp("the process ends before the store has taken this")

    def give_up(self) -> None:
        """The process ends: what the store does not take now is taken up again by the next one."""
        for scope in self._writing:
            scope.cancel()


class RunContext:
    """What the agent may do, for as long as its run counts."""

    def __init__(
        self,
        run: Run,
        turn: str,
        messages: tuple[Message, ...],
        turns: Turns,
        agent: Agent,
        outbound: Outbound,
    ) -> None:
        self._run = run
        self._turn = turn
        self._turns = turns
        self._agent = agent
        self._session = messages[0].session
        self._channel = outbound.channel(self._session.channel)
        self.helpers = 0
        self.ids = [message.id for message in messages]
        self.texts = [message.text for message in messages]

    def show(self, text: str) -> None:
        if self._channel is not None and not self._run.cancelled and not self._run.ended:
            self._channel.show(self._session, text)

    async def ask_helper(self, task: str) -> str:
        return await ask_helper(self._run, self._agent, self, task)

    async def steering(self) -> tuple[str, ...]:
        wanted = [request.payload.id for request in self._run.take_steering()]
        if not wanted:
            return ()
        taken = await self._turns.begin(self._turn, wanted)
        texts = tuple(message.text for message in taken)
        self.ids += [message.id for message in taken]
        self.texts += texts
        return texts


class HelperContext:
    """What a helper may do: the same, except that people steer the run it works for."""

    def __init__(self, run: Run, agent: Agent, above: Asking) -> None:
        self._run = run
        self._agent = agent
        self._above = above

    def show(self, text: str) -> None:
        if not self._run.cancelled:
            self._above.show(text)

    async def ask_helper(self, task: str) -> str:
        return await ask_helper(self._run, self._agent, self._above, task)

    async def steering(self) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        return ()


async def ask_helper(run: Run, agent: Agent, above: Asking, task: str) -> str:
    """A helper has a session of its own and runs on the helpers' lane; it goes when the run that asked goes."""

    async def work(helper: Run) -> str:
        return await agent.help(task, HelperContext(helper, agent, above))

    above.helpers += 1
    ticket = run.schedule(
        Request(
            session=f"sub:{run.id}:{above.helpers}",
            handler=work,
            lane=HELPER_LANE,
            tenant=run.request.tenant,
            sender=run.owner,
            policy=HELPER_POLICY,
        )
    )
    try:
        return str(await ticket.result())
    finally:
        ticket.cancel()  # if nobody waits for it any more, it need not go on
