"""`goclaw cron`: everything about schedules, from a phrase to what became of each run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.cli import completing, schedules
from gateway.cli.reach import Api, ask_or_exit, part
from gateway.cli.shell import AsJson, ExitCode, Yes, confirm, fail, group, hint, say, say_json, talk
from gateway.cli.texts import instant_of, job_number, span_since, whole_text

cron = group("Do things later, or again and again.")

HINTS = {
    "not-found": "`goclaw cron list` shows those that there are.",
    "agent-missing": "agents are declared in agents.toml; `goclaw config check` names those that there are.",
    "quota-reached": "`goclaw cron rm ID` removes one that is not needed any more.",
    "bad-zone": "for instance: --tz Europe/Berlin",
    "job-ended": "`goclaw cron list --all` shows how it ended; `goclaw cron add` makes one anew.",
    "not-allowed": "`goclaw cron show ID` tells how it is; `goclaw cron add` makes one anew.",
}

Job = Annotated[
    str,
    typer.Argument(metavar="ID", help="The number of a schedule.", callback=job_number, autocompletion=completing.jobs),
]
Zone = Annotated[str, typer.Option("--tz", metavar="ZONE", help="Where times are meant, for instance Europe/Berlin.")]
Every = Annotated[str | None, typer.Option("--every", metavar="SPAN", help="Every so long, for instance 90s or 2h.")]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help='Once, for instance "2030-06-01 12:00".')]
Expression = Annotated[str | None, typer.Option("--cron", metavar="EXPRESSION", help='For instance "0 9 * * 1-5".')]
Agent = Annotated[str | None, typer.Option(help="Which agent does it.", autocompletion=completing.agents)]
Name = Annotated[str | None, typer.Option(help="A name, so that you recognise it.")]
Overlap = Annotated[
    str | None, typer.Option(metavar="skip|queue", help="What happens when it is due while it still runs.")
]
CatchUp = Annotated[str | None, typer.Option(metavar="one|skip", help="What happens to runs that were missed.")]
Grace = Annotated[str | None, typer.Option(metavar="SPAN", help="So late it still runs.")]
Least = Annotated[str | None, typer.Option("--min", metavar="SPAN", help="Never sooner after the run before.")]
Most = Annotated[str | None, typer.Option("--max", metavar="SPAN", help="Never later after the run before.")]
Retries = Annotated[int | None, typer.Option(min=0, max=20, help="How often a failed run is tried again.")]
Timeout = Annotated[str | None, typer.Option(metavar="SPAN", help="The longest that a run may take.")]


@cron.command()
def add(
    when: Annotated[
        str | None, typer.Argument(metavar="PHRASE", help='When: "in 30 minutes", "every day at 9am", "0 9 * * 1-5".')
    ] = None,
    message: Annotated[str | None, typer.Argument(help="What the agent is told each time; - reads it.")] = None,
    tz: Zone = "",
    agent: Agent = None,
    name: Name = None,
    every: Every = None,
    at: At = None,
    expression: Expression = None,
    webhook: Annotated[bool, typer.Option("--webhook", help="No times: a call of the API fires it.")] = False,
    now: Annotated[bool, typer.Option("--now", help="The first run is now.")] = False,
    deliver_to: Annotated[
        str | None,
        typer.Option(metavar="SESSION", help="Where answers are said.", autocompletion=completing.sessions),
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="fresh|named|chat", help="What a run knows of the ones before it.")
    ] = None,
    session_name: Annotated[str | None, typer.Option(help="For --session named.")] = None,
    work: Annotated[str | None, typer.Option(metavar="SOURCE", help="It runs only if there is work there.")] = None,
    overlap: Overlap = None,
    catch_up: CatchUp = None,
    grace: Grace = None,
    least: Least = None,
    most: Most = None,
    retries: Retries = None,
    timeout: Timeout = None,
    key: Annotated[str | None, typer.Option(help="Adding it again with the same key changes nothing.")] = None,
    as_json: AsJson = False,
) -> None:
    """Schedule a message to an agent. Says what was understood, the next times, and how to take it back.

    \b
    goclaw cron add "every weekday at 9am: what is new?" --tz Europe/Berlin
    goclaw cron add "in 30 minutes" "remember the tea"
    goclaw cron add --every 10m "look at the queue" --min 5m
    """
    otherwise = {"every": every, "at": at, "cron": expression, "webhook": webhook or None}
    body: dict[str, Any] = schedules.timing(when, message, otherwise)
    about = {
        "zone": tz or None,
        "agent": agent,
        "name": name,
        "at_once": now or None,
        "deliver_to": deliver_to,
        "session": session,
        "session_name": session_name,
        "work_source": work,
    }
    body |= {field: value for field, value in about.items() if value is not None}
    body["rules"] = schedules.rules(overlap, catch_up, grace, least, most, retries, timeout)

    async def create(api: Api) -> tuple[Any, bool]:
        if deliver_to is not None:
            body["deliver_to"] = await schedules.session_named(api, deliver_to)
        return await api.post("/v1/schedules", body, key=key), api.served

    made, served = ask_or_exit(create, HINTS)
    if as_json:
        say_json(made)
    else:
        schedules.say_made(made)
    hint(f"`goclaw cron rm {made['id']}` takes it back.")
    if not served:
        talk("note", "bold", "no gateway runs on this machine; it fires while one does: goclaw run")


@cron.command("list")
def list_(
    everything: Annotated[bool, typer.Option("--all", "-a", help="Also those that have ended.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what is scheduled, with the next time of each.

    \b
    goclaw cron list --all
    """
    status = ["active", "paused", "completed", "failed", "cancelled"] if everything else None
    page = ask_or_exit(lambda api: api.all("/v1/schedules", status=status), HINTS)
    if as_json:
        say_json(page)
    elif not page["items"]:
        talk("", "", "Nothing is scheduled.")
        hint('for instance: goclaw cron add "every weekday at 9am: what is new?"')
    else:
        schedules.show_list(page["items"])


@cron.command()
def show(id: Job, as_json: AsJson = False) -> None:
    """Show everything about a schedule.

    \b
    goclaw cron show 3
    """
    found = ask_or_exit(lambda api: api.get(f"/v1/schedules/{id}"), HINTS)
    if as_json:
        say_json(found)
    else:
        schedules.show_one(found)


@cron.command()
def edit(
    id: Job,
    when: Annotated[
        str | None, typer.Option("--when", metavar="PHRASE", help='For instance "every day at 9am".')
    ] = None,
    message: Annotated[str | None, typer.Option(help="What the agent is told each time; - reads it.")] = None,
    tz: Zone = "",
    agent: Agent = None,
    name: Name = None,
    every: Every = None,
    at: At = None,
    expression: Expression = None,
    overlap: Overlap = None,
    catch_up: CatchUp = None,
    grace: Grace = None,
    least: Least = None,
    most: Most = None,
    retries: Retries = None,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Change what is named, and nothing else.

    \b
    goclaw cron edit 3 --when "every day at 8am" --message "good morning"
    """
    body: dict[str, Any] = {"when": when, "every": every, "cron": expression, **instant_of(at)}
    body |= {"zone": tz or None, "agent": agent, "name": name}
    body["message"] = None if message is None else whole_text(message, "the message")
    body = {field: value for field, value in body.items() if value is not None}
    if rules := schedules.rules(overlap, catch_up, grace, least, most, retries, timeout):
        body["rules"] = rules
    if not body:
        fail("nothing to change was named", f"`goclaw cron edit {id} --help` lists what can be.", ExitCode.USAGE)
    changed(ask_or_exit(lambda api: api.patch(f"/v1/schedules/{id}", body), HINTS), as_json)


@cron.command()
def pause(
    id: Job,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="It goes on by itself then.")] = None,
    reason: Annotated[str, typer.Option(help="Why, for whoever looks later.")] = "",
    as_json: AsJson = False,
) -> None:
    """Let it rest: nothing fires until it is resumed.

    \b
    goclaw cron pause 3 --until "2030-06-01 12:00" --reason holidays
    """
    body = {"status": "paused", "reason": reason, **schedules.until(until)}
    changed(ask_or_exit(lambda api: api.patch(f"/v1/schedules/{id}", body), HINTS), as_json)


@cron.command()
def resume(id: Job, as_json: AsJson = False) -> None:
    """Let it go on after a pause.

    \b
    goclaw cron resume 3
    """
    changed(ask_or_exit(lambda api: api.patch(f"/v1/schedules/{id}", {"status": "active"}), HINTS), as_json)


def changed(job: dict[str, Any], as_json: bool) -> None:
    if as_json:
        say_json(job)
    else:
        schedules.say_changed(job)


@cron.command()
def run(
    id: Job,
    key: Annotated[str | None, typer.Option(help="Asking again with the same key is the same run.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run it once, now, beside its schedule.

    \b
    goclaw cron run 3
    """

    async def fire(api: Api) -> tuple[Any, bool]:
        return await api.post(f"/v1/schedules/{id}/run", key=key), api.served

    trigger, served = ask_or_exit(fire, HINTS)
    if as_json:
        say_json(trigger)
    else:
        say(f"#{id} runs {'now' if served else 'as soon as a gateway does: goclaw run'}.")
    hint(f"`goclaw cron runs {id}` shows what became of it.")


@cron.command()
def rm(
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...", help="Numbers of schedules.", callback=job_number, autocompletion=completing.jobs
        ),
    ],
    purge: Annotated[bool, typer.Option("--purge", help="Its history goes too.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete schedules. They never fire again; their history stays, unless it is purged.

    \b
    goclaw cron rm 3
    """
    known = ask_or_exit(lambda api: schedules.each(api, ids), HINTS)
    if purge:
        runs = sum(job["runs"] for job in known)
        names = ", ".join(f"#{job['id']}" for job in known)
        confirm(f"This deletes {names} and all that is known of {runs} run{'' if runs == 1 else 's'}.", yes=yes)
    answers = ask_or_exit(lambda api: schedules.delete(api, ids, purge=purge), HINTS)
    if as_json:
        say_json(answers)
        return
    for job in known:
        say(f"Deleted #{job['id']}: {schedules.title(job)}")


@cron.command("next")
def next_(
    what: Annotated[str, typer.Argument(metavar="PHRASE|ID", help="A phrase, an expression, or a number.")],
    tz: Zone = "",
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=100, help="How many times.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Tell when something would run. A phrase needs neither a gateway nor a store.

    \b
    goclaw cron next "every weekday at 9am" --tz Europe/Berlin --count 5
    """
    number = what.strip().removeprefix("#")
    if number.isascii() and number.isdigit():
        job = ask_or_exit(lambda api: api.get(f"/v1/schedules/{job_number(number)}"), HINTS)
        found = schedules.preview_of(job, count)
    else:
        found = schedules.preview(what, tz, count)
    if as_json:
        say_json(found)
    else:
        schedules.show_preview(found)


@cron.command()
def runs(
    id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Of one schedule.", callback=job_number, autocompletion=completing.jobs),
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME|SPAN", help='Since then: 2h, "2030-06-01 12:00".')] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=1_000, help="The latest so many.")] = 20,
    output: Annotated[str | None, typer.Option(metavar="RUN", help="All that one run said, by its id.")] = None,
    as_json: AsJson = False,
) -> None:
    """List what ran and how it ended. The latest first; with --output all that one run said.

    \b
    goclaw cron runs 3 --since 2h
    """
    if output is not None:
        schedules.show_output(ask_or_exit(lambda api: schedules.output(api, output), schedules.RUN_HINTS), as_json)
        return
    start = None if since is None else span_since(since)
    page = ask_or_exit(lambda api: schedules.latest_runs(api, id, start, count), HINTS)
    if as_json:
        say_json(page)
    elif not page["items"]:
        talk("", "", "Nothing has run yet." if since is None else "Nothing has run since then.")
    else:
        schedules.show_runs(page["items"])


@cron.command()
def why(id: Job, as_json: AsJson = False) -> None:
    """Tell why it ran when it did, and why it runs next when it will.

    \b
    goclaw cron why 3
    """
    found = ask_or_exit(lambda api: api.get(f"/v1/schedules/{part(id)}/why"), HINTS)
    if as_json:
        say_json(found)
    else:
        say(found["text"])
