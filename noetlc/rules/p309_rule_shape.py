from noetlc.analysis.guards import OTHER_NAMES, Choice, FirstMatch, first_match_lists
from noetlc.analysis.spec_keys import keys_of
from noetlc.rules.rule import Finding, Findings, Model, Related, Rule, Severity, migration_fix
from noetlc.syntax import ast
from noetlc.syntax.span import Problem, Span

_OF_THEN = {"rule": keys_of(ast.Then), "admit_rule": keys_of(ast.AdmitThen)}
_FOR_THEN = {**_OF_THEN, "branch": ("do",)}
"""Keys that stand where `then` should, by object: one finding on the key is enough."""
_MISPLACED = {
    **{("rule", key): "then" for key in _OF_THEN["rule"]},
    **{("rule_else", key): "then" for key in _OF_THEN["rule"]},
    ("admit_rule", "allow"): "then",
    ("admit_else", "allow"): "then",
}
"""Keys that stand one level too high, as (object, key), and the key to put them under."""


class RuleShape(Rule):
    severity = Severity.ERROR
    summary = "A rule or a branch is neither `when` with `then`, nor `else` alone."
    why = (
        "A rule either has a condition, or is the `else` rule. For a rule that is both or neither, it is undefined "
        "when it matches."
    )
    example = """
      - step: decide
        tool:
          - route:
              kind: noop
              spec:
                policy:
                  rules:
                    - when: "{{ args.urgent }}"
                      then: {do: break}
    -                 else:
    +               - else:
                        then: {do: continue}
    """
    covers = ("formal §4.2", "formal §6.2", "brief §5.1", "step spec §5.2", "step spec §5.4", "S39")
    claims = frozenset(_MISPLACED)

    def check(self, model: Model) -> Findings:
        by_rule: dict[int, list[Problem]] = {}
        for problem in self.claimed(model):
            by_rule.setdefault(id(model.mappings_by_key.get(problem.span)), []).append(problem)
        yield from (self._misplaced(model, problems) for problems in by_rule.values())
        for rules in first_match_lists(model):
            for choice in rules.choices:
                yield from self._check_choice(model, rules, choice)

    def _misplaced(self, model: Model, problems: list[Problem]) -> Finding:
        first = problems[0]
        inside = _MISPLACED[first.object, first.key]
        keys = [problem.key for problem in problems]
        are = "is one level too high: it belongs" if len(keys) == 1 else "are one level too high: they belong"
        return self.finding(
            first.span,
            f"{' and '.join(f'`{key}`' for key in keys)} {are} under `{inside}`",
            f"write `{inside}: {{ {', '.join(f'{key}: …' for key in keys)} }}`",
            fix=migration_fix(model),
        )

    def _check_choice(self, model: Model, rules: FirstMatch, choice: Choice) -> Findings:
        start = next(iter(choice.keys.values()), None) or Span(choice.span.start, choice.span.start)
        if choice.else_ is not None:
            yield from self._beside_else(rules, choice)
        elif choice.when is None:
            if not _is_reported(model, rules, choice, "when", "else"):
                message = f"this {rules.title} has neither `when` nor `else`"
                yield self.finding(
                    start, message, 'write `when: "{{ … }}"` with `then`, or `else` with `then` under it'
                )
        elif choice.then is None and rules.object != "rule" and not _is_reported(model, rules, choice, "then"):
            yield self.finding(start, f"this {rules.title} has no `then`", f"add {_then(rules)}")

    def _beside_else(self, rules: FirstMatch, choice: Choice) -> Findings:
        key = "when" if choice.when is not None else "then" if choice.then is not None else ""
        if key:
            yield self.finding(
                choice.key_span(key),
                f"this {rules.title} has both `{key}` and `else`",
                "make `else` an entry of its own, the last of the list, with its own `then` under it",
                related=[Related(choice.key_span("else"), "`else` is here")],
            )


def _is_reported(model: Model, rules: FirstMatch, choice: Choice, *keys: str) -> bool:
    """Return whether the key is absent because it could not be read, or was written under another name."""
    places = [(rules.object, key) for key in (*keys, *OTHER_NAMES, *_FOR_THEN.get(rules.object, ()))]
    return model.is_reported(choice.span, *places)


def _then(rules: FirstMatch) -> str:
    return "`then: { allow: true }`" if rules.object == "admit_rule" else "`then:` with a list of tasks"
