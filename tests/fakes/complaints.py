"""What the real servers refuse, so that a gateway that sends it is found out here and not by a person.

Both want each call answered by the message right after it, and no answer without a call.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.fakes.dialect import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.fakes.script import Message, Tool

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_messages(messages: Sequence[Message]) -> None:
    if not messages:
        raise Complaint("messages: at least one message is required")
    waiting: list[str] = []
    for place, message in enumerate(messages):
        answered = [result.id for result in message.results]
        if message.results and sorted(answered) != sorted(waiting):
            raise Complaint(f"messages.{place}: results for {answered}, but the calls before it are {waiting}")
        if waiting and not message.results:
            raise Complaint(f"messages.{place}: the calls {waiting} have no result right after them")
        waiting = [call.id for call in message.calls]
    if waiting:
        raise Complaint(f"the calls {waiting} of the last message have no result")


def check_tools(tools: Iterable[Tool]) -> None:
    names: set[str] = set()
    for tool in tools:
        if not TOOL_NAME.fullmatch(tool.name):
            raise Complaint(f"tools: the name {tool.name!r} does not match {TOOL_NAME.pattern}")
        if tool.name in names:
            raise Complaint(f"tools: the name {tool.name!r} is there twice")
        if tool.schema.get("type") != "object":
            raise Complaint(f"tools: the schema of {tool.name!r} is not of the type object")
        names.add(tool.name)


def wanted(body: Mapping[str, Any], name: str, kind: type) -> Any:
    """A member that must be there."""
    value = body.get(name)
    if not isinstance(value, kind):
        raise Complaint(f"{name}: expected {kind.__name__}, found {value!r}")
    return value
