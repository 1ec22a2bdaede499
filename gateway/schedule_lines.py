"""`/schedule …` on a line of an agent's answer: the line is taken out, carried out, and answered in the same message.

Lines inside a code block, as Markdown has them, are text. What an agent may do this way is what its tools let it do:
make jobs within its limits, and look at or end those of its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from cron import report
from cron.errors import CronError
from cron.phrases import parse_command
from gateway.plain import excerpt
from gateway.tools import BadCall, Schedule
from store.protocols import StoreError

if TYPE_CHECKING:
    from cron.phrases import ScheduleCommand
    from gateway.agent_run import AgentRun
    from gateway.toolbox import Toolbox

MOST_LINES = 10
_LINE = re.compile(r"\s*/schedule(?:@\w+)?\s+\S", re.IGNORECASE)
_LINE_END = re.compile(r"\r\n|\r|\n")
_BLOCKS = MarkdownIt("commonmark")
_BLOCKS.core.ruler.enableOnly(["normalize", "block"])  # what stands inside of paragraphs does not matter


def split(text: str) -> tuple[str, list[str]]:
    """The answer without its commands, and the commands."""
    lines = _LINE_END.split(text)
    found = {number for number, line in enumerate(lines) if _LINE.match(line)}
    if found:  # most answers are not looked at any closer
        found -= code(text)
    commands = [lines[number].strip() for number in sorted(found)]
    kept = (line for number, line in enumerate(lines) if number not in found)
    return "\n".join(kept).strip() if commands else text, commands


def code(text: str) -> set[int]:
    """The lines that belong to code blocks, fenced ones and indented ones."""
    blocks = [token.map for token in _BLOCKS.parse(text) if token.type in ("fence", "code_block") and token.map]
    return {number for first, end in blocks for number in range(first, end)}


async def carried_out(toolbox: Toolbox, run: AgentRun, text: str) -> str:
    """The answer as people read it: without its commands, with what came of them."""
    rest, commands = split(text)
    if not commands:
        return text
    answers = [await _answer(toolbox, run, line) for line in commands[:MOST_LINES]]
    if len(commands) > MOST_LINES:
        answers.append(f"Not more than {MOST_LINES} schedules are taken from one answer; the others were left out.")
    return "\n\n".join(filter(None, [rest, "\n".join(answers)]))


async def _answer(toolbox: Toolbox, run: AgentRun, line: str) -> str:
    try:
        return await _carry_out(toolbox, run, parse_command(line))
    except (BadCall, CronError, StoreError) as error:
        return f"Not done: {excerpt(line, 80)} ({error})."


async def _carry_out(toolbox: Toolbox, run: AgentRun, asked: ScheduleCommand) -> str:
    timetable = toolbox.timetable
    if timetable is None or Schedule.tool not in {tool.name for tool in run.tools}:
        raise BadCall(f"the agent {run.member.name} may not schedule anything here")
    if asked.verb == "create":
        job = await toolbox.make_job(run.errand, run.member, asked.phrase, asked.message)
        return report.created(job, timetable.now())
    if asked.verb == "list":
        jobs = await timetable.jobs.list(run.errand.session.tenant)
        own = [job for job in jobs if job.spec.agent == run.member.name]
        return report.listed(own, timetable.now())
    if asked.verb not in ("cancel", "pause", "resume"):
        raise BadCall(f"an agent may create, list, cancel, pause and resume schedules, not {asked.verb}")
    job = await toolbox.own_job(run.errand, run.member, asked.job_id)
    if asked.verb == "cancel":
        job = await timetable.jobs.cancel(job.tenant, job.id)
    elif asked.verb == "pause":
        job = await timetable.jobs.pause(job.tenant, job.id)
    else:
        job = await timetable.jobs.resume(job.tenant, job.id)
    return f"Job #{job.id} is {job.status} now."
