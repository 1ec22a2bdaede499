"""What docs/api.md says about routes and scopes is so."""

from __future__ import annotations

import re
from pathlib import Path

from gateway.access.scopes import SCOPES
from gateway.http.table import ACCESS

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
ROUTE = re.compile(r"^\| ([A-Z]+) \| `([^`]+)` \| (?:`(\w+)`|(nothing|any token)) \|$", re.MULTILINE)
NEEDS = {"nothing": "anybody", "any token": "any-token"}


def test_every_route_is_in_the_document_with_what_it_needs() -> None:
    """A route that is new, gone, or for others than before, is found here."""
    written = {(method, path): scope or NEEDS[words] for method, path, scope, words in ROUTE.findall(PAGE)}
    assert written == ACCESS


def test_every_scope_is_in_the_document() -> None:
    """Whoever makes a token finds all that it can be good for."""
    assert re.findall(r"^\| `(\w+)` \| [^|]+ \|$", PAGE, re.MULTILINE) == list(SCOPES)
