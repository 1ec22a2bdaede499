"""What agents are told of the past, and what is let go."""

from __future__ import annotations

from gateway.history import LINES_KEPT, TRIMMED_AT_ONCE, recall
from store.records import Role, Said
from tests.flow.models import DM
from tests.flow.world import new_store, whole_of


async def test_what_nobody_asks_for_any_more_is_trimmed() -> None:
    """A conversation that goes on for years does not fill the disk; what is told to the agent stays."""
    store = whole_of(new_store())
    many = LINES_KEPT + TRIMMED_AT_ONCE + 500
    await store.remember(DM, [Said(Role.USER if number % 2 else Role.ASSISTANT, str(number)) for number in range(many)])
    before = await recall(store, DM, 1_000)
    session = await store.session(DM)
    assert session is not None
    assert (session.lines, session.trimmed > TRIMMED_AT_ONCE) == (many, True)
    assert many - session.trimmed >= LINES_KEPT
    assert await recall(store, DM, 1_000) == before
    assert before[-1].text == str(many - 1)
