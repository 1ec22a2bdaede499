"""The store, with how often each of its verbs was asked, how long it took and how it failed. The one place for that,
whichever store it is.

It is the store in every other respect: what is no verb (a property, `listen`) is the store's own.
"""

from __future__ import annotations

from functools import wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, cast

import trio

from gateway.metrics.figures import Spent
from store.protocols import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway.metrics.figures import Figures
    from store.protocols import Store

VIEWS = frozenset({"cron"})
"""What leads to more verbs."""
LEASED = "messages"
"""And what is called to have them."""


def measured(store: Store, figures: Figures) -> Store:
    """The same store, measured."""
    return cast("Store", Measured(store, figures))


class Measured:
    def __init__(self, inner: object, figures: Figures) -> None:
        self._inner = inner
        self._figures = figures

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in VIEWS:
            found = Measured(found, self._figures)
        elif name == LEASED and callable(found):
            found = self._leased(found)
        elif iscoroutinefunction(found):
            found = timed(found, name, self._figures)
        else:
            return found
        setattr(self, name, found)  # the next one finds it at once
        return found

    def _leased(self, messages: Callable[..., object]) -> Callable[..., Measured]:
        return lambda lease: Measured(messages(lease), self._figures)


def timed(verb: Callable[..., Awaitable[Any]], name: str, figures: Figures) -> Any:
    clock, all_s, spent = trio.current_time, figures.store_s, figures.verbs.setdefault(name, Spent())

    @wraps(verb)
    async def asked(*args: object, **options: object) -> Any:
        began = clock()
        try:
            return await verb(*args, **options)
        except StoreError as error:
            figures.store_errors[name, error.code] += 1
            raise
        finally:
            took_s = clock() - began
            all_s.add(took_s)
            spent.times += 1
            spent.seconds += took_s

    return asked
