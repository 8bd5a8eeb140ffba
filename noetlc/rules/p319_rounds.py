from noetlc.canon.errors import ExpansionError
from noetlc.canon.flow import rounds_of
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar
from noetlvm.limits import WAIT_SECONDS_MAX


class Rounds(Rule):
    severity = Severity.ERROR
    summary = "The `max` or `delay` of a `while` or `until` is out of range."
    why = (
        "Rounds are counted while the pipeline runs, and the count must be positive. No wait between rounds exceeds "
        "an hour."
    )
    example = """
      - step: poll
        tool:
          - while:
              when: "{{ _prev is none }}"
    -         max: -1
    +         max: 100
              do:
                - poll: {kind: noop}
    """
    covers = ("S39", "S53")

    def check(self, model: Model) -> Findings:
        for owner in model.owners:
            for block in ast.nested_blocks(owner.entries):
                if isinstance(block, ast.Repeat) and block.max is not None:
                    yield from self._check(block.max)
                if isinstance(block, ast.Repeat) and block.delay is not None:
                    yield from self._check_delay(block.delay)

    def _check_delay(self, delay: Scalar) -> Findings:
        if isinstance(delay.value, int | float) and not 0 <= delay.value <= WAIT_SECONDS_MAX:
            help = f"write seconds, from 0 to {WAIT_SECONDS_MAX:,}"
            yield self.finding(delay.span, f"`delay: {delay.text}` is not a time to wait between rounds", help)

    def _check(self, written: Scalar) -> Findings:
        try:
            rounds_of(written)
        except ExpansionError as refusal:
            yield self.finding(refusal.span, refusal.message, refusal.help)
