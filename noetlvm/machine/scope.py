"""The names that templates see, and what a recorded mask means to them.

Stored results are loaded when a template reads them (S46). As long as the process that ran a task lives, it has the
task's result; the record has a mask in place of each secret (S45, S64).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from noetlvm.data.encoding import MASK, deeply_readable, encode_noting_references
from noetlvm.data.event import Event
from noetlvm.data.references import Reference, ReferringList, ReferringMap, overlaid, readable
from noetlvm.expr.values import Masked, Undefined
from noetlvm.machine.payload import Offload

if TYPE_CHECKING:
    from noetlvm.machine.loaded import LoadedPlaybook

Remedy = Callable[[str], str]
"""Names what to run again for a value that was a secret, and so is not recorded (S64), by the value's path."""


def run_again(tasks: Iterable[str]) -> str:
    """Return the advice to run tasks again; without any, the one that set the value."""
    named = " or ".join(dict.fromkeys(tasks))
    return f"run {named or 'the task that set it'} again"


class Scope(NamedTuple):
    """What a pipeline sees from outside, and which run and iteration it belongs to."""

    offload: Offload
    execution_id: str
    run: int
    iteration: str = ""
    workload: Any = {}
    keychain: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    args: dict[str, Any] = {}
    iter: dict[str, Any] | None = None
    """The element, `index` and `parent`; None outside a loop."""
    trace_id: str = ""
    results: dict[str, Any] | Callable[[str], Any] = {}
    """The last result of each step by name, or a function that finds it."""
    has_secrets: bool = False
    """What was recorded may contain masks, whether or not this process has the secrets."""
    remedy: Remedy = lambda _path: run_again(())
    now: Callable[[], float] = lambda: 0.0
    """The time, for the outcome of a task whose tool is not called."""


def server_names(
    offload: Offload, *, results: dict[str, Any], remedy: Remedy | None = None, **namespaces: Any
) -> dict[str, Any]:
    """Return the namespaces of a template on the server's side; one that is None does not exist.

    With `remedy`, masked values cannot be read: a condition on a mask would be one on nothing (S64).
    """
    load: Callable[[Reference], Any] = offload.load
    steps = results_of = step_results(results, offload)
    given = {name: value for name, value in namespaces.items() if value is not None}
    if remedy is not None:
        load = _unmasking_load(offload, remedy)
        steps = lambda name: unmasked(results_of(name), name, remedy)  # noqa: E731 - it would be one line more
        given = {name: unmasked(value, name, remedy) for name, value in given.items()}
    names = {name: _open(value, load) for name, value in given.items()}
    names["steps"] = steps
    return readable(names, load)


def pipeline_names(scope: Scope, prev: Any, written: dict[str, Any]) -> dict[str, Any]:
    """Return the namespaces of a pipeline; `written` is what `set_iter` wrote before."""
    offload = scope.offload
    if scope.has_secrets or offload.redacts:
        return _masked_names(scope, prev, written)
    names: dict[str, Any] = {
        "workload": _open(scope.workload, offload.load),
        "keychain": scope.keychain,
        "ctx": _open(scope.ctx, offload.load),
        "args": _open(scope.args, offload.load),
        "execution_id": scope.execution_id,
        "_prev": prev,
        "steps": step_results(scope.results, offload),
    }
    if scope.iter is not None:
        around = _open(scope.iter, offload.load)
        names["iter"] = readable(overlaid(around, written), offload.load) if written else around
    return readable(names, offload.load)


def _masked_names(scope: Scope, prev: Any, written: dict[str, Any]) -> dict[str, Any]:
    """Return the namespaces of a pipeline whose execution has secrets: masked values cannot be read (S64)."""
    offload, load = scope.offload, _unmasking_load(scope.offload, scope.remedy)

    def namespace(name: str, value: Any) -> Any:
        return readable(unmasked(value, name, scope.remedy), load) if type(value) is dict else value

    results = step_results(scope.results, offload)
    names: dict[str, Any] = {
        "workload": namespace("workload", scope.workload),
        "keychain": scope.keychain,
        "ctx": namespace("ctx", scope.ctx),
        "args": namespace("args", scope.args),
        "execution_id": scope.execution_id,
        "_prev": prev,
        "steps": lambda name: unmasked(results(name), name, scope.remedy),
    }
    if scope.iter is not None:
        around = namespace("iter", scope.iter)
        names["iter"] = readable(overlaid(around, unmasked(written, "iter", scope.remedy)), load) if written else around
    return readable(names, load)


def step_results(results: dict[str, Any] | Callable[[str], Any], offload: Offload) -> Callable[[str], Any]:
    """Return a function that gives the last result of a step, or what is undefined."""
    if callable(results):
        return results
    known = results

    def result(name: str) -> Any:
        return offload.read(known[name]) if name in known else Undefined(name)

    return result


def labels_first(labels: dict[str, Any], steps: Callable[[str], Any], offload: Offload) -> Callable[[str], Any]:
    """Return a function that gives the result of a task of the pipeline by its label, else that of a step (S48)."""
    return lambda name: offload.read(labels[name]) if name in labels else steps(name)


def _open(value: Any, load: Callable[[Reference], Any]) -> Any:
    if type(value) is not dict or not value:
        return value
    for name in _NESTED:
        found = value.get(name)
        if type(found) is dict and (inner := _open(found, load)) is not found:
            value = {**value, name: inner}
    return readable(value, load)


_NESTED = ("data", "loop")
"""Parts of a boundary event that may hold references: its payload, and the failures of a loop in it (S54)."""


def unmasked(value: Any, name: str, remedy: Callable[[str], str]) -> Any:
    """Return recorded data in which no masked text can be read; itself if there is none. `name` is its path."""
    if type(value) is str:
        return _masked(name, remedy) if MASK in value else value
    if type(value) is dict:
        if any(type(key) is str and MASK in key for key in value):
            return _masked(name, remedy)
        items = {key: unmasked(item, f"{name}.{key}", remedy) for key, item in value.items()}
        return items if any(items[key] is not item for key, item in value.items()) else value
    if type(value) is list or type(value) is tuple:
        found = [unmasked(item, f"{name}[{at}]", remedy) for at, item in enumerate(value)]
        return found if any(new is not old for new, old in zip(found, value, strict=True)) else value
    if type(value) is ReferringMap or type(value) is ReferringList:
        stored, load = unmasked(value.raw(), name, remedy), value.load
        if type(stored) is not Masked:
            return type(value)(stored, lambda reference: unmasked(load(reference), name, remedy))
        return stored
    return value


def redacted(event: Event, redact: Callable[[Any], Any]) -> Event:
    """Return a worker's event without secrets that the worker may not know.

    A result that held one is marked, as a worker marks its own: the next worker must not read the mask (S64).
    """
    data = redact(event.data)
    if data is event.data:
        return event
    if event.name == "task.done" and type(data) is dict and data["do"] in HANDS_ON:
        result = event.data["outcome"].get("result")
        if redact(result) is not result:
            data = {**data, "masked": True}
    return event._replace(data=data)


HANDS_ON = frozenset({"continue", "jump"})
"""Directives after which the next task reads the result."""


def unmasked_data(value: Any, name: str, remedy: Remedy, offload: Offload) -> Any:
    """Return recorded data with references anywhere in it, in which no masked text can be read; itself without both."""
    found = unmasked(value, name, remedy)
    return deeply_readable(found, _unmasking_load(offload, remedy)) if encode_noting_references(value)[1] else found


def _unmasking_load(offload: Offload, remedy: Remedy) -> Callable[[Reference], Any]:
    return lambda reference: unmasked(offload.load(reference), "a stored result", remedy)


def _masked(name: str, remedy: Callable[[str], str]) -> Masked:
    return Masked(f"{name} (a secret, which is not recorded: {remedy(name)})")


# ---- remedies


_KEY_END = re.compile(r"[.\[]")


def remedy_in(playbook: LoadedPlaybook, step: str) -> Remedy:
    """Return the remedies for the values that a step sees: the program shows which task writes a field."""

    def remedy(path: str) -> str:
        namespace, _, rest = path.partition(".")
        find = _REMEDIES.get(namespace)
        if find is not None:
            return find(playbook, step, _KEY_END.split(rest)[0])
        return f"run the step `{namespace}` again" if namespace in playbook.steps else run_again(())

    return remedy


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
