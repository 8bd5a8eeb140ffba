from noetlc.analysis.model import Owner, loop_mode, patches, thens
from noetlc.rules.rule import Edit, Finding, Findings, Fix, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import MappingEntry, Node, Scalar, scalars
from noetlc.syntax.span import Span


class Reducer(Rule):
    severity = Severity.WARNING
    summary = "A reducer is given for a key that no task writes, or on a sequential loop."
    why = (
        "A reducer combines the writes of parallel iterations to one value. If its key is misspelt, the real key has "
        "no reducer, and two iterations that write different values fail the step."
    )
    example = """
      - step: add_up
        loop:
          in: [1, 2, 3]
          iterator: number
          spec:
            mode: parallel
            policy:
    -         reducers: {totals: sum}
    +         reducers: {total: sum}
        tool:
          - add:
              kind: noop
              spec:
                policy:
                  rules:
                    - else:
                        then: {do: continue, set_ctx: {total: "{{ iter.number }}"}}
    """
    covers = ("S26", "formal §7.2", "step spec §5.3")

    stops_compiler = False

    def check(self, model: Model) -> Findings:
        for owner, views in model.tasks_by_owner.items():
            written: dict[str, list[Node]] = {}
            for view in views:
                for _, then in thens(view.task):
                    for patch, entry in patches(then):
                        if patch == "set_ctx":
                            written.setdefault(entry.key.text, []).append(entry.value)
            # What a workbook task writes is written by the step that uses it.
            is_open = any(view.kind == "workbook" for view in views) or model.is_reported(
                _span(owner), ("then", "set_ctx")
            )
            for loop in owner.loops:
                yield from self._check_loop(model, loop, written, is_open)

    def _check_loop(self, model: Model, loop: ast.Loop, written: dict[str, list[Node]], is_open: bool) -> Findings:
        reducers = loop.policy.reducers if loop.policy else None
        for entry in reducers.extra if reducers else ():
            key = entry.key
            if loop_mode(loop) != "parallel":
                yield self._in_order(model, loop, entry, written.get(key.text, []))
            elif key.text not in written and not is_open:
                meant = model.suggestions.did_you_mean(key.text, written)
                help = meant or f"write the key in a task's `set_ctx`, or remove `{key.text}`"
                yield self.finding(key.span, f"no task of the step writes `ctx.{key.text}`", help)

    def _in_order(self, model: Model, loop: ast.Loop, entry: MappingEntry, values: list[Node]) -> Finding:
        """Report a reducer of a sequential loop: an error where writes are lost that it was to combine."""
        name = entry.key.text
        is_combined = any(f"ctx.{name}" in scalar.text for value in values for scalar in scalars(value))
        if is_combined or not values or (isinstance(entry.value, Scalar) and entry.value.text == "last"):
            message = f"the reducer of `{name}` has no effect: the loop is sequential"
            return self.finding(entry.key.span, message, "write `mode: parallel`, or remove the reducer")
        return self.finding(
            entry.key.span,
            f"the loop is sequential: each iteration replaces what `ctx.{name}` was, and the reducer is not applied",
            "write `mode: parallel`, with `max_in_flight: 1` if one must end before the next; "
            f"or combine the values yourself from `ctx.{name}`",
            severity=Severity.ERROR,
            fix=_one_at_a_time(model, loop),
        )


def _one_at_a_time(model: Model, loop: ast.Loop) -> Fix | None:
    """Return the fix to a parallel loop of which one iteration runs at a time."""
    spec, text = loop.spec, model.source.text
    mode = spec.mode if spec else None
    if spec is None or mode is None or text[mode.span.start : mode.span.end] != mode.text:
        return None
    at = spec.key_span("mode").start
    between = ", " if text[spec.span.start] == "{" else "\n" + " " * (at - text.rfind("\n", 0, at) - 1)
    width = "" if spec.max_in_flight else f"{between}max_in_flight: 1"
    return Fix("run it as a parallel loop, one iteration at a time", (Edit(mode.span, f"parallel{width}"),), safe=False)


def _span(owner: Owner) -> Span:
    return owner.step.span if owner.step else Span(0, 0)
