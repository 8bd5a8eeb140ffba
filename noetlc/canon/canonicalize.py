"""A checked playbook to its canonical form (step spec §7, brief §3 and §4, S5, S38 to S42).

In the canonical form every task has a label, every router has its mode, every task's spec is its effective one, calls
of the workbook and `choose`, `while` and `until` are replaced by tasks, outer scopes hold only what means something
there, and a playbook without a keychain declares what its tasks name. It is a playbook again: it lints without errors,
and its own canonical form is itself.

Nodes are copied with changes, never built field by field, so a key of the language cannot be lost here: what does not
survive at its place is listed in `EXPANDED`. Every node has the place of what the author wrote, for the debug map.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from noetlc.analysis.credentials import implied_keychain
from noetlc.analysis.placement import placing_settings
from noetlc.analysis.workbook_calls import NamesBeforeLabels
from noetlc.canon.errors import TOO_LARGE, ExpansionBudget, ExpansionError
from noetlc.canon.expansion import TaskOrigin, expand_pipeline, outer_layers
from noetlc.canon.flow import made, scalar
from noetlc.canon.spelling import canonical_spelling
from noetlc.syntax import ast
from noetlc.syntax.span import Source
from noetlc.syntax.tree import Rewriter, in_field_order, without
from noetlvm.record import Record, changed

_LAYER = "part of the effective spec of each task inside (S38), unless it says where work is done"
_FLOW = "becomes labelled tasks and jumps (S39)"

EXPANDED: Mapping[type[ast.Struct], Mapping[str, str]] = {
    ast.Playbook: {"workbook": "its tasks replace the calls of them (S42)"},
    ast.ExecutorSpec: {"extra": _LAYER},
    ast.StepSpec: {"extra": _LAYER},
    ast.LoopSpec: {"extra": _LAYER},
    ast.Choose: {"choose": _FLOW},
    ast.Branch: {"when": _FLOW, "then": _FLOW, "else_": _FLOW},
    ast.BranchElse: {"then": _FLOW},
    ast.Repeat: {"word": _FLOW, "when": _FLOW, "max": _FLOW, "delay": _FLOW, "do": _FLOW},
}
"""Attributes that the canonical form does not have at their place, and what becomes of them. All others survive."""

_SCOPES = (ast.ExecutorSpec, ast.StepSpec, ast.LoopSpec)
_OMITTED_IF_EMPTY = (ast.Executor, *_SCOPES)


class CanonicalPlaybook(Record):
    """A playbook in canonical form, and where its parts come from."""

    source: Source
    playbook: ast.Playbook
    """Every entry of every `tool` is a labelled `ast.Task`; there is no `workbook`."""
    origins: Mapping[str, TaskOrigin]
    """By step and label: `fetch/save.insert`."""

    def origin(self, step: str, label: str) -> TaskOrigin:
        return self.origins[f"{step}/{label}"]


def canonicalize(playbook: ast.Playbook, source: Source) -> CanonicalPlaybook:
    """Return the canonical form of a playbook without lint errors. Raises ExpansionError for what has none."""
    playbook = _with_keychain(canonical_spelling(playbook, source.text).playbook)
    workbook = _workbook_of(playbook)
    budget, hiding = ExpansionBudget(), NamesBeforeLabels(playbook)
    steps: list[ast.Step] = []
    origins: dict[str, TaskOrigin] = {}
    for step in playbook.workflow or ():
        if step.tool is not None:
            pipeline = expand_pipeline(step.tool, workbook, outer_layers(playbook, step), budget, hiding.of(step))
            origins.update({f"{step.name}/{label}": origin for label, origin in pipeline.origins.items()})
            step = changed(step, tool=pipeline.tasks)
        steps.append(step)
    expanded = changed(playbook, workflow=tuple(steps))
    return CanonicalPlaybook(source, _Canonical().rewrite(expanded), origins)


def expansion_errors(playbook: ast.Playbook, steps: Iterable[ast.Step]) -> tuple[ExpansionError, ...]:
    """Return why these steps cannot be expanded, at most one error a step.

    The playbook and its templates must have been read without problems.
    """
    workbook = _workbook_of(playbook)
    budget, hiding = ExpansionBudget(), NamesBeforeLabels(playbook)
    found: list[ExpansionError] = []
    for step in steps:
        try:
            expand_pipeline(step.tool or (), workbook, outer_layers(playbook, step), budget, hiding.of(step))
        except ExpansionError as error:
            found.append(error)
            if error.code == TOO_LARGE:
                break  # the budget is the playbook's, and it is used up
    return tuple(found)


class StepExpansion:
    """Expands the steps of one playbook one by one, all of them within one budget."""

    def __init__(self, playbook: ast.Playbook, hiding: NamesBeforeLabels) -> None:
        self._playbook = playbook
        self._hiding = hiding
        self._workbook = _workbook_of(playbook)
        self._budget = ExpansionBudget()

    def tasks(self, step: ast.Step) -> tuple[ast.Task, ...] | None:
        """Return a step's pipeline in canonical form; None if it cannot be expanded."""
        layers = outer_layers(self._playbook, step)
        try:
            return expand_pipeline(step.tool or (), self._workbook, layers, self._budget, self._hiding.of(step)).tasks
        except ExpansionError:
            return None


def _with_keychain(playbook: ast.Playbook) -> ast.Playbook:
    """Declare what the tasks of a playbook without a keychain name."""
    implied = implied_keychain(playbook)
    if not implied:
        return playbook
    entries = tuple(made(ast.Credential, used.span, name=used.name, kind=used.form) for used in implied.values())
    return changed(playbook, keys={**playbook.keys, "keychain": entries[0].span}, keychain=entries)


def _workbook_of(playbook: ast.Playbook) -> dict[str, ast.WorkbookTask]:
    return {task.name.text: task for task in playbook.shared_tasks}


class _Canonical(Rewriter):
    """Everything of the canonical form but the pipelines."""

    def struct(self, struct: ast.Struct) -> ast.Struct | None:
        placing = placing_settings(struct) if isinstance(struct, _SCOPES) else ()
        struct = without(struct, EXPANDED.get(type(struct), {}))
        if placing:
            named = {setting.key.text: setting.key.span for setting in placing}
            struct = changed(struct, keys={**struct.keys, **named}, extra=placing)
        if isinstance(struct, ast.Playbook | ast.Step):
            return in_field_order(struct)
        if isinstance(struct, ast.Router):
            return _with_mode(struct)
        return None if isinstance(struct, _OMITTED_IF_EMPTY) and not struct.keys else struct


def _with_mode(router: ast.Router) -> ast.Router:
    spec = router.spec or ast.RouterSpec(span=router.span)
    mode = spec.mode or scalar(router.span, "exclusive")
    spec = changed(spec, keys={"mode": mode.span, **spec.keys}, mode=mode)
    return changed(router, keys={"spec": router.span, **router.keys}, spec=spec)
