"""The events of a request: what was requested, and why it is refused (S61)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from noetlvm.data.event import Event
from noetlvm.limits import DIAGNOSTICS_LISTED
from noetlvm.machine.instructions import failure, shortened
from noetlvm.machine.messages import Request
from noetlvm.machine.payload import Offload


def requested(request: Request, path: str, offload: Offload) -> Event:
    """Return the event that an execution's log begins with."""
    data: dict[str, Any] = {
        "execution": request.execution_id,
        "bundle": request.bundle,
        "path": path,
        "payload": offload.shrink(request.payload),
    }
    if request.ctx:
        data["ctx"] = offload.shrink(request.ctx)
    if request.returns:
        data["returns"] = request.returns
    if request.parent:
        data |= {"parent": request.parent, "depth": request.depth, "trace": request.trace}
    return Event("playbook.execution.requested", data)


def refused(request: Request, path: str, error: dict[str, Any]) -> Iterator[Event]:
    """Yield the log of a request that is refused.

    Its payload is left out: as long as the keychain is not resolved, nothing knows which of its values are secret.
    """
    yield requested(request._replace(payload={}, ctx={}), path, Offload())
    yield Event("playbook.request.evaluated", {"error": error})
    yield Event("playbook.processed", {"status": "failed", "failures": 1})


def invalid_playbook(message: str, findings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the error of a request whose playbook does not compile, with its errors."""
    errors = [_short(finding) for finding in findings if finding["severity"] == "error"]
    if errors and not message:
        first = errors[0]
        message = f"{first['path']}:{first['line']}:{first['column']}: {first['code']}: {first['message']}"
        message += f" ({len(errors):,} errors)" if len(errors) > 1 else ""
    return failure("validation", message, findings=errors[:DIAGNOSTICS_LISTED], count=len(errors))


def _short(finding: Mapping[str, Any]) -> dict[str, Any]:
    wanted = ("code", "severity", "path", "line", "column", "message")
    return {name: shortened(value) if isinstance(value := finding[name], str) else value for name in wanted}
