"""P305: `set_iter` in a step without a loop."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.model import thens
from noetlc.rules.rule import Finding, Model, Rule, Severity


class SetIterOutsideLoop(Rule):
    severity = Severity.ERROR
    summary = "A rule writes `set_iter`, and its step has no loop."
    why = "`iter` is the state of one iteration. Without a loop there is none, and the value is written nowhere."
    example = """
      - step: begin
        tool:
          - init:
              kind: noop
              spec:
                policy:
                  rules:
                    - else:
    -                   then: {do: continue, set_iter: {page: 1}}
    +                   then: {do: continue, set_ctx: {page: 1}}
    """
    covers = ("S18", "formal §3.2", "step spec §6.3")

    def check(self, model: Model) -> Iterator[Finding]:
        for view in model.tasks:
            step = view.owner.step
            if step is None or step.loop or model.is_reported(step.span, ("step", "loop")):
                continue
            for _, then in thens(view.task):
                if then.set_iter is not None:
                    yield self.finding(
                        then.key_span("set_iter"),
                        f"`{view.label}` writes `set_iter`, and step `{view.owner.name}` has no loop",
                        "write `set_ctx`, or give the step a `loop`",
                    )
