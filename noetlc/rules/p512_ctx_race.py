"""P512: two steps that can run at once touch one key of `ctx`."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.model import Model
from noetlc.analysis.state_use import ctx_read, ctx_written
from noetlc.finding import Finding, Related, Severity
from noetlc.rules.rule import Rule


class CtxRace(Rule):
    code = "P512"
    name = "ctx-race"
    severity = Severity.WARNING
    summary = "Two step runs that can be under way at once touch one `ctx` key, and at least one of them writes it."
    why = (
        "Which of them comes first is up to the workers. The run that went well a hundred times gives another result "
        "on the day when one of them is slow."
    )
    bad = """
    - step: start
      next:
        spec: {mode: inclusive}
        arcs:
          - step: hotels
          - step: rooms
    - step: hotels
      tool:
        - count:
            kind: noop
            spec:
              policy:
                rules:
                  - else:
                      then: {do: continue, set_ctx: {total: 1}}
    - step: rooms
      tool:
        - count:
            kind: noop
            spec:
              policy:
                rules:
                  - else:
                      then: {do: continue, set_ctx: {total: 2}}
    """
    good = """
    - step: start
      next:
        spec: {mode: inclusive}
        arcs:
          - step: hotels
          - step: rooms
    - step: hotels
      tool:
        - count:
            kind: noop
            spec:
              policy:
                rules:
                  - else:
                      then: {do: continue, set_ctx: {hotels_total: 1}}
    - step: rooms
      tool:
        - count:
            kind: noop
            spec:
              policy:
                rules:
                  - else:
                      then: {do: continue, set_ctx: {rooms_total: 2}}
    """
    covers = ("S31", "formal §4.1")

    def check(self, model: Model) -> Iterator[Finding]:
        found = model.net
        if found is None or not model.definitions.ctx or not any(step.inclusive for step in found.net.steps):
            return
        from noetlc.net.races import races
        from noetlc.net.reachability import reach
        from noetlvm.record import changed

        written, read = ctx_written(model), ctx_read(model)
        steps = tuple(
            changed(step, reads=frozenset(read[step.name]), writes=frozenset(written[step.name]))
            for step in found.net.steps
        )
        for race in races(reach(changed(found.net, steps=steps))):
            writer = found.name(race.writer)
            names = ["a second run of it" if n == race.writer else f"`{found.name(n)}`" for n in race.others]
            others = [found.steps[n].step for n in race.others if n != race.writer]
            yield self.finding(
                written[writer][race.key].span,
                f"`{writer}` writes `ctx.{race.key}`, and may run at the same time as {', '.join(names)}",
                "let each write a key of its own, and put them together in a step that comes after both",
                related=[Related(other.span, "this step touches it too") for other in others if other is not None],
            )
