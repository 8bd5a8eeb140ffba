"""A checked playbook to its canonical form (step spec §7, brief §3 and §4, S5, S38 to S42).

In the canonical form every task has a label, every router says its mode, every task's spec is its effective one, calls
of the workbook and `choose`, `while` and `until` are gone, and outer scopes hold only what means something there. It
is a playbook again: it lints without errors, and its own canonical form is itself.

Every node keeps the place of what the author wrote, so that code can be traced back to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from noetlc.canon.allowance import Allowance
from noetlc.canon.expansion import Origin, Pipeline, expand_pipeline
from noetlc.canon.layering import outer_layers
from noetlc.canon.synthesis import kept, keys, scalar
from noetlc.syntax import ast
from noetlc.syntax.span import Source
from noetlvm.record import Record

_ROOT = ("apiVersion", "kind", "metadata", "keychain", "executor", "workload", "workflow")
_STEP = ("step", "desc", "spec", "loop", "tool", "next")
_EXECUTOR_SPEC = ("entry_step", "final_step", "no_next_is_error", "policy")
_LOOP_SPEC = ("mode", "max_in_flight", "policy")


class CanonicalPlaybook(Record):
    """A playbook in canonical form, and where its parts come from."""

    source: Source
    playbook: ast.Playbook
    """Every entry of every `tool` is a labelled `ast.Task`; there is no `workbook`."""
    origins: Mapping[str, Origin]
    """By step and label: `fetch/save.insert`."""

    def origin(self, step: str, label: str) -> Origin:
        """Return what the author wrote for a label."""
        return self.origins[f"{step}/{label}"]


def canonicalize(playbook: ast.Playbook, source: Source) -> CanonicalPlaybook:
    """Return the canonical form of a playbook without lint errors: rules have told of all that it cannot say."""
    workbook = workbook_of(playbook)
    allowance = Allowance()
    steps: list[ast.Step] = []
    origins: dict[str, Origin] = {}
    for step in playbook.workflow or ():
        pipeline = None
        if step.tool is not None:
            pipeline = expand_pipeline(step.tool, workbook, outer_layers(playbook, step), allowance)
            name = step.step.text if step.step else ""
            origins.update({f"{name}/{label}": origin for label, origin in pipeline.origins.items()})
        steps.append(_step(step, pipeline))
    return CanonicalPlaybook(source, _playbook(playbook, tuple(steps)), origins)


def workbook_of(playbook: ast.Playbook) -> dict[str, ast.WorkbookTask]:
    """Return the tasks of the workbook by name."""
    shared = playbook.workbook.tasks if playbook.workbook else None
    return {task.name.text: task for task in shared or ()}


def _playbook(playbook: ast.Playbook, steps: tuple[ast.Step, ...]) -> ast.Playbook:
    executor = _executor(playbook.executor) if playbook.executor else None
    present = {name: playbook.keys[name] for name in _ROOT if name in playbook.keys}
    if executor is None:
        present.pop("executor", None)
    return ast.Playbook(
        span=playbook.span,
        keys=present,
        api_version=playbook.api_version,
        kind=playbook.kind,
        metadata=playbook.metadata,
        keychain=playbook.keychain,
        executor=executor,
        workload=playbook.workload,
        workflow=steps,
    )


def _executor(executor: ast.Executor) -> ast.Executor | None:
    spec = executor.spec
    left = kept(spec.keys, _EXECUTOR_SPEC) if spec else {}
    if spec:
        spec = ast.ExecutorSpec(
            span=spec.span,
            keys=left,
            entry_step=spec.entry_step,
            final_step=spec.final_step,
            no_next_is_error=spec.no_next_is_error,
            policy=spec.policy,
        )
    if not left and not executor.profile and not executor.version:
        return None
    names = ("profile", "version", *(("spec",) if left else ()))
    return ast.Executor(
        span=executor.span,
        keys=kept(executor.keys, names),
        profile=executor.profile,
        version=executor.version,
        spec=spec if left else None,
    )


def _step(step: ast.Step, pipeline: Pipeline | None) -> ast.Step:
    policy = step.spec.policy if step.spec else None
    spec = (
        ast.StepSpec(span=step.spec.span, keys=kept(step.spec.keys, ("policy",)), policy=policy) if step.spec else None
    )
    present = {name: step.keys[name] for name in _STEP if name in step.keys}
    if policy is None:
        present.pop("spec", None)
    return ast.Step(
        span=step.span,
        keys=present,
        step=step.step,
        desc=step.desc,
        spec=spec if policy else None,
        loop=_loop(step.loop) if step.loop else None,
        tool=pipeline.tasks if pipeline else None,
        next=_router(step.next) if step.next else None,
    )


def _loop(loop: ast.Loop) -> ast.Loop:
    spec = _loop_spec(loop.spec) if loop.spec else None
    present = dict(loop.keys)
    if spec is None:
        present.pop("spec", None)
    return ast.Loop(
        span=loop.span,
        keys=present,
        in_=loop.in_,
        iterator=loop.iterator,
        spec=spec,
        loop=_loop(loop.loop) if loop.loop else None,
    )


def _loop_spec(spec: ast.LoopSpec) -> ast.LoopSpec | None:
    left = kept(spec.keys, _LOOP_SPEC)
    if not left:
        return None
    return ast.LoopSpec(span=spec.span, keys=left, mode=spec.mode, max_in_flight=spec.max_in_flight, policy=spec.policy)


def _router(router: ast.Router) -> ast.Router:
    spec = router.spec
    written = spec.keys if spec else {}
    mode = (spec.mode if spec else None) or scalar(router.span, "exclusive")
    return ast.Router(
        span=router.span,
        keys={**keys(router.span, ("spec",)), **router.keys} if "spec" not in router.keys else router.keys,
        spec=ast.RouterSpec(
            span=spec.span if spec else router.span,
            keys={**keys(mode.span, ("mode",)), **written},
            extra=spec.extra if spec else (),
            mode=mode,
            policy=spec.policy if spec else None,
        ),
        arcs=router.arcs,
    )
