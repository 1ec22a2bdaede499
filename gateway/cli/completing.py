"""What the shell offers when somebody presses Tab: numbers, keys and names, from a gateway that answers at once.

Nothing here may fail or wait: what is not to be had quickly is not offered, and no store is opened for it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

PATIENCE_S = 1.0


def ask(path: str) -> list[dict[str, Any]]:
    """What the gateway on this machine lists there; nothing if there is none."""
    import httpx2

    from gateway.cli.shell import ENV_FILE
    from gateway.loading import SettingsError, load_settings
    from gateway.local import find
    from gateway.stores import data_directory
    from store.protocols import CannotOpen

    with suppress(SettingsError, CannotOpen, OSError, ValueError, KeyError, httpx2.HTTPError):
        known = find(data_directory(load_settings(os.environ, ENV_FILE).settings))
        if known is not None:
            headers = {"Authorization": f"Bearer {known.token}"}
            answer = httpx2.get(f"{known.url}{path}", headers=headers, timeout=PATIENCE_S, trust_env=False)
            items: list[dict[str, Any]] = answer.raise_for_status().json()["items"]
            return items
    return []


def jobs(incomplete: str) -> list[tuple[str, str]]:
    offered = [(str(job["id"]), job["name"] or job["words"]) for job in ask("/v1/schedules")]
    return [one for one in offered if one[0].startswith(incomplete)]


def sessions(incomplete: str) -> list[str]:
    return [one["key"] for one in ask("/v1/sessions") if one["key"].startswith(incomplete)]


def tokens(incomplete: str) -> list[tuple[str, str]]:
    good = [(one["id"], one["name"]) for one in ask("/v1/tokens") if one["state"] == "good"]
    return [one for one in good if one[0].startswith(incomplete)]


def pairings(incomplete: str) -> list[tuple[str, str]]:
    offered = [(one["id"], f"{one['state']} {one['name']}".strip()) for one in ask("/v1/pairings")]
    return [one for one in offered if one[0].startswith(incomplete)]


def tenants(incomplete: str) -> list[str]:
    return [one["id"] for one in ask("/v1/tenants") if one["id"].startswith(incomplete)]


def lanes(incomplete: str) -> list[str]:
    from gateway.settings import LaneSettings

    return [name for name in LaneSettings.model_fields if name.startswith(incomplete)]


def scopes(incomplete: str) -> list[tuple[str, str]]:
    from gateway.access.scopes import ABOUT

    return [(name, about) for name, about in ABOUT.items() if name.startswith(incomplete)]


def agents(incomplete: str) -> list[str]:
    from gateway.agents.catalog import CatalogError
    from gateway.cli.shell import ENV_FILE
    from gateway.hiring import read_catalog
    from gateway.loading import SettingsError, load_settings

    with suppress(SettingsError, CatalogError):
        catalog = read_catalog(load_settings(os.environ, ENV_FILE).settings)
        return [name for name in catalog.agents if name.startswith(incomplete)]
    return []
