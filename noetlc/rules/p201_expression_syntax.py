"""P201: a template that cannot be read."""

from __future__ import annotations

from noetlc.finding import Severity
from noetlc.rules.rule import TemplateProblemRule


class ExpressionSyntax(TemplateProblemRule):
    code = "P201"
    name = "expression-syntax"
    severity = Severity.ERROR
    summary = "A template has a mistake in its syntax."
    why = (
        "The playbook would start, do half of its work, and fail at the first task that needs the value. "
        "Operators of other languages (`&&`, `===`, `? :`) and half-closed marks are the usual reason."
    )
    bad = """
    - step: start
      tool:
        - fetch:
            kind: http
            url: "https://example.com/items"
            spec:
              policy:
                rules:
                  - when: "{{ outcome.status == 'error' && outcome.http.status == 503 }}"
                    then: { do: retry, attempts: 5, delay: 2 }
                  - else:
                      then: { do: continue }
    """
    good = """
    - step: start
      tool:
        - fetch:
            kind: http
            url: "https://example.com/items"
            spec:
              policy:
                rules:
                  - when: "{{ outcome.status == 'error' and outcome.http.status == 503 }}"
                    then: { do: retry, attempts: 5, delay: 2 }
                  - else:
                      then: { do: continue }
    """
    covers = ("formal §3.1", "S12")
    kinds = frozenset({"syntax", "unclosed", "block", "string"})
