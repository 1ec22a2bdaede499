"""Who may use which route: the one table. A route without an entry here is refused when the app is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from gateway.access.scopes import Scope

Need = "Scope | Literal['anybody', 'any-token']"

ACCESS: dict[tuple[str, str], Scope | Literal["anybody", "any-token"]] = {
    ("GET", "/healthz"): "anybody",
    ("GET", "/readyz"): "anybody",
    ("GET", "/openapi.json"): "anybody",
    ("GET", "/metrics"): "operator",
    ("GET", "/v1/me"): "any-token",
    ("GET", "/v1/status"): "read",
    ("GET", "/v1/agents"): "read",
    ("POST", "/v1/schedules/preview"): "read",
    ("GET", "/v1/schedules"): "read",
    ("POST", "/v1/schedules"): "schedule",
    ("GET", "/v1/schedules/{id}"): "read",
    ("PATCH", "/v1/schedules/{id}"): "schedule",
    ("DELETE", "/v1/schedules/{id}"): "schedule",
    ("POST", "/v1/schedules/{id}/run"): "schedule",
    ("POST", "/v1/schedules/{id}/trigger"): "trigger",
    ("PUT", "/v1/schedules/{id}/hints"): "schedule",
    ("DELETE", "/v1/schedules/{id}/hints"): "schedule",
    ("GET", "/v1/schedules/{id}/triggers"): "read",
    ("GET", "/v1/schedules/{id}/why"): "read",
    ("GET", "/v1/runs"): "read",
    ("GET", "/v1/runs/{id}"): "read",
    ("GET", "/v1/runs/{id}/output"): "read",
    ("GET", "/v1/notifications"): "read",
    ("GET", "/v1/notifications/stream"): "read",
    ("POST", "/v1/messages"): "chat",
    ("GET", "/v1/sessions"): "read",
    ("GET", "/v1/sessions/{key}"): "read",
    ("DELETE", "/v1/sessions/{key}"): "admin",
    ("GET", "/v1/sessions/{key}/transcript"): "read",
    ("PATCH", "/v1/sessions/{key}/policy"): "admin",
    ("POST", "/v1/sessions/{key}/stop"): "admin",
    ("GET", "/v1/lanes"): "read",
    ("PUT", "/v1/lanes/{name}"): "operator",
    ("GET", "/v1/workers"): "operator",
    ("GET", "/v1/tokens"): "admin",
    ("POST", "/v1/tokens"): "admin",
    ("DELETE", "/v1/tokens/{id}"): "admin",
    ("GET", "/v1/pairings"): "admin",
    ("POST", "/v1/pairings/approve"): "admin",
    ("POST", "/v1/pairings/deny"): "admin",
    ("DELETE", "/v1/pairings/{id}"): "admin",
    ("GET", "/v1/tenants"): "operator",
    ("POST", "/v1/tenants"): "operator",
    ("GET", "/v1/tenants/{id}"): "operator",
    ("PATCH", "/v1/tenants/{id}"): "operator",
    ("DELETE", "/v1/tenants/{id}"): "operator",
}
"""A token belongs to a tenant and sees only that one. Only `operator` looks beyond it."""
