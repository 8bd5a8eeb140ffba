"""P606: data is spliced into Python source."""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetlc.analysis.taint import Splice, splices
from noetlc.rules.rule import Finding, Model, Rule, Severity
from noetlvm.language.scopes import NAMESPACES


class InterpolatedCode(Rule):
    severity = Severity.WARNING
    summary = "A template puts data into the source of a `python` task instead of its `args`."
    why = (
        "A quote or a line break in the data is a syntax error at best; at worst the data runs as code (code "
        "injection)."
    )
    example = """
      - step: greet
        loop: {in: [Ada, Grace], iterator: person}
        tool:
          - hello:
              kind: python
    +         args: {person: "{{ iter.person }}"}
              code: |
    -           result = "Hello, {{ iter.person }}"
    +           result = "Hello, " + person
    """

    def check(self, model: Model) -> Iterator[Finding]:
        for splice in splices(model, "python"):
            if not _is_defined(model, splice):
                continue  # P215 says so
            what = "is the whole source" if splice.is_whole else "becomes part of the source"
            yield self.finding(
                splice.span,
                f"`{splice.text}` {what}: the data is read as Python",
                'give it in `args: {x: "{{ … }}"}` and use the variable `x`; where the braces are Python\'s own, put '
                "the code between `{% raw %}` and `{% endraw %}`",
            )


def _is_defined(model: Model, splice: Splice) -> bool:
    name = re.match(r"\w+", splice.text)
    return name is None or name[0] in NAMESPACES or model.definitions.defines(name[0], splice.site)
