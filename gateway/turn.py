"""One turn on its slot: begin, let the agent work, settle.

    begin ──▶ agent ──▶ its schedules ──▶ seal ──▶ settle
      │         │                           └── stopped before: nothing is written here
      │         └── raises, is cancelled, takes too long: `gateway.endings` writes how it ended
      └── everything was stopped meanwhile: nothing happens

Only the good end is written here, in one atomic, shielded write. All other ends are the scheduler's to tell and are
written in one place, so there is exactly one mapping from ends to words.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio

from gateway import schedule_lines
from gateway.agent_run import AgentRun, Errand
from gateway.crew import Purse
from gateway.history import ANSWERS, recall
from gateway.persist import GivenUp, persist
from gateway.protocols import Turn
from store.records import MessageState, Note, Role, Said, turn_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from gateway.endings import Endings
    from gateway.outbound import Outbound
    from gateway.protocols import AgentReply
    from gateway.toolbox import Toolbox
    from scheduler import Run
    from store.protocols import MessageStore, SessionStore
    from store.records import Message, SessionKey

Written = TypeVar("Written")

SILENCE = "(The agent had nothing to say.)"


class Turns:
    """The scheduler's handler for messages of people."""

    def __init__(
        self,
        process: str,
        store: MessageStore,
        sessions: SessionStore,
        toolbox: Toolbox,
        outbound: Outbound,
        endings: Endings,
    ) -> None:
        self._process = process
        self._endings = endings
        self._store = store
        self._sessions = sessions
        self._toolbox = toolbox
        self._outbound = outbound
        self._writing: set[trio.CancelScope] = set()

    def can_steer(self, agent: str) -> bool:
        member = self._toolbox.crew.find(agent)
        return member is not None and member.agent.can_steer

    def run_timeout_s(self, agent: str) -> float | None:
        """How long a run of this agent may take, if that differs from the others."""
        member = self._toolbox.crew.find(agent)
        return None if member is None else member.run_timeout_s

    async def __call__(self, run: Run) -> None:
        turn = turn_id(self._process, run.id)
        wanted = [request.payload.id for request in run.requests]
        await self._endings.caught_up(run.request.payload.session)
        messages = await persist(partial(self._store.begin, turn, wanted))
        if messages:
            await self._answer(run, turn, messages)

    async def _answer(self, run: Run, turn: str, messages: Sequence[Message]) -> None:
        session = messages[0].session
        attentive = self._outbound.attentive(session.channel)
        if attentive is not None:
            attentive.began(turn, messages)
        member = self._toolbox.crew.member(session.agent)
        heard = Heard(run, turn, messages, self)
        traces = self._toolbox.traces
        with traces.tracing(
            run.request.session, member.name, "message", run=run, since=messages[0].accepted_at
        ) as trace:
            traces.answering(heard.ids, turn, trace)
            errand = Errand(
                session=session,
                owner=messages[0].incoming.sender,
                uid=f"message {messages[0].id}",
                purse=Purse(member.tokens),
                environ={"GOCLAW_TRACE_ID": trace.id, "GOCLAW_RUN_ID": turn},
                show=partial(self._show, session, turn),
                answers_in=session,
            )
            context = AgentRun(self._toolbox, run, member, errand, trace, heard.steering)
            history = await recall(self._sessions, session, member.window)
            texts = tuple(message.text for message in messages)
            reply = await member.agent.run(Turn(session, texts, history, errand.environ), context)
            text = await schedule_lines.carried_out(self._toolbox, context, reply.text) or SILENCE
            if not run.seal():
                return
            said = remembered(reply, heard.texts, text, heard.ids)
            notes = [Note(session, text)]
            settle = partial(self._store.settle, turn, heard.ids, MessageState.DONE, notes, said, reply.context)
            await self.write(settle)
            self._outbound.poke()

    def _show(self, session: SessionKey, turn: str, text: str) -> None:
        channel = self._outbound.channel(session.channel)
        if channel is not None:
            channel.show(session, turn, text)

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


class Heard:
    """The messages of a turn, those included that were taken in while it ran."""

    def __init__(self, run: Run, turn: str, messages: Sequence[Message], turns: Turns) -> None:
        self._run = run
        self._turn = turn
        self._turns = turns
        self.ids = [message.id for message in messages]
        self.texts = [message.text for message in messages]

    async def steering(self) -> tuple[str, ...]:
        wanted = [request.payload.id for request in self._run.take_steering()]
        if not wanted:
            await trio.lowlevel.checkpoint()
            return ()
        taken = await self._turns.begin(self._turn, wanted)
        texts = tuple(message.text for message in taken)
        self.ids += [message.id for message in taken]
        self.texts += texts
        return texts


def remembered(reply: AgentReply, texts: Sequence[str], answer: str, ids: Sequence[int] = ()) -> list[Said]:
    """What the transcript keeps of a turn; the answer with the ids of the messages that it answers."""
    before = reply.said or tuple(Said(Role.USER, text) for text in texts)
    return [*before, Said(Role.ASSISTANT, answer, {ANSWERS: list(ids)})]
