"""The documents name tests and files; what they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md")),
]
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")
PROMISE = re.compile(r"\| P(\d+) ")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_test_that_a_document_names_exists(document: str) -> None:
    """A guarantee whose test was renamed or removed is found here."""
    for path, name in TEST.findall((ROOT / document).read_text()):
        source = ROOT / path
        assert source.is_file(), f"{document} names {path}"
        assert not name or f"def {name}(" in source.read_text(), f"{document} names {path}::{name}"


def test_every_promise_of_this_version_is_in_the_table() -> None:
    """ARCHITECTURE.md shows for each promise where it is kept and which test guards it."""
    promises = {int(number) for number in PROMISE.findall((ROOT / "ARCHITECTURE.md").read_text())}
    assert promises >= {1, 2, 3, 6, 7, 8, 13}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_inside_the_repository_leads_somewhere(document: str) -> None:
    """Relative links of the documents are files or folders of the repository."""
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / document).read_text()):
        assert ((ROOT / document).parent / target).exists(), f"{document} links to {target}"
