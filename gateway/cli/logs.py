"""`goclaw logs`: what a gateway has written down, by time and for people. Needs no gateway.

    goclaw.log      what it logs: warnings, failures, crashes
    scheduler.log   what cron does
    traces.jsonl    what became of each run

Each is a file of JSON lines that makes room for a new one when it is full; following goes on over that.
"""

from __future__ import annotations

import json
import signal
from collections import deque
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gateway.cli.shell import AsJson, ExitCode, console, fail, hint, run_or_exit, say, settings_or_exit, talk
from gateway.cli.tables import flat, rough

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import TextIO

FILES = ("goclaw.log", "scheduler.log", "traces.jsonl")
LEVELS = ("debug", "info", "warning", "error", "critical")
LOOK_S = 0.3
LONGEST = 2_000
"""Characters of a line for people; --json has all of it."""
STYLES = {"warning": "yellow", "error": "bold red", "critical": "bold red", "debug": "dim"}
HIDDEN = {"timestamp", "at", "level", "event", "logger", "exception", "trigger_id", "trace_id", "trace", "tenant"}
WELL = ("done", "ok")

Level = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Entry:
    at: str
    level: str
    source: str
    facts: dict[str, Any]


def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes; Ctrl-C ends it.")] = False,
    count: Annotated[int, typer.Option("-n", "--count", min=0, max=100_000, help="The last so many.")] = 50,
    level: Annotated[Level, typer.Option(help="The least severe that is shown.")] = "info",
    as_json: AsJson = False,
) -> None:
    """Read what the gateway has written down. Its log, what cron did, what became of each run.

    \b
    goclaw logs -f
    goclaw logs -n 200 --level warning
    """
    from gateway.stores import data_directory
    from store.protocols import CannotOpen

    settings = settings_or_exit().settings
    try:
        directory = data_directory(settings) / "logs"
    except CannotOpen as error:
        fail(str(error), code=ExitCode.UNAVAILABLE)
    with ExitStack() as open_:
        files = [open_.enter_context(closing(Followed(directory / name))) for name in FILES]
        last = newest(files, count, level)
        for entry in last:
            say(as_line(entry) if as_json else in_words(entry))
        if follow:
            if not last:
                talk("", "", f"Nothing yet in {directory}; waiting. Ctrl-C ends this.")
            run_or_exit(lambda files: go_on(files, level, as_json=as_json), files)
    if not last and not follow:
        talk("", "", f"There is nothing to read in {directory}.")
        hint("a gateway writes there: goclaw run")


def newest(files: Iterable[Followed], count: int, level: str) -> list[Entry]:
    """The last lines of all files together, by time."""
    entries = [entry for file in files for entry in file.last(count, level)]
    entries.sort(key=lambda entry: entry.at)
    return entries[-count:] if count else []


async def go_on(files: Iterable[Followed], level: str, *, as_json: bool) -> None:
    import trio

    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        while True:
            entries = [entry for file in files for entry in file.more() if severe(entry, level)]
            for entry in sorted(entries, key=lambda entry: entry.at):
                say(as_line(entry) if as_json else in_words(entry))
            with trio.move_on_after(LOOK_S):
                await anext(signals)
                return


class Followed:
    """A file of lines that grows, and now and then begins anew under its name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: TextIO | None = None
        self._half = ""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def last(self, count: int, level: str) -> list[Entry]:
        """The last ones that are severe enough; from here on `more` goes on."""
        found: deque[Entry] = deque(maxlen=count)
        older = self.path.with_name(f"{self.path.name}.1")
        for lines in (self._lines_of(older), self._read()):
            found.extend(entry for entry in entries_of(self.path.name, lines) if severe(entry, level))
        return list(found)

    def more(self) -> Iterator[Entry]:
        """What was written since; over a rotation the rest of the old file comes first."""
        lines = self._read()
        if self._replaced():
            lines += self._read(anew=True)
        return entries_of(self.path.name, lines)

    def _lines_of(self, path: Path) -> list[str]:
        try:
            return path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []

    def _read(self, *, anew: bool = False) -> list[str]:
        if anew:
            self.close()
        if self._file is None:
            try:
                self._file = self.path.open(encoding="utf-8", errors="replace")
            except OSError:
                return []
            self._half = ""
        text = self._half + self._file.read()
        *lines, self._half = text.split("\n")
        return lines

    def _replaced(self) -> bool:
        """Another file has the name now, or this one was cut."""
        if self._file is None:
            return False
        try:
            now = self.path.stat()
        except OSError:
            return False
        import os

        mine = os.fstat(self._file.fileno())
        return (now.st_ino, now.st_dev) != (mine.st_ino, mine.st_dev) or now.st_size < self._file.tell()


def entries_of(source: str, lines: Iterable[str]) -> Iterator[Entry]:
    """What can be read of them; a line that was torn by a crash is passed over."""
    for line in lines:
        try:
            facts = json.loads(line)
        except ValueError:
            continue
        if isinstance(facts, dict):
            at = str(facts.get("timestamp") or facts.get("at") or "")
            yield Entry(at, level_of(facts), source.partition(".")[0], facts)


def level_of(facts: dict[str, Any]) -> str:
    if "level" in facts:
        return str(facts["level"]).lower()
    return "info" if facts.get("status") in WELL else "warning"


def severe(entry: Entry, level: str) -> bool:
    return entry.level not in LEVELS or LEVELS.index(entry.level) >= LEVELS.index(level)


# ── how it looks ─────────────────────────────────────────────────────────────────────────────────────────────────────


def as_line(entry: Entry) -> str:
    line = {"at": entry.at, "level": entry.level, "source": entry.source, "facts": entry.facts}
    return json.dumps(line, ensure_ascii=False)


def in_words(entry: Entry) -> str:
    from rich.text import Text

    facts = entry.facts
    said = words_of_trace(facts) if entry.source == "traces" else words_of_log(facts)
    line = Text.assemble(
        (clock(entry.at), "dim"), " ", (f"{entry.level:<8}", STYLES.get(entry.level, "")), flat(said, LONGEST)
    )
    screen = console()
    with screen.capture() as captured:
        screen.print(line, soft_wrap=True, end="")
    trace = str(facts.get("exception") or "").rstrip()
    if entry.level not in ("error", "critical"):
        trace = trace.rpartition("\n")[2]  # what it was is enough, where it came from is in --json
    return captured.get() + (f"\n{indented(trace)}" if trace else "")


def clock(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at).astimezone():%m-%d %H:%M:%S}"
    except ValueError:
        return at


def words_of_log(facts: dict[str, Any]) -> str:
    told = {name: fact for name, fact in facts.items() if name not in HIDDEN and fact not in ("", None)}
    job = told.pop("schedule_id", None)
    logger = str(facts.get("logger", "cron")).removeprefix("goclaw.")
    event = str(facts.get("event", ""))
    said = event if "logger" in facts else event.replace("_", " ")
    about = f" (job #{job})" if job is not None else ""
    more = ", ".join(f"{name} {fact}" for name, fact in told.items())
    return f"{logger}: {said}{about}{f': {more}' if more else ''}"


def words_of_trace(facts: dict[str, Any]) -> str:
    from datetime import timedelta

    took = facts.get("took_s")
    span = "" if not isinstance(took, int | float) else f" in {took:.1f} s" if took < 60 else ""
    if isinstance(took, int | float) and took >= 60:
        span = f" in {rough(timedelta(seconds=took))}"
    error = f": {facts['error']}" if facts.get("error") else ""
    where = facts.get("session") or facts.get("channel") or ""
    return f"{facts.get('kind', 'run')}: {facts.get('status', '')}{span}, {where}{error}"


def indented(text: str) -> str:
    from gateway.channels.printable import printable

    return "\n".join(f"    {line}" for line in printable(text).splitlines())
