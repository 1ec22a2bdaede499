"""Schedules and their runs: what is sent about them, and how they look to people."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn
from zoneinfo import ZoneInfo

from gateway.cli.naming import find_session
from gateway.cli.reach import Api, part
from gateway.cli.shell import ExitCode, fail, say, say_json, settings_or_exit
from gateway.cli.tables import at, facts, flat, moment_of, narrow, relative, rough, show, state, table, took
from gateway.cli.texts import in_the_future, instant_of, phrase_and_message, refuse_phrase, span_of, whole_text
from gateway.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from rich.text import Text

    from cron.errors import BadInput
    from cron.schedule import Schedule

RUN_HINTS = {"not-found": "`goclaw cron runs` lists the latest, with their ids."}
LONGEST = 16_000
EXCERPT = 60
AT_MOST = 10_000


# ── what is sent ─────────────────────────────────────────────────────────────────────────────────────────────────────


def timing(when: str | None, message: str | None, otherwise: Mapping[str, Any]) -> dict[str, Any]:
    """When, and what is said then: `PHRASE MESSAGE`, `"PHRASE: MESSAGE"`, or one of the options and MESSAGE."""
    named = {option: value for option, value in otherwise.items() if value is not None}
    if len(named) > 1 or (named and message is not None):
        ways = [*(["a phrase"] if message is not None else []), *(f"--{option}" for option in named)]
        fail(f"this says more than once when: {' and '.join(ways)}", "name one of them", ExitCode.USAGE)
    if named:
        said: dict[str, Any] = instant_of(named["at"]) if "at" in named else named
        return {**said, "message": text_of(when or "")}
    if when is None:
        example = 'for instance: goclaw cron add "every weekday at 9am: what is new?"'
        fail("say when, and what the agent is told", example, ExitCode.USAGE)
    if message is None:
        when, message = phrase_and_message(when)
    return {"when": when, "message": text_of(message)}


def text_of(message: str) -> str:
    return whole_text(message, "the message", LONGEST)


def rules(
    overlap: str | None,
    catch_up: str | None,
    grace: str | None,
    least: str | None,
    most: str | None,
    retries: int | None,
    timeout: str | None,
) -> dict[str, Any]:
    found = {
        "overlap": overlap,
        "catch_up": catch_up,
        "grace": grace,
        "min_interval": least,
        "max_interval": most,
        "max_retries": retries,
        "run_timeout": timeout,
    }
    return {name: value for name, value in found.items() if value is not None}


def until(text: str | None) -> dict[str, Any]:
    """When a pause ends: a moment, meant where it is typed, or a span from now."""
    return {} if text is None else {"paused_until": in_the_future(text)}


async def session_named(api: Api, text: str) -> str:
    return str((await find_session(api, text))["key"])


async def each(api: Api, ids: Sequence[str]) -> list[dict[str, Any]]:
    return [await api.get(f"/v1/schedules/{id}") for id in ids]


async def delete(api: Api, ids: Sequence[str], *, purge: bool) -> list[dict[str, Any]]:
    return [await api.delete(f"/v1/schedules/{id}", purge=purge or None) for id in ids]


async def output(api: Api, run: str) -> tuple[dict[str, Any], str]:
    about = await api.get(f"/v1/runs/{part(run)}")
    return about, await api.get(f"/v1/runs/{part(run)}/output")


async def latest_runs(api: Api, id: str | None, since: str | None, count: int) -> dict[str, Any]:
    """The latest first."""
    if since is None:
        return {"items": (await api.get("/v1/runs", schedule=id, limit=count))["items"], "next": None}
    found: dict[str, Any] = {}
    while since is not None and len(found) < AT_MOST:
        page = await api.get("/v1/runs", schedule=id, since=since, limit=100)
        before = len(found)
        found |= {run["id"]: run for run in page["items"]}
        since = page["next"] if len(found) > before else None  # the run that a page ends with begins the next one
    return {"items": list(found.values())[::-1][:count], "next": None}


# ── how it looks ─────────────────────────────────────────────────────────────────────────────────────────────────────


def title(job: Mapping[str, Any]) -> str:
    return flat(job["name"] or job["message"], EXCERPT)


def say_made(job: Mapping[str, Any]) -> None:
    zone = ZoneInfo(job["zone"])
    say(f"Scheduled #{job['id']}: {job['words']}")
    if job["next_fires"]:
        say(f"Next: {', '.join(at(fire, zone) for fire in job['next_fires'][:3])} ({job['zone']})")
    say(f"Message: {flat(job['message'], 200)}")


def say_changed(job: Mapping[str, Any]) -> None:
    say(f"#{job['id']} {job['words']}: {condition(job)}{because(job)}")
    if job["next_at"]:
        say(f"Next: {next_run(job)} ({job['zone']})")
    say(f"Message: {flat(job['message'], 200)}")


def condition(job: Mapping[str, Any]) -> str:
    """A pause that ends by itself leaves a schedule active."""
    until = moment_of(job["paused_until"])
    if job["status"] == "active" and until is not None and until > utc_now():
        return f"paused until {at(job['paused_until'], ZoneInfo(job['zone']))}"
    return str(job["status"])


def because(job: Mapping[str, Any]) -> str:
    return f" ({flat(job['reason'])})" if job["reason"] else ""


def next_run(job: Mapping[str, Any]) -> str:
    if job["status"] not in ("active", "paused") or not job["next_at"]:
        return ""
    return f"{at(job['next_at'], ZoneInfo(job['zone']))}, {soon(job['next_at'])}"


def soon(text: str) -> str:
    moment, now = moment_of(text), utc_now()
    return "due now" if moment is not None and moment <= now else relative(text, now)


def show_list(jobs: Sequence[Mapping[str, Any]]) -> None:
    slim = narrow()
    rows = [
        (
            f"#{job['id']}",
            title(job),
            job["words"],
            state(condition(job).partition(" ")[0]),
            stacked(next_run(job)) if slim else next_run(job),
            state(job["last_state"] or ""),
        )
        for job in jobs
    ]
    show(table(("id", "what", "when", "status", "next", "last"), rows, fold=("what", "when")))


def stacked(text: str) -> Text:
    """What stands behind the comma comes below."""
    from rich.text import Text

    return Text(text.replace(", ", "\n", 1))


def show_one(job: Mapping[str, Any]) -> None:
    zone, now, hints = ZoneInfo(job["zone"]), utc_now(), job["hints"]
    hinted = [f"every {hints['interval']}"] if hints["interval"] else []
    hinted += [f"at {at(hints['next_at'], zone)}"] if hints["next_at"] else []
    about = f"{' and '.join(hinted)}, until {at(hints['expires_at'], zone)}" if hinted else ""
    last = f"{at(job['last_run_at'], zone)}, {relative(job['last_run_at'], now)}: {job['last_state']}"
    conversation = {"fresh": "", "named": f"the conversation {job['session_name']!r}", "chat": "where it answers"}
    facts(
        [
            ("schedule", f"#{job['id']} {job['name']}".strip()),
            ("when", job["words"]),
            ("zone", job["zone"]),
            ("status", f"{condition(job)}{because(job)}"),
            ("next run", next_run(job)),
            ("after that", ", ".join(at(fire, zone) for fire in job["next_fires"][1:])),
            ("last run", last if job["last_run_at"] else "it has not run yet"),
            ("runs", f"{job['runs']}" + (f", {job['failures']} failed in a row" if job["failures"] else "")),
            ("agent", job["agent"]),
            ("message", job["message"]),
            ("runs only if", job["work_source"] and f"there is work in {job['work_source']}"),
            ("remembers", conversation.get(job["session"], job["session"])),
            ("answers go to", job["deliver_to"]),
            ("its agent asks", f"{about}{because(hints)}" if about else ""),
            *((name, value) for name, value in rules_in_words(job["rules"])),
            ("made by", f"{job['owner'] or 'nobody known'}{' (an agent)' if job['made_by_agent'] else ''}"),
            ("made", f"{at(job['created_at'], zone)}, {relative(job['created_at'], now)}"),
            ("changed", f"{at(job['updated_at'], zone)}, {relative(job['updated_at'], now)}"),
        ]
    )


def rules_in_words(rules: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Only what is not as usual."""
    meanings = [
        ("overlap", "waits for its turn" if rules["overlap"] == "queue" else ""),
        ("missed runs", {"one": "one run for all of them", "skip": "are left out"}.get(rules["catch_up"] or "", "")),
        ("late", f"runs up to {rules['grace']} late" if rules["grace"] else ""),
        ("counts from", "the end of the run before" if rules["anchor"] == "completion" else ""),
        ("never sooner than", f"{rules['min_interval']} after the run before" if rules["min_interval"] else ""),
        ("never later than", f"{rules['max_interval']} after the run before" if rules["max_interval"] else ""),
        ("retries", "" if rules["max_retries"] is None else f"{rules['max_retries']}"),
        ("longest run", rules["run_timeout"] or ""),
        ("afterwards", "gone once it has succeeded" if rules["delete_after_success"] else ""),
    ]
    return [(name, meaning) for name, meaning in meanings if meaning]


def show_runs(runs: Sequence[Mapping[str, Any]]) -> None:
    now = utc_now()
    if narrow():
        for run in runs:
            show(block_of(run, now))
        return
    rows = [
        (
            run["id"],
            f"#{run['schedule']}",
            at(run["started_at"]),
            state(run["state"]),
            took(dict(run), now),
            late(run),
            flat(run["error"] or run["summary"], EXCERPT),
        )
        for run in runs
    ]
    show(table(("run", "id", "started", "state", "took>", "late>", "what it said"), rows, fold=("what it said",)))


def block_of(run: Mapping[str, Any], now: datetime) -> Text:
    """A run on lines of its own, where a row would not fit."""
    from rich.text import Text

    span = "" if run["ended_at"] is None else f" in {took(dict(run), now)}"
    more = f", {late(run)} late" if late(run) else ""
    made = Text.assemble(f"#{run['schedule']} {at(run['started_at'])} ", state(run["state"]), f"{span}{more}")
    made.append(f"\n  {run['id']}", "dim")
    said = flat(run["error"] or run["summary"], EXCERPT)
    return made.append(f"\n  {said}") if said else made


def late(run: Mapping[str, Any]) -> str:
    return rough(timedelta(seconds=run["lateness_s"])) if run["lateness_s"] >= 1 else ""


def show_output(found: tuple[Mapping[str, Any], str], as_json: bool) -> None:
    from gateway.channels.printable import printable

    about, text = found
    if as_json:
        say_json({**about, "output": text})
    else:
        say(printable(text or about["error"]))


# ── when it would run ────────────────────────────────────────────────────────────────────────────────────────────────


def preview(what: str, tz: str, count: int) -> dict[str, Any]:
    """What a phrase means, computed here."""
    from cron.errors import BadInput
    from cron.jobs import check_schedule
    from cron.phrases import parse_phrase

    zone = tz or settings_or_exit().settings.cron.timezone
    now = utc_now()
    try:
        schedule = parse_phrase(what, now=now, zone=zone)
        check_schedule(schedule, now)
    except BadInput as error:
        refuse(error)
    return of_schedule(schedule, list(schedule.fires(now, count)))


def of_schedule(schedule: Schedule, fires: Sequence[Any]) -> dict[str, Any]:
    return {
        "words": schedule.words(),
        "kind": schedule.timing.kind,
        "zone": schedule.zone.key,
        "recurring": schedule.recurring,
        "next_fires": [moment.isoformat().replace("+00:00", "Z") for moment in fires],
    }


def refuse(error: BadInput) -> NoReturn:
    from cron.errors import PhraseError

    if isinstance(error, PhraseError):
        refuse_phrase(error)
    fail(str(error).partition("\n")[0], f"for instance: {error.example}", ExitCode.USAGE)


def preview_of(job: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The same for a schedule that there is: its planned run, and what it says from there on."""
    fires = list(job["next_fires"])
    schedule = schedule_in(job)
    if schedule is not None and len(fires) > 1:
        last = moment_of(fires[-1])
        while last is not None and len(fires) < count and (last := schedule.next_after(last)) is not None:
            fires.append(last.isoformat().replace("+00:00", "Z"))
    return {
        "words": job["words"],
        "kind": job["kind"],
        "zone": job["zone"],
        "recurring": job["kind"] in ("cron", "every"),
        "next_fires": fires[:count],
    }


def schedule_in(job: Mapping[str, Any]) -> Schedule | None:
    from cron.schedule import every, parse_cron

    if job["cron"]:
        return parse_cron(job["cron"], job["zone"])
    return every(span_of(job["every"]), job["zone"]) if job["every"] else None


def show_preview(found: Mapping[str, Any]) -> None:
    zone, now = ZoneInfo(found["zone"]), utc_now()
    say(found["words"] if found["zone"] in found["words"] else f"{found['words']} ({found['zone']})")
    if not found["next_fires"]:
        say("It will not run by itself.")
        return
    rows = [(at(fire, zone), offset(fire, zone), relative(fire, now)) for fire in found["next_fires"]]
    show(table(("next", "", ""), rows))


def offset(text: str, zone: ZoneInfo) -> str:
    moment = moment_of(text)
    shift = None if moment is None else moment.astimezone(zone).utcoffset()
    if moment is None or shift is None:
        return ""
    name = moment.astimezone(zone).tzname() or ""
    minutes = round(shift / timedelta(minutes=1))
    plain = f"UTC{minutes // 60:+d}" if not minutes % 60 else f"UTC{minutes / 60:+g}"
    return plain if not name.isalpha() else name
