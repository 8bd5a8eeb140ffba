"""What to run again for a value that was a secret, and so is not recorded (S64).

The program says which task writes a field: nothing of it is stored, and it is looked up for an error message only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from noetlvm.machine.loaded import LoadedPlaybook

Remedy = Callable[[str], str]
"""From the path of a value to what to do about it."""

_FIRST_KEY = re.compile(r"[^.\[]*")


def remedy_in(playbook: LoadedPlaybook, step: str) -> Remedy:
    """Return what says it for the values that a step sees."""

    def remedy(path: str) -> str:
        namespace, _, rest = path.partition(".")
        key = _FIRST_KEY.match(rest)
        find = _REMEDIES.get(namespace)
        if find is not None:
            return find(playbook, step, key[0] if key else "")
        return f"run the step `{namespace}` again" if namespace in playbook.steps else run_again(())

    return remedy


def run_again(tasks: Iterable[str]) -> str:
    """Return the advice to run tasks again; without any, the one that set the value."""
    named = " or ".join(dict.fromkeys(tasks))
    return f"run {named or 'the task that set it'} again"


def _of_ctx(playbook: LoadedPlaybook, step: str, key: str) -> str:
    return run_again(
        f"the task `{label}`" if name == step else f"the task `{label}` of the step `{name}`"
        for name, found in playbook.steps.items()
        if found.pipeline
        for label, scope, keys in found.pipeline.writes()
        if scope == "ctx" and key in keys
    )


def _of_iter(playbook: LoadedPlaybook, step: str, key: str) -> str:
    pipeline = playbook.steps[step].pipeline
    writes = pipeline.writes() if pipeline else ()
    return run_again(f"the task `{label}`" for label, scope, keys in writes if scope == "iter" and key in keys)


def _of_args(playbook: LoadedPlaybook, _step: str, key: str) -> str:
    return run_again(
        f"the step `{name}`"
        for name, found in playbook.steps.items()
        if any(arc.args is not None and key in arc.args.keys for arc in found.arcs)
    )


def _of_workload(_playbook: LoadedPlaybook, _step: str, _key: str) -> str:
    return "start the execution again"


_REMEDIES: dict[str, Callable[[LoadedPlaybook, str, str], str]] = {
    "ctx": _of_ctx,
    "iter": _of_iter,
    "args": _of_args,
    "workload": _of_workload,
}
