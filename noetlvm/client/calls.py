"""The requests of the API and the parsers of their responses, shared by both clients."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

API = "/api/v1"
YAML = "application/yaml"
BUNDLE = "application/vnd.noetl.bundle"

Answer = TypeVar("Answer")
Json = dict[str, Any]


class ServiceError(Exception):
    """The server refuses a request, or cannot be reached. `status` is 0 where there was no answer."""

    def __init__(self, status: int, detail: str, diagnostics: list[Json] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.diagnostics = diagnostics or []


class ServiceCall(NamedTuple, Generic[Answer]):
    """A request, and the parser of its response."""

    method: str
    path: str
    read: Callable[[Any], Answer]
    params: Json = {}
    headers: dict[str, str] = {}
    json: Any = None
    content: bytes | None = None


def refused(status: int, body: bytes) -> ServiceError:
    """Return the error of a problem document."""
    try:
        problem = json.loads(body)
        return ServiceError(status, str(problem.get("detail") or problem.get("title")), problem.get("diagnostics"))
    except (ValueError, AttributeError):
        return ServiceError(status, body[:500].decode(errors="replace"))


def _same(answer: Any) -> Any:
    return answer


def register(playbook: bytes) -> ServiceCall[Json]:
    """Register YAML or a bundle, detected by its first bytes."""
    is_bundle = playbook.startswith(b"\x7fNBC")
    return ServiceCall(
        "POST", "/playbooks", _same, headers={"Content-Type": BUNDLE if is_bundle else YAML}, content=playbook
    )


def start(
    path: str | None, version: int | None, bundle: str | None, payload: Json, ctx: Json, key: str | None
) -> ServiceCall[str]:
    body = {"path": path, "version": version, "bundle": bundle, "payload": payload, "ctx": ctx}
    body = {name: value for name, value in body.items() if value is not None}
    headers = {"Idempotency-Key": key} if key else {}
    return ServiceCall("POST", "/executions", lambda answer: str(answer["execution_id"]), headers=headers, json=body)


def execution(id: str, part: str = "", **params: Any) -> ServiceCall[Any]:
    """Read an execution, or a part of it such as `/events`."""
    given = {name: value for name, value in params.items() if value is not None}
    return ServiceCall("GET", f"/executions/{quote(id, safe='')}{part}", _same, params=given)


def executions(**params: Any) -> ServiceCall[Json]:
    given = {name: value for name, value in params.items() if value is not None}
    return ServiceCall("GET", "/executions", _same, params=given)


def control(id: str, action: str) -> ServiceCall[Json]:
    """Pause, resume or cancel."""
    return ServiceCall("POST", f"/executions/{quote(id, safe='')}/{action}", _same)


def retry(id: str, bundle: str | None, key: str | None) -> ServiceCall[str]:
    """Retry a failed execution."""
    return ServiceCall(
        "POST",
        f"/executions/{quote(id, safe='')}/retry",
        lambda answer: str(answer["execution_id"]),
        headers={"Idempotency-Key": key} if key else {},
        json={"bundle": bundle} if bundle else {},
    )


def recorded_events(id: str, after: int, limit: int) -> ServiceCall[bytes]:
    """Read events as they are stored."""
    call = execution(id, "/events", after=after, limit=limit)
    return call._replace(headers={"Accept": "application/vnd.msgpack"})


def stored(kind: str, key: str) -> ServiceCall[bytes]:
    """Read a bundle or a stored result."""
    return ServiceCall("GET", f"/{kind}/{quote(key, safe='')}", _same)


def playbooks(after: str, limit: int) -> ServiceCall[Json]:
    return ServiceCall("GET", "/playbooks", _same, params={"after": after, "limit": limit})
