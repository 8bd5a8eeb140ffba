from noetlc.analysis.flow import Flow, Point, Way
from noetlc.analysis.guards import decide
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast


class EndlessJump(Rule):
    severity = Severity.WARNING
    summary = "Tasks jump in a cycle, and none of them can end the pipeline."
    why = (
        "The pipeline repeats the same calls until its fuel is used up (100,000 task runs by default), and then fails."
    )
    example = """
      - step: poll
        tool:
          - wait: {kind: noop}
          - again:
              kind: noop
              spec:
                policy:
                  rules:
    +               - when: "{{ ctx.done | default(false) }}"
    +                 then: {do: break}
                    - else:
                        then: {do: jump, to: wait}
    """
    covers = ("S20", "brief §9", "formal §6.4")

    def check(self, model: Model) -> Findings:
        for flow in model.flows.values():
            if flow.is_certain:
                for number in sorted(flow.reachable - flow.can_end):
                    yield from self._check_point(flow, number, flow.points[number])

    def _check_point(self, flow: Flow, number: int, point: Point) -> Findings:
        block = point.entry
        if isinstance(block, ast.Repeat) and block.word == "while" and block.when and decide(block.when) is True:
            message = "this `while` never ends: its condition always holds, and nothing inside can leave it"
            yield self.finding(block.when.span, message, "test a value that a task inside changes, or `break`")
        for way in point.ways:
            if way.rule and not way.is_retry and 0 <= way.to <= number:
                yield from self._jump(flow, point, way, way.rule)

    def _jump(self, flow: Flow, point: Point, way: Way, rule: ast.PolicyRule) -> Findings:
        then = rule.action
        target = flow.points[way.to].view
        if then and then.do and then.do.text == "jump" and target and point.view:
            yield self.finding(
                then.do.span,
                f"`{point.view.label}` jumps back to `{target.label}`, and no task on the way can end the pipeline",
                "add a rule with `do: break` or `do: fail` for the end",
            )
