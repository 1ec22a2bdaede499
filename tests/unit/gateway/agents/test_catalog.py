"""The promises of agents.toml: every problem at once, by line; no key in the file, none in a message."""

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from gateway.agents.catalog import CatalogError, load_catalog
from gateway.agents.spec import TOOLS, Catalog
from gateway.settings import AnthropicSettings, OpenaiSettings, Settings
from gateway.tools import CALLS

KEY = "sk-very-secret-4711"
DEMO = Settings()
ANTHROPIC = Settings(anthropic=AnthropicSettings(api_key=SecretStr(KEY)))
OPENAI = Settings(openai=OpenaiSettings(api_key=SecretStr(KEY)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "agents.toml"


def load(file: Path, text: str, settings: Settings = DEMO, **environ: str) -> Catalog:
    file.write_text(text, encoding="utf-8")
    return load_catalog(file, settings, environ)


def problems(file: Path, text: str, settings: Settings = DEMO, **environ: str) -> list[str]:
    with pytest.raises(CatalogError) as caught:
        load(file, text, settings, **environ)
    assert KEY not in str(caught.value)
    return [str(problem).replace(str(file), "agents.toml") for problem in caught.value.problems]


def test_without_a_file_there_are_main_and_research(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    catalog = load_catalog(None, DEMO, {})
    assert list(catalog.agents) == ["main", "research"]
    assert catalog.path is None
    assert catalog.agents["main"].backend == "demo"
    assert catalog.agents["main"].delegates == ("research",)
    assert catalog.agents["main"].tools == TOOLS


def test_the_file_in_the_current_directory_is_read_without_being_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("agents.toml").write_text("[agent.other]\n")
    assert list(load_catalog(None, DEMO, {}).agents) == ["main", "other"]


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="there is no such file"):
        load_catalog(None, Settings(agents=str(tmp_path / "none.toml")), {})
    with pytest.raises(CatalogError, match="there is no such file"):
        load_catalog(tmp_path / "none.toml", DEMO, {})


def test_main_is_always_there_and_an_empty_file_is_none(file: Path) -> None:
    assert list(load(file, "[agent.writer]\n").agents) == ["main", "writer"]
    assert list(load(file, "# nothing yet\n").agents) == ["main", "research"]


@pytest.mark.parametrize(
    ("settings", "backend"),
    [
        (DEMO, "demo"),
        (ANTHROPIC, "anthropic"),
        (OPENAI, "openai"),
        (Settings(model="m", openai=OpenaiSettings(base_url="http://localhost:1/v1")), "openai"),
        (
            Settings(
                anthropic=AnthropicSettings(api_key=SecretStr("a")), openai=OpenaiSettings(api_key=SecretStr("b"))
            ),
            "anthropic",
        ),
    ],
)
def test_the_backend_follows_the_keys(file: Path, settings: Settings, backend: str) -> None:
    assert load(file, "", settings).agents["main"].backend == backend


def test_everything_that_can_be_said_is_understood(file: Path) -> None:
    (file.parent / "words.md").write_text("Be kind.\n")
    catalog = load(
        file,
        """
[agent.main]
backend = "openai"
model = "big"
instructions_file = "words.md"
base_url = "https://models.example/v1"
api_key_env = "MY_KEY"
window = 50_000
max_answer = 1_000
tools = ["read_file", "delegate"]
delegates = ["worker"]
workspace = "desk"
limits = { depth = 1, run_timeout = "10m", tokens = 5, steps = 6, jobs = 0, shortest_interval = "1h" , max_concurrent=2}
[agent.worker]
backend = "command"
command = ["python3", "worker.py"]
steer = true
""",
        MY_KEY=KEY,
    )
    main, worker = catalog.agents["main"], catalog.agents["worker"]
    assert main.instructions == "Be kind.\n"
    assert (main.model, main.base_url, main.window, main.max_answer) == (
        "big",
        "https://models.example/v1",
        50000,
        1000,
    )
    assert main.api_key is not None
    assert main.api_key.get_secret_value() == KEY
    assert KEY not in repr(catalog)
    assert main.key_name == "MY_KEY"
    assert main.tools == ("read_file", "delegate")
    assert main.workspace == "desk"
    assert main.limits.run_timeout == timedelta(minutes=10)
    assert main.limits.shortest_interval == timedelta(hours=1)
    assert (main.limits.depth, main.limits.tokens, main.limits.steps, main.limits.jobs) == (1, 5, 6, 0)
    assert main.limits.max_concurrent == 2
    assert worker.command == ("python3", "worker.py")
    assert worker.steer
    assert worker.workspace == "worker"
    assert worker.delegates == ("main",)


def test_all_problems_are_told_at_once_with_their_lines(file: Path) -> None:
    text = """\
[agent.main]
backend = "antropic"
modle = "x"
window = 0
tools = [
  "read_file",
  "reed_file",
]
[agent.main.limits]
run_timeout = "10 parsecs"
dept = 3
[agent.research]
delegates = ["mian"]
[agents.other]
"""
    assert problems(file, text) == [
        'agents.toml, line 2: agent.main.backend = "antropic": expected one of demo, anthropic, openai, command;'
        " did you mean anthropic?",
        "agents.toml, line 3: unknown key `modle` in [agent.main]; did you mean model?",
        "agents.toml, line 4: agent.main.window = 0: expected a whole number from 1000 to 10000000 (tokens)",
        'agents.toml, line 7: agent.main.tools names "reed_file", which is not a tool; did you mean read_file?',
        'agents.toml, line 10: agent.main.limits.run_timeout = "10 parsecs": expected a duration, for instance "10m"'
        ' (Invalid time unit "parsecs". Valid units are: s, m, h, d; the interval was "10 parsecs")',
        "agents.toml, line 11: unknown key `dept` in [agent.main.limits]; did you mean depth?",
        'agents.toml, line 13: agent.research.delegates names "mian", which is not another agent; did you mean main?',
        "agents.toml, line 14: unknown key `agents`; did you mean agent?",
    ]


def test_a_needed_key_that_is_missing_is_found_at_the_start(file: Path) -> None:
    assert problems(file, '\n[agent.main]\nbackend = "anthropic"\n') == [
        'agents.toml, line 2: agent.main needs GOCLAW_ANTHROPIC_API_KEY: set it in .env, or set backend = "demo"'
    ]
    assert problems(file, '[agent.main]\nbackend = "openai"\napi_key_env = "MY_KEY"\n') == [
        "agents.toml, line 3: agent.main.api_key_env names MY_KEY, which is not set: set it in the environment"
    ]


@pytest.mark.parametrize("key", [KEY, "sk_live_abc", "AIza SyD", 5])
def test_a_key_in_the_place_of_its_name_is_refused_and_not_repeated(file: Path, key: object) -> None:
    value = f'"{key}"' if isinstance(key, str) else key
    (told,) = problems(file, f'[agent.main]\nbackend = "openai"\napi_key_env = {value}\n')
    assert "the NAME of an environment variable" in told
    assert str(key) not in told


@pytest.mark.parametrize("name", ["api_key", "apikey", "token", "key"])
def test_a_key_under_another_name_is_refused_with_advice(file: Path, name: str) -> None:
    (told,) = problems(file, f'[agent.main]\n{name} = "{KEY}"\n')
    assert told.startswith(f"agents.toml, line 2: unknown key `{name}` in [agent.main]: keys do not belong")
    assert "api_key_env" in told


def test_the_key_of_the_settings_is_sent_to_no_other_server(file: Path) -> None:
    spec = load(file, '[agent.main]\nmodel = "m"\nbase_url = "https://elsewhere.example"\n', OPENAI).agents["main"]
    assert spec.api_key is None


def test_another_server_has_no_usual_model(file: Path) -> None:
    (told,) = problems(file, '[agent.main]\nbackend = "openai"\nbase_url = "http://localhost:1/v1"\n')
    assert "needs a model" in told


def test_what_is_wrong_without_a_file_is_said_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CatalogError) as caught:
        load_catalog(None, Settings(openai=OpenaiSettings(base_url="http://localhost:1/v1")), {})
    assert str(caught.value).startswith("the settings: agent.main needs a model: set model, or GOCLAW_MODEL")


@pytest.mark.parametrize("name", ["Main", "1st", "a" * 33, "a b", "ä", "..", "a/b", ""])
def test_a_name_that_could_be_something_else_is_refused(file: Path, name: str) -> None:
    (told,) = problems(file, f'[agent."{name}"]\n')
    assert "cannot be the name of an agent" in told
    assert told.startswith("agents.toml, line 1:")


@pytest.mark.parametrize("name", ["..", ".", "../x", "/etc", "a/b", ".hidden", "a\\\\b", "a\\u0000b", "~", ""])
def test_a_workspace_is_a_name_and_no_path(file: Path, name: str) -> None:
    (told,) = problems(file, f'[agent.main]\nworkspace = "{name}"\n')
    assert "agent.main.workspace" in told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("command = 'python x'", "expected a list of words"),
        ("command = []", "at least the name of a program"),
        ("steer = 1", "expected true or false"),
        ("window = true", "expected a whole number"),
        ("window = 1.5", "expected a whole number"),
        ("instructions = ''", "expected a text that is not empty"),
        ("instructions_file = 'none.md'", "expected a file that is there"),
        ("instructions = 'a'\ninstructions_file = 'b'", "expected one"),
        ("base_url = 'localhost:80'", "expected http://"),
        ("base_url = 'https://me:pw@host'", "without a name or password"),
        ("tools = 'read_file'", "expected a list of names"),
        ("delegates = ['main']", "not another agent"),
        ("limits = 3", "expected a table [agent.main.limits]"),
        ("max_answer = 999_999", "less than the window"),
        ("limits.run_timeout = 600", 'expected a duration in quotes, for instance "10m"'),
        ("limits.shortest_interval = '0s'", "Zero interval"),
        ("limits.depth = -1", "expected a whole number from 0"),
    ],
)
def test_a_value_of_no_use_is_told_with_what_was_expected(file: Path, line: str, told: str) -> None:
    (problem,) = problems(file, f"[agent.main]\n{line}\n")
    assert told in problem
    assert "line 2:" in problem or "line 3:" in problem


def test_what_the_backend_cannot_use_is_told_unless_it_is_a_demo(file: Path) -> None:
    text = '[agent.main]\nbackend = "{}"\nsteer = true\nmodel = "m"\n'
    (told,) = problems(file, text.format("anthropic"), ANTHROPIC)
    assert 'expected backend = "command"' in told
    assert load(file, text.format("demo")).agents["main"].backend == "demo"


def test_a_command_must_be_named(file: Path) -> None:
    (told,) = problems(file, '[agent.main]\nbackend = "command"\n')
    assert "needs a command" in told


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"[agent.main]\nmodel =\n", "line 2: this is not TOML"),
        (b"[agent.main]\n[agent.main]\n", "line 2: this is not TOML: [agent.main] stands here a second time"),
        (b"[agent]\nx = 1\nx = 2\n", "line 3: this is not TOML: this has a value already"),
        (b"[agent.main]\n\xff\xfe = 1\n", "line 2: this is not UTF-8"),
        (b"agent = 3\n", "line 1: agent = 3: expected a table [agent]"),
        (b"[agent]\nmain = 3\n", "line 2: agent.main = 3: expected a table [agent.main]"),
        (b"[[agent.main]]\n", "line 1: agent.main = [{}]: expected a table"),
        (b"x = " + b"[" * 5000, "agents.toml: "),
    ],
)
def test_rubbish_is_told_with_its_line(file: Path, data: bytes, told: str) -> None:
    file.write_bytes(data)
    with pytest.raises(CatalogError) as caught:
        load_catalog(file, DEMO, {})
    assert told in str(caught.value)


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="cannot be read"):
        load_catalog(tmp_path, DEMO, {})


def test_marks_and_line_ends_of_windows_do_no_harm(file: Path) -> None:
    file.write_bytes('\ufeff[agent.main]\r\nmodel = "m"\r\n'.encode())
    assert load_catalog(file, DEMO, {}).agents["main"].model == "m"


def test_a_catalog_may_name_every_tool_that_there_is() -> None:
    assert set(TOOLS) == set(CALLS)
