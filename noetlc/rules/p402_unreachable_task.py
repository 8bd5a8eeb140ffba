from collections.abc import Iterator

from noetlc.analysis.flow import Flow, Point
from noetlc.rules.rule import Finding, Findings, Model, Related, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.span import Span


class UnreachableTask(Rule):
    severity = Severity.WARNING
    summary = "No path through the pipeline reaches the task."
    why = (
        "The previous task always jumps, breaks or fails, and no task jumps to this one. It never runs, and nothing "
        "reports this at run time."
    )
    example = """
      - step: store
        tool:
          - route:
              kind: noop
              spec:
                policy:
                  rules:
    +               - when: "{{ args.dry_run }}"
    +                 then: {do: break}
                    - else:
    -                   then: {do: break}
    +                   then: {do: continue}
          - save: {kind: postgres, command: "INSERT INTO log DEFAULT VALUES", auth: "{{ args.db }}"}
    """
    covers = ("formal §6.4", "brief §6")

    def check(self, model: Model) -> Findings:
        for flow in model.flows.values():
            if flow.is_certain:
                for number, point in enumerate(flow.points):
                    if _begins_dead_run(flow, number, point):
                        yield self._dead(flow, number, point)

    def _dead(self, flow: Flow, number: int, point: Point) -> Finding:
        names = [_name(entry) for entry in _dead_run(flow, number)]
        before = flow.points[point.before] if point.before is not None else None
        related = [Related(_place(before), f"{_name(before)} never continues to it")] if before else []
        return self.finding(
            _place(point),
            f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} never reached",
            "jump to it, let the task before it `continue`, or remove it",
            related=related,
        )


def _begins_dead_run(flow: Flow, number: int, point: Point) -> bool:
    """The first unreachable task of a sequence is reported. What a constant guard disables has a rule of its own."""
    return point.before is not None and not _is_alive(flow, number) and _is_alive(flow, point.before)


def _is_alive(flow: Flow, number: int) -> bool:
    """A block is alive if its test is, or (for `until`) anything of its body."""
    entry = flow.points[number].entry
    if number in flow.reachable:
        return True
    return isinstance(entry, ast.Repeat) and any(flow.points[inside].block is entry for inside in flow.reachable)


def _dead_run(flow: Flow, number: int) -> Iterator[Point]:
    """Yield the dead entry and those that follow it in its list, up to the next that is alive."""
    previous = number
    yield flow.points[number]
    for later in range(number + 1, len(flow.points)):
        point = flow.points[later]
        if point.before == previous:
            if _is_alive(flow, later):
                return
            yield point
            previous = later


def _place(point: Point) -> Span:
    if point.view:
        return point.view.name_span
    return next(iter(point.entry.keys.values()), point.entry.span)


def _name(point: Point) -> str:
    if point.view:
        return f"`{point.view.label}`"
    return f"the `{point.entry.word if isinstance(point.entry, ast.Repeat) else 'choose'}`"
