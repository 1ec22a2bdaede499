"""Reads `agents.toml`: who answers, with which model, under which limits.

    [agent.main]
    backend = "anthropic"
    instructions_file = "main.md"
    [agent.main.limits]
    tokens = 200_000

Everything is checked at the start and all problems are told at once, each with its line: a key that is misspelt, a tool
or an agent that does not exist, an API key that is missing. A key of an API never stands in the file; it comes from the
settings, or from the environment variable that the file names.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import SecretStr

from gateway.addresses import EXPECTED, is_address
from gateway.agents.spec import (
    BACKENDS,
    INSTRUCTIONS,
    MAX_ANSWER,
    MODELS,
    TOOLS,
    WINDOWS,
    AgentLimits,
    AgentSpec,
    Backend,
    Catalog,
)
from gateway.agents.tables import Problem, Problems, Table, shown
from gateway.agents.toml_lines import Locator, syntax_error

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gateway.settings import Settings

DEFAULT_FILE = Path("agents.toml")
DEFAULT_AGENTS = ("main", "research")
LONGEST_INSTRUCTIONS = 256_000
LARGEST_FILE = 1_000_000

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")
_WORKSPACE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_ONLY: Mapping[str, tuple[Backend, ...]] = {
    "command": ("command",),
    "steer": ("command",),
    "stdin": ("command",),
    "base_url": ("anthropic", "openai"),
    "api_key_env": ("anthropic", "openai"),
}


class CatalogError(Exception):
    """The agents cannot be used; `problems` holds every reason, and the text gives each a line of its own."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def load_catalog(
    path: Path | None, settings: Settings, environ: Mapping[str, str], *, tools: Collection[str] = TOOLS
) -> Catalog:
    """Read the agents, or raise `CatalogError` with everything that is wrong.

    Without a `path`: the file that the settings name, else `agents.toml` in the current directory if it is there.
    """
    named = path or (Path(settings.agents).expanduser() if settings.agents else None)
    text = _read(named or DEFAULT_FILE, may_be_missing=named is None)
    return _Reading(named or DEFAULT_FILE, text, settings, environ, tuple(tools)).catalog()


def _read(path: Path, *, may_be_missing: bool) -> str | None:
    try:
        data = path.read_bytes()
        if len(data) > LARGEST_FILE:
            raise _unreadable(path, None, f"the file is larger than {LARGEST_FILE} bytes")
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        if may_be_missing:
            return None
        raise _unreadable(path, None, "there is no such file; make it, or leave GOCLAW_AGENTS out") from None
    except OSError as error:
        raise _unreadable(path, None, f"the file cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise _unreadable(path, line, "this is not UTF-8; save the file as UTF-8") from None


def _unreadable(path: Path, line: int | None, message: str) -> CatalogError:
    return CatalogError((Problem(str(path), line, "", None, message),))


class _Key(NamedTuple):
    key: SecretStr | None
    name: str


class _Reading:
    """One reading of one file; `text` is None if there is no file."""

    def __init__(
        self, path: Path, text: str | None, settings: Settings, environ: Mapping[str, str], tools: tuple[str, ...]
    ) -> None:
        self.path = path
        self.text = text
        self.settings = settings
        self.environ = environ
        self.tools = tools
        self.problems = Problems("the settings", None) if text is None else Problems(str(path), Locator(text))

    def catalog(self) -> Catalog:
        root = Table(self.parse(), (), self.problems)
        agents = root.table("agent")
        root.refuse_rest()
        names = self.problems.in_order(agents.given, "agent")
        for name in names:
            if not _NAME.fullmatch(name):
                expected = "expected a small letter, then small letters, digits, - and _, at most 32 in all"
                self.problems.note(("agent", name), f"{shown(name)} cannot be the name of an agent: {expected}")
        known = list(names) or list(DEFAULT_AGENTS)
        if "main" not in known:
            known.insert(0, "main")
        specs = {name: self.agent(agents.table(name), name, known) for name in known}
        if self.problems.found:
            found = sorted(self.problems.found, key=lambda problem: problem.line or 0)
            raise CatalogError(tuple(found))
        return Catalog(specs, self.path if self.text is not None else None)

    def parse(self) -> dict[str, object]:
        try:
            return tomllib.loads((self.text or "").replace("\r\n", "\n"))
        except tomllib.TOMLDecodeError as error:
            line, words = syntax_error(error, self.text or "")
            raise _unreadable(self.path, line, f"this is not TOML: {words}") from None
        except RecursionError:
            raise _unreadable(self.path, None, "the values are nested too deeply") from None

    def agent(self, table: Table, name: str, names: list[str]) -> AgentSpec:
        backend = table.choice("backend", BACKENDS) or self.usual_backend()
        base_url, key = self.server(table, backend)
        window = table.whole("window", 1_000, 10_000_000, "tokens") or WINDOWS[backend]
        spec = AgentSpec(
            name=name,
            backend=backend,
            model=self.model(table, backend, base_url),
            instructions=self.instructions(table) or INSTRUCTIONS,
            command=self.command(table, backend),
            steer=table.flag("steer") or False,
            stdin=table.choice("stdin", ("open", "closed")) or "open",
            base_url=base_url,
            api_key=key.key,
            key_name=key.name,
            window=window,
            max_answer=self.max_answer(table, window),
            tools=self.allowed(table.names("tools", self.tools, "a tool"), self.tools),
            delegates=self.delegates(table, name, names),
            workspace=self.workspace(table, name),
            limits=self.limits(table.table("limits")),
        )
        self.misplaced(table, backend)
        table.refuse_rest()
        return spec

    def usual_backend(self) -> Backend:
        if self.settings.anthropic.api_key is not None:
            return "anthropic"
        if self.settings.openai.api_key is not None or self.settings.openai.base_url is not None:
            return "openai"
        return "demo"

    def misplaced(self, table: Table, backend: Backend) -> None:
        # Whoever turns an agent into a demo for a while need not take everything else out.
        for key, backends in _ONLY.items():
            if key in table.given and backend not in backends and backend != "demo":
                only = " or ".join(f'"{one}"' for one in backends)
                message = f'{table.name(key)} does nothing with backend = "{backend}": expected backend = {only}'
                self.problems.note((*table.path, key), message)

    def model(self, table: Table, backend: Backend, base_url: str | None) -> str:
        model = table.text("model") or self.settings.model or ""
        if not model and backend == "openai" and base_url is not None:
            named = f"{'.'.join(table.path)} needs a model: set model, or GOCLAW_MODEL, to one that {base_url} has"
            self.problems.note(table.path, named)
        return model or MODELS.get(backend, "")

    def server(self, table: Table, backend: Backend) -> tuple[str | None, _Key]:
        """Where the model is and the key for it. The settings' key goes to the settings' server and nowhere else."""
        own_url = self.base_url(table)
        variable = self.key_variable(table)
        if backend not in ("anthropic", "openai"):
            return None, _Key(None, "")
        group = self.settings.anthropic if backend == "anthropic" else self.settings.openai
        base_url = own_url or group.base_url
        if variable is not None:
            return base_url, self.key_from(table, variable)
        name = f"GOCLAW_{backend.upper()}_API_KEY"
        if base_url != group.base_url:
            return base_url, _Key(None, f"api_key_env in [{'.'.join(table.path)}]")
        if group.api_key is None and base_url is None and "api_key_env" not in table.given:
            agent = ".".join(table.path)
            self.problems.note(table.path, f'{agent} needs {name}: set it in .env, or set backend = "demo"')
        return base_url, _Key(group.api_key, name)

    def key_from(self, table: Table, variable: str) -> _Key:
        value = self.environ.get(variable, "").strip()
        if not value:
            message = f"{table.name('api_key_env')} names {variable}, which is not set: set it in the environment"
            self.problems.note((*table.path, "api_key_env"), message)
        return _Key(SecretStr(value), variable)

    def key_variable(self, table: Table) -> str | None:
        value = table.take("api_key_env")
        if value is None or (isinstance(value, str) and _VARIABLE.fullmatch(value)):
            return value
        message = (
            f"{table.name('api_key_env')}: expected the NAME of an environment variable that holds the key, in capital"
            ' letters, for instance "MY_API_KEY"; the key itself does not belong into this file'
        )
        self.problems.note((*table.path, "api_key_env"), message)
        return None

    def base_url(self, table: Table) -> str | None:
        value = table.text("base_url", "the address of a server, for instance http://localhost:11434/v1")
        if value is None:
            return None
        if is_address(value):
            return value
        self.problems.note((*table.path, "base_url"), f"{table.name('base_url')}: {EXPECTED}")
        return None

    def instructions(self, table: Table) -> str | None:
        text, file = table.text("instructions"), table.text("instructions_file")
        if text is not None and file is not None:
            where = ".".join(table.path)
            self.problems.note(
                (*table.path, "instructions_file"), f"{where} has instructions and instructions_file: expected one"
            )
        if file is None or text is not None:
            return text
        try:
            text = (self.path.parent / Path(file).expanduser()).read_text(encoding="utf-8")
        except FileNotFoundError:
            table.wrong("instructions_file", file, "a file that is there; it is looked for beside this file")
        except (OSError, ValueError, RuntimeError) as error:
            table.wrong("instructions_file", file, f"a file of UTF-8 text that can be read ({error})")
        if text is not None and (not text.strip() or len(text) > LONGEST_INSTRUCTIONS):
            table.wrong("instructions_file", file, f"a file with 1 to {LONGEST_INSTRUCTIONS} characters of text")
        return text

    def command(self, table: Table, backend: Backend) -> tuple[str, ...]:
        words = table.words("command", 'a list of words, for instance ["python3", "agent.py"]')
        if backend == "command" and not words and "command" not in table.given:
            where = ".".join(table.path)
            self.problems.note(table.path, f'{where} needs a command: for instance command = ["python3", "agent.py"]')
        elif words == ():
            table.wrong("command", [], "at least the name of a program")
        return self.beside(words) if words else ()

    def beside(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """A program that is named by a path is looked for from where the file is; its own directory is another."""
        program = Path(words[0]).expanduser()
        if "/" not in words[0] or program.is_absolute():
            return (str(program), *words[1:]) if words[0].startswith("~") else words
        return (str((self.path.parent / program).absolute()), *words[1:])

    def max_answer(self, table: Table, window: int) -> int:
        tokens = table.whole("max_answer", 16, 1_000_000, "tokens")
        if tokens is not None and tokens >= window:
            table.wrong("max_answer", tokens, f"less than the window of {window} tokens")
        return tokens or min(MAX_ANSWER, window // 4)

    def allowed(self, given: tuple[str, ...] | None, default: tuple[str, ...]) -> tuple[str, ...]:
        return default if given is None else tuple(dict.fromkeys(given))

    def delegates(self, table: Table, name: str, names: list[str]) -> tuple[str, ...]:
        others = tuple(other for other in names if other != name)
        return self.allowed(table.names("delegates", others, "another agent"), others)

    def workspace(self, table: Table, name: str) -> str:
        value = table.text("workspace", "the name of a directory")
        if value is not None and not _WORKSPACE.fullmatch(value):
            table.wrong("workspace", value, "the name of one directory: letters, digits, . _ and -, no path")
        return value or name

    def limits(self, table: Table) -> AgentLimits:
        usual = AgentLimits()
        limits = AgentLimits(
            depth=_or(table.whole("depth", 0, 10, "helpers of helpers"), usual.depth),
            run_timeout=table.span("run_timeout"),
            tokens=_or(table.whole("tokens", 1, 10**12, "tokens"), usual.tokens),
            steps=_or(table.whole("steps", 1, 10_000, "requests to the model"), usual.steps),
            jobs=_or(table.whole("jobs", 0, 1_000_000, "jobs"), usual.jobs),
            shortest_interval=table.span("shortest_interval") or usual.shortest_interval,
            max_concurrent=table.whole("max_concurrent", 1, 10_000, "jobs at once"),
        )
        table.refuse_rest()
        return limits


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
