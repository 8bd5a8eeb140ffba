from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity, migration_fix
from noetlc.syntax.span import Problem

PATCHES = ("set_ctx", "set_iter")
_HELP = {
    "step": "append a task `{kind: noop}` whose policy has `else: {then: {do: skip, %s: …}}`: the result stays",
    "arc": "write `args:` if only the target reads it; else a step in between that writes it in a rule's `then`",
    "task": "write it in a rule: `spec: {policy: {rules: [{else: {then: {do: continue, %s: …}}}]}}`",
}


class MisplacedPatch(Rule):
    severity = Severity.ERROR
    summary = "`set_ctx` or `set_iter` is on a step, an arc or a task instead of in the `then` of a rule."
    why = (
        "Only the rules of a task's policy write state, because they depend on the outcome. On a step, an arc or a "
        "task the patch would be ignored, and the key would be undefined."
    )
    example = """
      - step: count
        tool:
    -     - start: {kind: noop, set_ctx: {total: 0}}
    +     - start:
    +         kind: noop
    +         spec:
    +           policy:
    +             rules:
    +               - else:
    +                   then: {do: continue, set_ctx: {total: 0}}
          - read: {kind: shell, command: [echo, "{{ ctx.total }}"]}
    """
    covers = ("step spec §6.2",)
    claims = frozenset((object, key) for object in ("step", "arc") for key in PATCHES)
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for problem in self.claimed(model):
            yield self._misplaced(model, problem)
        for view in model.tasks:
            for entry in view.task.extra:
                if entry.key.text in PATCHES:
                    message = f"a task has no `{entry.key.text}`: only a rule's `then` writes state"
                    help = _help("task", entry.key.text)
                    yield self.finding(entry.key.span, message, help, fix=migration_fix(model))

    def _misplaced(self, model: Model, problem: Problem) -> Finding:
        message = f"{'an' if problem.object == 'arc' else 'a'} {problem.object} has no `{problem.key}`"
        help = _help(problem.object, problem.key)
        message += ": only a rule's `then` writes state"
        return self.finding(problem.span, message, help, fix=migration_fix(model))


def _help(object: str, key: str) -> str:
    return _HELP[object].replace("%s", key)


def may_write_ctx(model: Model) -> bool:
    """Return whether something that could not be parsed may write `ctx`: then its readers are not reported."""
    unread = (("then", "set_ctx"), ("step", "set_ctx"), ("arc", "set_ctx"), ("step", "vars"), ("step", "set"))
    if model.is_reported(model.playbook.span, *unread, ("task_spec", "policy"), ("task_policy", "rules")):
        return True
    return any(entry.key.text == "set_ctx" for view in model.tasks for entry in view.task.extra)
