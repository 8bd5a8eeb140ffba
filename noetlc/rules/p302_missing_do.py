from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast

_HELP = "write `then: { do: continue }`, or another directive: `retry`, `jump`, `break`, `fail`, `skip`"
_FAULTS = (
    *(("rule", key) for key in ("then", "else", "do")),
    *(("rule_else", key) for key in ("then", "do")),
    ("then", "do"),
)


class MissingDo(Rule):
    severity = Severity.ERROR
    summary = "A policy rule has no `then.do`."
    why = "If a rule without a directive matches, it is undefined how the pipeline continues."
    example = """
      - step: count
        tool:
          - add:
              kind: noop
              spec:
                policy:
                  rules:
                    - when: "{{ args.first }}"
    -                 then: {set_ctx: {total: 0}}
    +                 then: {do: continue, set_ctx: {total: 0}}
                    - else:
                        then: {do: continue}
    """
    covers = ("formal §6.2", "brief §5.2", "brief §12")

    def check(self, model: Model) -> Findings:
        for view in model.tasks:
            for rule in view.task.rules:
                if not model.is_reported(rule.span, *_FAULTS):
                    yield from self._check_rule(rule, view.label)

    def _check_rule(self, rule: ast.PolicyRule, label: str) -> Findings:
        holder = rule.else_ or rule
        if holder.then is not None:
            if holder.then.do is None:
                message = f"a rule of `{label}` has a `then` without `do`"
                yield self.finding(holder.key_span("then"), message, _HELP)
        elif rule.when is not None and rule.else_ is None:
            yield self.finding(rule.key_span("when"), f"a rule of `{label}` has no `then`", _HELP)
