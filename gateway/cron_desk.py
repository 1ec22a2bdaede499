"""`/schedule` and `/cron`, each answered in words.

Carried out again after a crash they change nothing: a job is known by the message that asked for it, and so is a run
that somebody asked for. In a group everybody may schedule, but others' jobs are changed by admins only.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid5

from cron import report
from cron.errors import BadInput, CronError, JobNotFound
from cron.jobs import NotAllowed, Wish
from cron.phrases import FORMS, USAGES, parse_command
from cron.schedule import schedule_of
from gateway.persist import persist
from gateway.plain import counted
from store.jobs import JobStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cron.phrases import ScheduleCommand
    from gateway.commands import Command
    from gateway.timetable import Timetable
    from store.jobs import Job
    from store.records import Message

LISTED = 50
NOT_HERE = "Nothing can be scheduled here: this gateway runs without cron."


async def scheduled(timetable: Timetable | None, message: Message, command: Command) -> str:
    """What a command about schedules leads to, in words."""
    if timetable is None:
        return NOT_HERE
    try:
        if command.name == "cron" and not command.rest:
            return await listed(timetable, message)
        asked = parse_command(message.text)
        return await VERBS[asked.verb](timetable, message, asked)
    except JobNotFound as error:
        return f"There is no job #{error.id}. /cron list shows those that there are."
    except BadInput as error:
        return sentence(str(error))
    except CronError as error:
        return f"That did not work: {error}."


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
            zone=await timetable.zone_of(session),
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
    before = await own_job(timetable, message, asked)
    if before.status in (JobStatus.COMPLETED, JobStatus.FAILED):
        return f"Job #{before.id} is over already ({before.status}): it will not run again."
    job = await timetable.jobs.cancel(*key_of(message, asked))
    return f"Cancelled #{job.id}: it will not run again."


async def pause(timetable: Timetable, message: Message, asked: ScheduleCommand) -> str:
    await own_job(timetable, message, asked)
    job = await timetable.jobs.pause(*key_of(message, asked))
    if job.status is JobStatus.PAUSED:
        return f"Paused #{job.id}. /cron resume {job.id} lets it go on."
    return over(job)


async def resume(timetable: Timetable, message: Message, asked: ScheduleCommand) -> str:
    await own_job(timetable, message, asked)
    job = await timetable.jobs.resume(*key_of(message, asked))
    if job.status is not JobStatus.ACTIVE:
        return over(job)
    zone = schedule_of(job.spec.timing).zone
    following = "" if job.next_at is None else f" Next: {report.when(job.next_at, zone)} ({zone.key})."
    return f"Job #{job.id} goes on.{following}"


async def run(timetable: Timetable, message: Message, asked: ScheduleCommand) -> str:
    job = await own_job(timetable, message, asked)
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


async def own_job(timetable: Timetable, message: Message, asked: ScheduleCommand) -> Job:
    """The job, if this person may change it: in a group it must be their own, unless they are an admin."""
    job = await timetable.jobs.get(*key_of(message, asked))
    incoming = message.incoming
    if incoming.group and not incoming.admin and job.spec.owner != incoming.sender:
        raise NotAllowed(f"job #{job.id} was made by somebody else: they or an admin of this group may change it")
    return job


def own_id(message: Message) -> str:
    """The same for the same message, and for no other one, in this store or another."""
    return str(uuid5(NAMESPACE_URL, repr(("goclaw", message.id, *message.incoming.own_key))))


def over(job: Job) -> str:
    return f"Job #{job.id} is over ({job.status}). /schedule makes a new one."


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
