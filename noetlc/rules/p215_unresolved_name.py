from noetlc.analysis.model import Site
from noetlc.analysis.names import NameUse
from noetlc.analysis.taint import declared_input
from noetlc.canon.spelling import RETRY
from noetlc.net.source import Precedence, source_net
from noetlc.rules.rule import Findings, Model, Rule, Severity, migration_fix
from noetlvm.language.filters import FUNCTIONS
from noetlvm.language.scopes import NAMESPACES, TemplatePosition

_AFTER_STEP = frozenset({TemplatePosition.ARC_WHEN, TemplatePosition.ARC_ARGS})
_GUARDS = frozenset(
    {TemplatePosition.ADMIT, TemplatePosition.ARC_WHEN, TemplatePosition.TASK_POLICY, TemplatePosition.SUGAR_WHEN}
)

_OTHER_NAMES = frozenset({"output", "response", "result", "error", "status_code", "job", "loop_index", "token"})
"""Names that templates of other dialects read."""

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
    "output": "read `_prev`, `outcome` in a policy rule, or `event` in an arc",
    "status_code": "read `outcome.http.status` in a policy rule, or `event.result.status` in an arc",
    "error": "read `outcome.error` in a policy rule, or `event.error` in an arc",
    "status": "read `outcome.status` in a policy rule, or `event.status` in an arc",
    "attempt": "read `_attempt`",
    "env": "the environment is not visible: declare a keychain entry, or a default in `workload`",
    "secrets": "read `keychain.<name>`",
}


class UnresolvedName(Rule):
    severity = Severity.WARNING
    stops_compiler = False
    summary = "No arc, patch, loop, workload default or earlier step defines a bare name."
    why = (
        "The name is undefined unless the request contains it: a guard on it is false, and a task with it as input "
        "fails. Most are misspelt names or text without quotes. This is an error if a guard reads a name of another "
        "dialect, because such a guard is always false."
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

    def check(self, model: Model) -> Findings:
        order = Precedence(source_net(model))
        for reading in model.readings:
            site = reading.site
            if site.input == RETRY:
                continue  # P114 says what becomes of it
            for use in reading.names.uses:
                name = use.name
                if name in NAMESPACES or name in _REPORTED_ELSEWHERE:
                    continue
                if use.is_optional:
                    yield from self._misspelt(model, site, use)
                    continue
                undefined = _undefined(model, order, site, name)
                if undefined:
                    is_other = name in _OTHER_NAMES
                    yield self.finding(
                        model.place(site, use.node.span),
                        *undefined,
                        fix=migration_fix(model) if is_other else None,
                        severity=Severity.ERROR if is_other and site.position in _GUARDS else None,
                    )

    def _misspelt(self, model: Model, site: Site, use: NameUse) -> Findings:
        """Note an optional name that nothing defines and that is close to one: its default always counts."""
        if model.definitions.defines(use.name, site):
            return
        meant = _meant(model, site, use.name)
        if meant:
            message = f"nothing defines `{use.name}`, so its default always applies"
            yield self.finding(model.place(site, use.node.span), message, meant, severity=Severity.NOTE)


def can_have_run(order: Precedence, site: Site, step: str) -> bool:
    """Return whether a step can have a result when a template is evaluated."""
    owner = site.owner
    if owner is None or owner.in_workbook or order.can_precede(step, owner.name):
        return True
    return step == owner.name and site.position in _AFTER_STEP


def _undefined(model: Model, order: Precedence, site: Site, name: str) -> tuple[str, str] | None:
    """Return the message and help for a name that is undefined at `site`."""
    if model.definitions.namespaces_of(name, site):
        return None
    if model.definitions.is_label(name, site):
        return _label_to_come(model, site, name)
    if name not in model.steps_by_name:
        return f"nothing defines `{name}`", _help(model, site, name)
    if can_have_run(order, site, name):
        return None
    reader = site.owner.name if site.owner else ""
    return (
        f"`{name}` is the result of step `{name}`, which cannot have run before `{reader}`",
        f"read it in a step that comes after `{name}`, or add `| default(…)`",
    )


def _label_to_come(model: Model, site: Site, label: str) -> tuple[str, str] | None:
    """Return the message and help for a label whose task can only run after the task that reads it."""
    task, owner = site.task, site.owner
    flow = model.flows.get(owner) if owner else None
    if task is None or flow is None or not flow.is_certain or site.rule or label in model.steps_by_name:
        return None
    if flow.may_have_run(label, task.task):
        return None
    return (
        f"`{label}` is the result of task `{label}`, which cannot have run before `{task.label}`",
        f"read it in a task that comes after `{label}`, or add `| default(…)`",
    )


def _meant(model: Model, site: Site, name: str) -> str:
    return model.suggestions.did_you_mean(name, model.definitions.known_to(site)) if len(name) > 2 else ""


def _help(model: Model, site: Site, name: str) -> str:
    if name in _INSTEAD:
        return _INSTEAD[name]
    if site.owner and name in model.labels_by_owner[site.owner]:
        if site.task is None:
            result = "`event.result`" if site.position in _AFTER_STEP else f"`{site.owner.name}`"
            return f"a label exists only in its step: read {result} of its last task, or store the value with `set_ctx`"
        return (
            "this workbook task ends in a block, which has no result: read `_prev`, or store the value with `set_ctx`"
        )
    meant = _meant(model, site, name)
    if meant:
        return meant
    declared = declared_input(site)
    if declared is not None and declared.language == "python":
        return "where the braces are Python's own, put the code between `{% raw %}` and `{% endraw %}`"
    if name in FUNCTIONS:
        return f"it is a function: write `{name}(…)`"
    return f"write `'{name}'` if it is text, or give it a default as `workload.{name}`"
