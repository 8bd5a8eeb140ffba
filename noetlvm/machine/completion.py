"""How an execution ends: the args of the final step, and what the last events say (S4, S34)."""

from __future__ import annotations

from typing import Any

from noetlvm.machine.state import State


def summary(state: State) -> dict[str, Any]:
    """Return the args of the token for `final_step`."""
    succeeded, failed, rejected = state.counts
    return {
        "counts": {"succeeded": succeeded, "failed": failed, "rejected": rejected, "unhandled": state.failure_count},
        "failures": list(state.failures),
        "results": dict(state.results),
    }


def final_status(state: State) -> str:
    """Return how the execution ends, now that nothing can move."""
    if state.status == "cancelling":
        return "cancelled"
    return "failed" if state.failure_count else "success"
