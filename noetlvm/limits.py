"""Every limit of a run, in one place, and what else the `executor` section of a playbook sets (brief §2.2).

A playbook may set some limits under `executor.spec.policy.limits`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

INLINE_BYTES = 64 * 1024
"""A payload that stands in an event; a larger one goes to the result store (S46)."""

INLINE_BYTES_MIN = 4 * 1024
"""The smallest limit that a playbook may set for a payload: references take room too."""

EVENT_BYTES_MAX = 256 * 1024
"""A whole event, encoded."""

INPUTS_BYTES = 16 * 1024
"""The rendered inputs of a task that failed, which its event carries for people to read."""

CTX_BYTES_MAX = 1024 * 1024
"""`ctx` of an execution, encoded, what it refers to aside."""

ARGS_BYTES_MAX = 64 * 1024
"""What a token carries, encoded, what it refers to aside."""

TASK_RUNS_MAX = 100_000
"""Task runs of one pipeline (S20)."""

STEP_RUNS_MAX = 1_000_000
"""Step runs of one execution (S62)."""

CHILDREN_MAX = 10_000
"""Child executions under one request (S62)."""

IDLE_INSTRUCTIONS_MAX = 1_000_000
"""Instructions of a pipeline from one tool call or wait to the next: a jump that meets no task must end too."""

ROUTER_STEPS_MAX = 2_000_000
"""Steps that the guards of one router take together; one expression alone may take a tenth of that."""

WAIT_SECONDS_MAX = 3_600
"""The longest wait before a retry (S14)."""

WAIT_HELD_SECONDS = 5
"""The longest wait for which a worker holds its pipeline; after a longer one the server opens the command again."""

MESSAGE_CHARS_MAX = 4_000
"""Longest message of an error; a longer one is cut."""

KIND_CHARS_MAX = 100
"""An error's kind: a word. One that is longer is replaced by `tool`."""

LOOP_RESULTS_BYTES = 1024 * 1024
"""Encoded results and patches of a running loop that state may hold; beyond that they go to the result store."""

LOOP_RESULTS_STORED = 10_000
"""Results that are moved to the store at once, at most: an event names them by number."""

LOOP_FAILURES_LISTED = 100
"""Failed iterations that the end of a loop lists; the rest is stored (S54)."""

DIAGNOSTICS_LISTED = 20
"""Errors of a playbook that the log of a refused request lists; all are counted."""

LOOP_ITEMS_MAX = 1_000_000
"""Items of one loop."""

CHILD_DEPTH_MAX = 16
"""Executions above a child execution (S43)."""

CHILD_NAME_CHARS_MAX = 4_000
"""`path` and `version` of a requested child."""

CANCELLED_CHILDREN_LISTED = 100
"""Children that the event of a cancellation lists; all are cancelled."""

EVENTS_WARNING = 100_000
"""Events of an execution from which on a warning is due."""

PAYLOAD_FILE_BYTES_MAX = 64 * 1024 * 1024
"""The file that `--payload` names."""

TOOL_OUTPUT_BYTES_MAX = 64 * 1024 * 1024
"""What one run of a tool may give: a response, rows, a command's output."""

HTTP_SECONDS_MAX = 900
"""A whole HTTP request, where `timeout` limits only how long to wait for the next piece: a server may drip forever."""

PRINTED_BYTES_MAX = 64 * 1024
"""Bytes of a `python` task's output that are stored."""

LOADED_BYTES = 32 * 1024 * 1024
"""Cache of stored results that were read, by their encoded size."""


class Limits(NamedTuple):
    """The limits that a playbook may set."""

    max_payload_bytes: int = INLINE_BYTES
    max_transitions: int = TASK_RUNS_MAX
    max_step_runs: int = STEP_RUNS_MAX
    max_children: int = CHILDREN_MAX

    @classmethod
    def of(cls, executor: Mapping[str, Any]) -> Limits:
        """Return the limits of an `executor` section; what is absent or no whole number has its default.

        Payloads never become larger than the default: an event holds several, and its own limit is hard.
        """
        given: dict[str, int] = {}
        for keys in (("spec", "limits"), ("spec", "policy", "limits")):
            found: Any = executor
            for key in keys:
                found = found.get(key) if isinstance(found, Mapping) else None
            if isinstance(found, Mapping):
                given |= {key: value for key, value in found.items() if key in cls._fields and type(value) is int}
        limits = cls(**given)
        payload = max(min(limits.max_payload_bytes, INLINE_BYTES), INLINE_BYTES_MIN)
        return limits._replace(max_payload_bytes=payload)


# ---- profile, version and arcs

LOCAL, DISTRIBUTED = "local", "distributed"

PROFILES = (LOCAL, DISTRIBUTED)
"""`local`: iterations of a loop stay on one worker unless the loop overrides it. `distributed`: the default (S22)."""

_NAME, _MAJOR = "noetl-runtime", 2

RUNTIME = f"{_NAME}/{_MAJOR}"
"""What this runtime calls itself: the version of the language that it runs, `noetl.io/v2`."""


def runtime_objection(version: Any) -> str:
    """Return why a playbook that names this runtime version cannot run; empty: it can, or names another runtime.

    An earlier version of the runtime is accepted: every language that it ran is migrated or checked by `apiVersion`.
    """
    name, _, number = str(version).partition("/")
    major = number.partition(".")[0]
    if name != _NAME or not major.isdecimal() or int(major) <= _MAJOR:
        return ""
    return f"the playbook needs `{version}`, and this is `{RUNTIME}`"


def guards_success(executor: Mapping[str, Any]) -> bool:
    """Return whether arcs without `when` hold on success only: `spec.unguarded_arcs: success` (S55)."""
    spec = executor.get("spec")
    return isinstance(spec, Mapping) and spec.get("unguarded_arcs") == "success"
