"""Every lesson that order, stops and cron have learned from the field has a test that names it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
LESSONS = [
    *("J1", "J2", "J3", "J4", "J5", "J6", "D1", "N1", "N2"),
    *("T1", "T2", "T3", "T4", "T6", "T7", "T9", "T10", "T12", "T19"),
    *(str(line) for line in range(13, 40)),
]
CITED = re.compile(r"\(([^()]*)\)")
RANGE = re.compile(r"(J|T|N)?(\d+)-(?:J|T|N)?(\d+)")


def cited() -> set[str]:
    """What stands in parentheses in the docstrings of tests, between commas, slashes and blanks."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                for group in CITED.findall(ast.get_docstring(node) or ""):
                    found |= set(re.split(r"[,/;\s]+", group))
                    found |= {f"{kind}{n}" for kind, a, b in RANGE.findall(group) for n in range(int(a), int(b) + 1)}
    return found


CITATIONS = cited()


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_of_the_field_is_a_test_of_ours(lesson: str) -> None:
    """A bug that others had is shown not to be here."""
    assert lesson in CITATIONS
