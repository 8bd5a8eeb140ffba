from noetlc.analysis.model import thens
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar

_BELONGS_TO = {"attempts": "retry", "backoff": "retry", "delay": "retry", "to": "jump"}


class DirectiveFields(Rule):
    severity = Severity.ERROR
    summary = "A `jump` has no `to`, or a directive has a field that it does not read."
    why = (
        "A jump needs a target. `attempts` with `continue`, or `to` with `retry`, is ignored; usually another "
        "directive was meant."
    )
    example = """
      - step: poll
        tool:
          - poll: {kind: http, url: "https://example.org/job"}
          - again:
              kind: noop
              spec:
                policy:
                  rules:
                    - when: "{{ _prev.data.state == 'running' }}"
    -                 then: {do: jump}
    +                 then: {do: jump, to: poll}
                    - else:
                        then: {do: break}
    """
    covers = ("formal §6.2", "brief §5.2", "brief §6", "step spec §5.4")

    def check(self, model: Model) -> Findings:
        for view in model.tasks:
            for _, then in thens(view.task):
                if then.do is not None:
                    yield from self._check_then(model, then, then.do)

    def _check_then(self, model: Model, then: ast.Then, do: Scalar) -> Findings:
        if do.text == "jump" and then.to is None and not model.is_reported(then.span, ("then", "to")):
            yield self.finding(do.span, "`jump` has no target", "add `to:` with the label of a task")
        for field, directive in _BELONGS_TO.items():
            if getattr(then, field) is not None and do.text != directive:
                yield self.finding(
                    then.key_span(field),
                    f"`{field}` belongs to `do: {directive}`; `do: {do.text}` does not read it",
                    f"remove `{field}`, or write `do: {directive}`",
                    severity=Severity.WARNING,
                )
