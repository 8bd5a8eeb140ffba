from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax.span import Span

_SHAPE = "`policy: { rules: [ { when: …, then: { do: … } }, { else: { then: { do: … } } } ] }`"
_PLACES = (("task_spec", "policy"), ("task_policy", "rules"))


class PolicyShape(Rule):
    severity = Severity.ERROR
    summary = "A task's `spec.policy` is not an object with a list of `rules`."
    why = "Only this form is read as rules. In any other form a retry, for example, never happens."
    example = """
      - step: fetch
        tool:
          - get:
              kind: http
              url: https://example.org/items
              spec:
                policy:
    -             - when: "{{ outcome.status == 'error' }}"
    -               then: {do: retry, attempts: 5}
    -             - else:
    -                 then: {do: continue}
    +             rules:
    +               - when: "{{ outcome.status == 'error' }}"
    +                 then: {do: retry, attempts: 5}
    +               - else:
    +                   then: {do: continue}
    """
    covers = ("formal §6.2", "formal §13", "brief §1.4", "brief §12", "step spec §5.4")
    claims = frozenset(_PLACES)

    def check(self, model: Model) -> Findings:
        for problem in self.claimed(model):
            yield self.finding(problem.span, problem.message, self._help(model, problem.span, problem.key))
        for view in model.tasks:
            policy = view.task.policy
            if policy and policy.rules is None and not model.is_reported(policy.span, ("task_policy", "rules")):
                place = Span(policy.span.start, min(policy.span.start + 1, policy.span.end))
                yield self.finding(place, f"the policy of `{view.label}` has no `rules`", f"write {_SHAPE}")

    @staticmethod
    def _help(model: Model, span: Span, key: str) -> str:
        if key == "policy" and model.source.text[span.start : span.start + 1] in ("-", "["):
            return "write `rules:` under `policy:` and indent the list under it"
        return f"write {_SHAPE}"
