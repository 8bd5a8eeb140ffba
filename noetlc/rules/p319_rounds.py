"""P319: a `max` that is no number of rounds."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.model import Model
from noetlc.finding import Finding, Severity
from noetlc.rules.rule import Rule
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar


class Rounds(Rule):
    code = "P319"
    name = "rounds"
    severity = Severity.ERROR
    summary = "The `max` of a `while` or `until` is not a number that a round counter holds."
    why = (
        "Rounds are counted while the pipeline runs, and the count is compared with a number in the code: neither a "
        "template nor a negative number can stand there."
    )
    bad = """
    - step: poll
      tool:
        - while:
            when: "{{ _prev is none }}"
            max: -1
            do:
              - poll: {kind: noop}
    """
    good = """
    - step: poll
      tool:
        - while:
            when: "{{ _prev is none }}"
            max: 100
            do:
              - poll: {kind: noop}
    """
    covers = ("S39",)

    def check(self, model: Model) -> Iterator[Finding]:
        for owner in model.owners:
            for block in ast.nested_blocks(owner.entries):
                if isinstance(block, ast.Repeat) and block.max is not None:
                    yield from self._check(block.max)

    def _check(self, written: Scalar) -> Iterator[Finding]:
        from noetlc.canon.errors import ExpansionError
        from noetlc.canon.flow import rounds_of

        try:
            rounds_of(written)
        except ExpansionError as refusal:
            yield self.finding(refusal.span, refusal.message, refusal.help)
