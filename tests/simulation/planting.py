"""How a bug is planted: a generator of patches, with a sentence about what is wrong, under its own name."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Patches = Callable[[], Iterator[Any]]

PLANTED: dict[str, Bug] = {}


@dataclass(frozen=True, slots=True)
class Bug:
    name: str
    what: str
    plant: Callable[[], AbstractContextManager[None]]


def planting_into(bugs: dict[str, Bug]) -> Callable[[Patches], Patches]:
    """A decorator that keeps bugs there; what such a function yields are the patches to apply together."""

    def keep(function: Patches) -> Patches:
        @contextmanager
        def plant() -> Iterator[None]:
            with ExitStack() as stack:
                for one in list(function()):
                    stack.enter_context(one)
                yield

        bugs[function.__name__] = Bug(function.__name__, (function.__doc__ or "").strip(), plant)
        return function

    return keep


planted = planting_into(PLANTED)
