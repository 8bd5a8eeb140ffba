from noetlc.analysis.guards import FirstMatch, first_match_lists
from noetlc.rules.rule import Findings, Model, Related, Rule, Severity


class ElseNotLast(Rule):
    severity = Severity.ERROR
    summary = "Rules follow an `else`."
    why = (
        "Rules are tried in order, and `else` matches whatever no earlier rule matched. A rule after it never matches."
    )
    example = """
      - step: decide
        tool:
          - route:
              kind: noop
              spec:
                policy:
                  rules:
    +               - when: "{{ args.urgent }}"
    +                 then: {do: break}
                    - else:
                        then: {do: continue}
    -               - when: "{{ args.urgent }}"
    -                 then: {do: break}
    """
    covers = ("formal §6.3", "brief §5.2", "S30", "S39")

    def check(self, model: Model) -> Findings:
        for rules in first_match_lists(model):
            yield from self._check_list(rules)

    def _check_list(self, rules: FirstMatch) -> Findings:
        for position, choice in enumerate(rules.choices[:-1]):
            if choice.else_ is None:
                continue
            after = rules.choices[position + 1]
            yield self.finding(
                choice.key_span("else"),
                f"`else` is not the last {rules.title} of its list",
                "move it to the end of the list; there can be one `else`",
                related=[Related(next(iter(after.keys.values()), after.span), "this one is never reached")],
            )
            return
