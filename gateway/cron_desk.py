"""`/schedule` and `/cron`: one command at a time, in the order in which they came in, each answered in words.

A command is carried out before its message is settled, so a process that dies over it carries it out again after its
next start. That is harmless: a job is known by the message that asked for it, and so is a run that somebody asked for.
"""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid5

import trio

from cron import report
from cron.errors import BadInput, CronError, JobNotFound
from cron.jobs import Wish
from cron.phrases import FORMS, USAGES, parse_command
from cron.schedule import schedule_of
from gateway.commands import counted
from gateway.persist import persist
from store.jobs import JobStatus
from store.protocols import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cron.phrases import ScheduleCommand
    from gateway.commands import Command
    from gateway.timetable import Timetable
    from store.jobs import Job
    from store.records import Message

    Answer = Callable[[Message, str], Awaitable[None]]

logger = logging.getLogger("goclaw.cron")

LISTED = 50
NOT_HERE = "Nothing can be scheduled here: this gateway runs without cron."


class CronDesk:
    def __init__(self, timetable: Timetable | None, answer: Answer) -> None:
        self._timetable = timetable
        self._answer = answer
        self._put, self._take = trio.open_memory_channel[tuple["Message", "Command"]](math.inf)

    def hand_in(self, message: Message, command: Command) -> None:
        self._put.send_nowait((message, command))

    async def run(self) -> None:
        async for message, command in self._take:
            if self._timetable is None:
                text = NOT_HERE
            else:
                text = await carried_out(self._timetable, message, command)
            await self._answer(message, text)


async def carried_out(timetable: Timetable, message: Message, command: Command) -> str:
    """Do what the command asks for, and say what was done or what was wrong."""
    try:
        if command.name == "cron" and not command.rest:
            return await listed(timetable, message)
        asked = parse_command(message.text)
        return await VERBS[asked.verb](timetable, message, asked)
    except JobNotFound as error:
        return f"There is no job #{error.id}. /cron list shows those that there are."
    except BadInput as error:
        return sentence(str(error))
    except (CronError, StoreError) as error:
        return f"That did not work: {error}."
    except Exception:  # a mistake of ours: said in the log and to the person, or it would come with every start
        logger.exception("message %d, a command about schedules, could not be carried out", message.id)
        return "That did not work: a mistake inside goclaw. Its log tells more."


async def create(timetable: Timetable, message: Message, asked: ScheduleCommand) -> str:
    session = message.session
    job = await timetable.jobs.create(
        Wish(
            tenant=session.tenant,
            agent=session.agent,
            message=asked.message,
            when=asked.phrase,
            deliver_to=session,
            owner=message.incoming.sender,
            uid=own_id(message),
            asked_at=message.accepted_at,
        )
    )
    return report.created(job, timetable.now())


async def show_help(timetable: Timetable, message: Message, asked: ScheduleCommand) -> str:
    zone = await timetable.jobs.zone(message.session.tenant)
    return "\n".join([*USAGES, f"A phrase is one of these; times are in {zone}:", *(f"  {form}" for form in FORMS)])


async def show_list(timetable: Timetable, message: Message, asked: ScheduleCommand) -> str:
    return await listed(timetable, message)


async def listed(timetable: Timetable, message: Message) -> str:
    tenant = message.session.tenant
    jobs = await timetable.jobs.list(tenant, limit=LISTED)
    counts = await persist(partial(timetable.store.cron.counts, tenant))
    left = counts.active + counts.paused - len(jobs)
    text = report.listed(jobs, timetable.now())
    return f"{text}\n… and {counted(left, 'more job')}." if left > 0 else text


async def cancel(timetable: Timetable, message: Message, asked: ScheduleCommand) -> str:
    before = await timetable.jobs.get(*key_of(message, asked))
    if before.status in (JobStatus.COMPLETED, JobStatus.FAILED):
        return f"Job #{before.id} is over already ({before.status}): it will not run again."
    job = await timetable.jobs.cancel(*key_of(message, asked))
    return f"Cancelled #{job.id}: it will not run again."


async def pause(timetable: Timetable, message: Message, asked: ScheduleCommand) -> str:
    job = await timetable.jobs.pause(*key_of(message, asked))
    if job.status is JobStatus.PAUSED:
        return f"Paused #{job.id}. /cron resume {job.id} lets it go on."
    return over(job)


async def resume(timetable: Timetable, message: Message, asked: ScheduleCommand) -> str:
    job = await timetable.jobs.resume(*key_of(message, asked))
    if job.status is not JobStatus.ACTIVE:
        return over(job)
    zone = schedule_of(job.spec.timing).zone
    following = "" if job.next_at is None else f" Next: {report.when(job.next_at, zone)} ({zone.key})."
    return f"Job #{job.id} goes on.{following}"


async def run(timetable: Timetable, message: Message, asked: ScheduleCommand) -> str:
    job = await timetable.jobs.get(*key_of(message, asked))
    await timetable.jobs.run_now(*key_of(message, asked), key=own_id(message))
    return f"Job #{job.id} runs as soon as there is a free slot; its schedule stays as it is."


async def why(timetable: Timetable, message: Message, asked: ScheduleCommand) -> str:
    job = await timetable.jobs.get(*key_of(message, asked))
    cron = timetable.store.cron
    runs = await persist(partial(cron.runs, job.tenant, job=job.id, limit=1))
    triggers = await persist(partial(cron.triggers, job.tenant, job.id))
    return report.why(job, runs, triggers, timetable.now())


VERBS: dict[str, Callable[[Timetable, Message, ScheduleCommand], Awaitable[str]]] = {
    "create": create,
    "help": show_help,
    "list": show_list,
    "cancel": cancel,
    "pause": pause,
    "resume": resume,
    "run": run,
    "why": why,
}


def key_of(message: Message, asked: ScheduleCommand) -> tuple[str, int]:
    """Only ever in the tenant of the conversation: another one's job is not found. (P11)"""
    return message.session.tenant, asked.job_id or 0


def own_id(message: Message) -> str:
    """The same for the same message, and for no other one, in this store or another."""
    return str(uuid5(NAMESPACE_URL, repr(("goclaw", message.id, *message.incoming.own_key))))


def over(job: Job) -> str:
    return f"Job #{job.id} is over ({job.status}). /schedule makes a new one."


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
