"""What agents may ask the gateway to do: names, words for the model, and the shape of every call. Pure.

A call is checked here before anything happens; what is wrong with it is said in words that help the model to do better.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from gateway.protocols import Tool
from store.jobs import LONGEST_MESSAGE

LONGEST_TASK = 100_000
MOST_RUNS = 20

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_TASK)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class Call(BaseModel):
    """The arguments of one tool. The docstring is what the model reads about it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    tool: ClassVar[str]


class SpawnSubagent(Call):
    """Have a helper work on a part of the task by itself, and get what it says. Several at once work side by side."""

    tool = "spawn_subagent"
    task: Words = Field(description="All that the helper needs to know; it sees nothing of this conversation.")


class Delegate(Call):
    """Hand a task to another agent by its name, and get what it says."""

    tool = "delegate"
    agent: Name = Field(description="Which agent.")
    task: Words = Field(description="All that it needs to know; it sees nothing of this conversation.")


class Schedule(Call):
    """Have a message sent to yourself later, or again and again; your answer then goes to this conversation."""

    tool = "schedule"
    when: Name = Field(description="For instance: in 2 hours, tomorrow at 09:00, every weekday at 9am, 0 9 * * 1-5.")
    message: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_MESSAGE)] = Field(
        description="What you are to do then."
    )
    name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] = Field(
        "", description="A short name for people."
    )


class ScheduleHint(Call):
    """Propose when a job of yours runs next: another pace, one moment, or a pause. It counts until it expires."""

    tool = "schedule_hint"
    job: int | None = Field(None, description="The job's number; left out, the job that you are working for.")
    interval: str | None = Field(None, description="Run so far apart for now, for instance 15m.")
    next_run: str | None = Field(None, description="Run once at this time, for instance in 10 minutes.")
    pause: str | None = Field(None, description="Do not run before this time, for instance tomorrow at 09:00.")
    lasts: str = Field("1h", description="How long the proposal counts, for instance 1h.")
    reason: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)] = Field(
        description="Why, in a few words; people read it."
    )


class ScheduleHistory(Call):
    """Read what earlier runs of a job said, whole."""

    tool = "schedule_history"
    job: int | None = Field(None, description="The job's number; left out, the job that you are working for.")
    limit: int = Field(5, ge=1, le=MOST_RUNS, description="How many runs, newest first.")


class ReadFile(Call):
    """Read a text file of your workspace."""

    tool = "read_file"
    path: str = Field(description="Its path inside the workspace, for instance notes/today.md.")


class WriteFile(Call):
    """Write a text file of your workspace; what it held before is replaced."""

    tool = "write_file"
    path: str = Field(description="Its path inside the workspace, for instance notes/today.md.")
    content: str = Field(description="All of what it is to hold.")


CALLS: dict[str, type[Call]] = {
    call.tool: call for call in (SpawnSubagent, Delegate, Schedule, ScheduleHint, ScheduleHistory, ReadFile, WriteFile)
}


class BadCall(Exception):
    """What is wrong with a call, in words for the model."""


@cache  # every turn asks, and a schema takes pydantic half a millisecond
def described(name: str) -> Tool:
    call = CALLS[name]
    schema = call.model_json_schema()
    shown = {"type": "object", "properties": schema["properties"], "required": schema.get("required", [])}
    return Tool(name, (call.__doc__ or "").strip(), shown | {"additionalProperties": False})


def read_call(name: str, arguments: Mapping[str, Any]) -> Call:
    if name not in CALLS:
        raise BadCall(f"there is no tool {json.dumps(name)}; there are {', '.join(CALLS)}")
    try:
        return CALLS[name].model_validate(dict(arguments), strict=False)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, one['loc'])) or name}: {one['msg']}" for one in error.errors()]
        raise BadCall(f"{name} was called wrongly. {'; '.join(problems)}") from None
