"""What a setting is: a field, mostly of a group, known to people as one variable, described once in the model.

Name, default, range, unit and meaning are read off the model's own schema, so that a message, `goclaw config show` and
`.env.example` cannot say three different things.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict
from pydantic_settings import BaseSettings, SettingsConfigDict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic_settings import PydanticBaseSettingsSource

PREFIX: Final = "GOCLAW_"

_INTRODUCTION: Final = """\
# Settings of goclaw.
#
# Copy this file to .env in the directory where goclaw is started, take the "# " away in front of a setting and change
# its value. A setting that stays commented out keeps its default.
#
# The environment wins over .env. A value is one line, with or without quotes; nothing in it is substituted, and blanks
# around it do not matter. An empty value is an error: leave the line commented out instead.
#
# `goclaw config check` tells whether all is well, `goclaw config show` what is in force and where it came from,
# and `goclaw config example` prints this file.
"""


class Group(BaseModel):
    """Settings that belong together; the docstring of a group is its heading in `.env.example`."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SettingsTree(BaseSettings):
    """A tree of groups that takes its values from its caller alone: nothing is read behind one's back."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="_", env_nested_max_split=1, frozen=True, extra="forbid"
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


@dataclass(frozen=True, slots=True)
class Variable:
    """What there is to know about one setting."""

    name: str
    group: str
    field: str
    default: object
    about: str
    unit: str | None
    expected: str
    secret: bool

    def value_in(self, settings: SettingsTree) -> object:
        """Give the value in force as people may see it: a secret only as stars."""
        value = getattr(getattr(settings, self.group) if self.group else settings, self.field)
        return "***" if self.secret and value is not None else value


def variable_name(*parts: str) -> str:
    """The variable of a field: of a group and a field in it, or of a field that stands alone."""
    return f"{PREFIX}{'_'.join(parts)}".upper()


@lru_cache
def variables(tree: type[SettingsTree]) -> tuple[Variable, ...]:
    """List the variables of `tree` in the order in which it declares them."""
    return tuple(variable for _, members in _groups(tree) for variable in members)


def env_example(tree: type[SettingsTree]) -> str:
    """Write the `.env.example` of `tree`: every variable with its meaning, range, unit and default."""
    parts = [_INTRODUCTION]
    for heading, members in _groups(tree):
        parts.append(f"\n# ---- {heading} ----\n")
        parts.extend("\n" + _entry(variable) for variable in members)
    return "".join(parts)


def _groups(tree: type[SettingsTree]) -> Iterator[tuple[str, list[Variable]]]:
    alone = tree.model_json_schema()["properties"]
    for name, declared in tree.model_fields.items():
        group = declared.annotation
        if isinstance(group, type) and issubclass(group, Group):
            fields = group.model_json_schema()["properties"]
            yield group.__doc__ or name, [_variable(name, field, schema) for field, schema in fields.items()]
        else:
            yield name.capitalize(), [_variable("", name, alone[name])]


def _variable(group: str, field: str, schema: Mapping[str, Any]) -> Variable:
    # What may be left out hides its type one level down.
    schema = {**schema, **next((part for part in schema.get("anyOf", ()) if part.get("type") != "null"), {})}
    return Variable(
        name=variable_name(*filter(None, (group, field))),
        group=group,
        field=field,
        default=schema.get("default"),
        about=schema["description"],
        unit=schema.get("unit"),
        expected=_expected(schema),
        secret=schema.get("format") == "password",
    )


def _expected(schema: Mapping[str, Any]) -> str:
    if "expected" in schema:
        return str(schema["expected"])
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    if schema.get("type") == "integer":
        return f"a whole number from {schema['minimum']} to {schema['maximum']}"
    least = schema.get("minLength", 1)
    return "text" if least <= 1 else f"text of at least {least} characters"


def _entry(variable: Variable) -> str:
    unit = f" ({variable.unit})" if variable.unit else ""
    default = "none" if variable.default is None else variable.default
    facts = f"{variable.expected[0].upper()}{variable.expected[1:]}{unit}. Default: {default}."
    lines = [*textwrap.wrap(variable.about, 116), *textwrap.wrap(facts, 116)]
    assigned = "" if variable.secret or variable.default is None else variable.default
    return "".join(f"# {line}\n" for line in lines) + f"# {variable.name}={assigned}\n"
