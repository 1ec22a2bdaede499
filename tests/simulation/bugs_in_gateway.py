"""Bugs that somebody could have written into the gateway."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from gateway import control, endings, inbound
from gateway.agent_run import AgentRun
from gateway.control import Control
from gateway.endings import Endings
from gateway.inbound import Inbound
from gateway.outbound import Outbound
from gateway.persist import persist
from gateway.turn import Heard
from scheduler import End, Outcome, Reason, Request, Run, Ticket
from store.protocols import StoreError
from store.records import MessageState, Note
from tests.simulation.planting import planted

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterable, Iterator

    from store.records import Message, Reply

# ── stops ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@planted
def shows_although_stopped() -> Iterator[Any]:
    """What a stopped run says while it cleans up is still shown."""

    def show(context: AgentRun, text: str) -> None:
        context.errand.show(text)

    yield patch.object(AgentRun, "show", show)


@planted
def everybody_is_an_admin() -> Iterator[Any]:
    """In a group a member stops what others have started."""
    yield patch.object(control, "whose", lambda _: None)


@planted
def stop_waits_for_the_outbox() -> Iterator[Any]:
    """The answer to a stop stands in line with all other replies."""
    yield patch.object(control, "Note", lambda session, text, urgent: Note(session, text, urgent=False))


@planted
def stop_waits_for_a_lane() -> Iterator[Any]:
    """A stop is carried out like a message: when there is a slot for it."""

    def start(self: Control, write: Callable[..., Any], *args: Any) -> None:
        async def handle(_: Run) -> None:
            await write(*args)

        self._quiet.begin()
        self._scheduler.schedule(Request("control", handle))

    yield patch.object(Control, "_start", start)


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@planted
def drops_in_silence() -> Iterator[Any]:
    """Whose message is dropped is not told."""
    real = endings.words

    def words(ending: Any, *rest: Any) -> tuple[MessageState, str]:
        state, text = real(ending, *rest)
        return state, "" if ending.outcome.end is End.DROPPED else text

    yield patch.object(endings, "words", words)


@planted
def shutdown_counts_as_stop() -> Iterator[Any]:
    """What a shutdown cancels is not kept for the next start."""
    real = Endings.note

    def note(self: Endings, ticket: Ticket, *rest: Any) -> None:
        if ticket.outcome is not None and ticket.outcome.reason is Reason.CLOSING:
            outcome = ticket.outcome
            ticket.outcome = Outcome(outcome.end, error=outcome.error, reason=Reason.STOPPED, run=outcome.run)
        real(self, ticket, *rest)

    yield patch.object(Endings, "note", note)


@planted
def forgets_what_steered() -> Iterator[Any]:
    """What a run took on its way never reaches the agent."""
    real = Heard.steering

    async def steering(heard: Heard) -> tuple[str, ...]:
        await real(heard)
        return ()

    yield patch.object(Heard, "steering", steering)


@planted
def sent_before_it_is_sent() -> Iterator[Any]:
    """A reply leaves the outbox before the channel has it."""
    real = Outbound._send

    async def send(outbound: Outbound, replies: deque[Reply]) -> float:
        await persist(partial(outbound._store.sent, replies[0].id))
        return await real(outbound, replies)

    yield patch.object(Outbound, "_send", send)


# ── the way in ───────────────────────────────────────────────────────────────────────────────────────────────────────


@planted
def acknowledges_what_it_lost() -> Iterator[Any]:
    """A delivery that the store could not take is acknowledged all the same."""

    async def try_once(verb: Callable[[], Any]) -> Any:
        try:
            return await verb()
        except StoreError:
            return ()

    yield patch.object(inbound, "persist", try_once)


@planted
def runs_duplicates() -> Iterator[Any]:
    """A second delivery is scheduled although the first is still being worked on."""
    real = Inbound._take

    def take(inbound: Inbound, messages: Iterable[Message], *rest: Any, **how: Any) -> None:
        inbound._in_hand._ids.clear()
        real(inbound, messages, *rest, **how)

    yield patch.object(Inbound, "_take", take)


@planted
def resumes_only_what_waited() -> Iterator[Any]:
    """What was running when the process died is left lying."""
    real = Inbound.resume

    def resume(inbound: Inbound, messages: Iterable[Message], standings: Any) -> None:
        real(inbound, [message for message in messages if not message.attempts], standings)

    yield patch.object(Inbound, "resume", resume)


@planted
def resumes_backwards() -> Iterator[Any]:
    """After a restart the newest message comes first."""
    real = Inbound.resume

    def resume(inbound: Inbound, messages: Iterable[Message], standings: Any) -> None:
        real(inbound, list(reversed(list(messages))), standings)

    yield patch.object(Inbound, "resume", resume)


@planted
def resumes_as_if_new() -> Iterator[Any]:
    """After a restart what was running is treated like a new message: it waits for others and runs with them."""
    yield patch.object(Inbound, "resume", lambda inbound, *what: inbound._take(*what))
