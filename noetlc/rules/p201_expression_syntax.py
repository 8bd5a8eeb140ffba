"""P201: a template that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetlc.analysis.model import Model
from noetlc.finding import Finding, Severity
from noetlc.rules.rule import TemplateProblemRule
from noetlvm.record import changed

_GO = re.compile(r"\{\{-?\s*(?:\.[A-Za-z]|range |end\b|json \.)")
_GO_HELP = "a template of Go (docker, kubectl, helm) is text here: put `{% raw %}` before and `{% endraw %}` after it"


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

    def check(self, model: Model) -> Iterator[Finding]:
        go_templates = {
            model.place(site, problem.span)
            for site, template in model.template_sites
            for problem in template.problems
            if _GO.search(template.text, 0, problem.span.end + 1)
        }
        for finding in super().check(model):
            yield changed(finding, help=_GO_HELP) if finding.span in go_templates else finding
