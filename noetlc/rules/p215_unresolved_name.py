"""P215: a name that nothing defines."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.model import Site
from noetlc.analysis.names import NameUse
from noetlc.net.source import Precedence, source_net
from noetlc.rules.rule import OTHER_NAMES, Finding, Model, Rule, Severity, migration_fix
from noetlvm.language.filters import FUNCTIONS
from noetlvm.language.scopes import NAMESPACES, TemplatePosition
from noetlvm.nearest import did_you_mean

_AFTER_STEP = frozenset({TemplatePosition.ARC_WHEN, TemplatePosition.ARC_ARGS})

_REPORTED_ELSEWHERE = frozenset({"vars"})

_INSTEAD = {
    "null": "write `none`",
    "nil": "write `none`",
    "undefined": "test it with `x is undefined`",
    "TRUE": "write `true`",
    "FALSE": "write `false`",
    "loop": "`loop` exists only inside `{% for %}`; the step's own loop is read as `iter.index` and `iter.<iterator>`",
    "item": "a loop's element is read as `iter.<iterator>`",
    "result": "read `_prev`, or `outcome.result` in a policy rule",
    "response": "read `_prev`, or `outcome.result` in a policy rule",
    "error": "read `outcome.error` in a policy rule, or `event.error` in an arc",
    "status": "read `outcome.status` in a policy rule, or `event.status` in an arc",
    "attempt": "read `_attempt`",
    "env": "the environment is not visible: declare a keychain entry, or a default in `workload`",
    "secrets": "read `keychain.<name>`",
}


class UnresolvedName(Rule):
    severity = Severity.WARNING
    summary = "A bare name that no arc, patch, loop, workload default or earlier step defines."
    why = (
        "It is undefined unless the request happens to bring it: a guard on it is false, and a task with it as input "
        "fails. Most are slips of the pen or text that lost its quotes."
    )
    example = """
      - step: start
        next:
          arcs:
            - step: finish
    -         when: "{{ event.name == step_done }}"
    +         when: "{{ event.name == 'step.done' }}"
      - step: finish
        tool: { kind: noop }
    """
    covers = ("S10", "S11")

    def check(self, model: Model) -> Iterator[Finding]:
        order = Precedence(source_net(model))
        for reading in model.readings:
            site = reading.site
            for use in reading.names.uses:
                name = use.name
                if name in NAMESPACES or name in _REPORTED_ELSEWHERE:
                    continue
                if use.is_optional:
                    yield from self._misspelt(model, site, use)
                    continue
                undefined = _undefined(model, order, site, name)
                if undefined:
                    fix = migration_fix(model) if name in OTHER_NAMES else None
                    yield self.finding(model.place(site, use.node.span), *undefined, fix=fix)

    def _misspelt(self, model: Model, site: Site, use: NameUse) -> Iterator[Finding]:
        """Note an optional name that nothing defines and that is close to one: its default always counts."""
        if model.definitions.defines(use.name, site):
            return
        meant = did_you_mean(use.name, model.definitions.known_to(site)) if len(use.name) > 2 else ""
        if meant:
            message = f"nothing defines `{use.name}`, so its default always counts"
            yield self.finding(model.place(site, use.node.span), message, meant, severity=Severity.NOTE)


def _undefined(model: Model, order: Precedence, site: Site, name: str) -> tuple[str, str] | None:
    """Return the message and help for a name that is undefined at `site`."""
    if model.definitions.namespaces_of(name, site):
        return None
    if model.definitions.is_label(name, site):
        return _label_to_come(model, site, name)
    if name not in model.steps_by_name:
        return f"nothing defines `{name}`", _help(model, site, name)
    owner = site.owner
    if owner is None or owner.in_workbook or order.can_precede(name, owner.name):
        return None
    if name == owner.name and site.position in _AFTER_STEP:
        return None
    return (
        f"`{name}` is the result of step `{name}`, which cannot have run before `{owner.name}`",
        f"read it in a step that comes after `{name}`, or add `| default(…)`",
    )


def _label_to_come(model: Model, site: Site, label: str) -> tuple[str, str] | None:
    """Return the message and help for a label whose task can only run after the task that reads it."""
    task, owner = site.task, site.owner
    flow = model.flows.get(owner) if owner else None
    if task is None or flow is None or not flow.is_certain or site.rule or label in model.steps_by_name:
        return None
    runs = [int(point.view is not None and point.view.label == label) for point in flow.points]
    before = dict(zip((id(point.entry) for point in flow.points), flow.before(runs)[1], strict=True))
    if not any(runs) or before.get(id(task.task), 1):
        return None
    return (
        f"`{label}` is the result of task `{label}`, which cannot have run before `{task.label}`",
        f"read it in a task that comes after `{label}`, or add `| default(…)`",
    )


def _help(model: Model, site: Site, name: str) -> str:
    if name in _INSTEAD:
        return _INSTEAD[name]
    if site.owner and name in (view.label for view in model.tasks_by_owner[site.owner]):
        return "this workbook task ends in a block, which has no result of its own: read `_prev`, or `set_ctx` it there"
    meant = did_you_mean(name, model.definitions.known_to(site)) if len(name) > 2 else ""
    if meant:
        return meant
    if name in FUNCTIONS:
        return f"it is a function: write `{name}(…)`"
    return f"write `'{name}'` if it is text, or give it a default as `workload.{name}`"
