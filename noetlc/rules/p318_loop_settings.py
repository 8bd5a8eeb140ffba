from noetlc.analysis.credentials import workload_default
from noetlc.analysis.model import loop_mode
from noetlc.rules.rule import Finding, Findings, Model, Related, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar
from noetlvm.bytecode.limits import LIMIT_MAX
from noetlvm.language.scopes import given_fields
from noetlvm.limits import WAIT_SECONDS_MAX


class LoopSettings(Rule):
    severity = Severity.ERROR
    summary = "A loop's width, mode, rate or iterator name cannot work as written."
    why = (
        "A loop with `max_in_flight: 0` never runs, a sequential loop ignores `max_in_flight`, and of two different "
        "modes one is ignored without a warning. An iterator with the name of a field of `iter` hides that field."
    )
    example = """
      - step: each_city
        loop:
          in: [Paris, Oslo]
          iterator: city
    -     spec: {mode: parallel, max_in_flight: 0}
    +     spec: {mode: parallel, max_in_flight: 2}
        tool: {kind: noop}
    """
    covers = ("S24", "S28", "S53", "formal §2.3", "formal §7.1", "step spec §5.3", "step spec §6.4")

    def check(self, model: Model) -> Findings:
        for step in model.steps:
            outer: dict[str, Scalar] = {}
            for loop in step.loops:
                yield from self._check_iterator(loop, outer)
                yield from self._check_elements(model, loop)
                if loop.spec:
                    yield from self._check_spec(model, loop, loop.spec)

    def _check_elements(self, model: Model, loop: ast.Loop) -> Findings:
        """Find a workload default that is not a list. A request may still bring one."""
        source = loop.in_
        if not isinstance(source, Scalar) or not source.is_template:
            return
        default = workload_default(model.playbook, source.text)
        if isinstance(default, str | int | float):
            what = "a text" if isinstance(default, str) else "not a list"
            message = f"the default of `{source.text.strip('{} ')}` is {what}, and a loop needs a list"
            yield self.finding(source.span, message, "write a list in `workload`", severity=Severity.WARNING)

    def _check_iterator(self, loop: ast.Loop, outer: dict[str, Scalar]) -> Findings:
        name = loop.iterator
        if name is None:
            return
        if name.text in given_fields("iter"):
            message = f"`iter.{name.text}` belongs to the loop: an iterator cannot have that name"
            yield self.finding(name.span, message, "name the iterator after one element, such as `item`")
        other = outer.setdefault(name.text, name)
        if other is not name:
            yield self.finding(
                name.span,
                f"the iterator `{name.text}` has the name of an outer loop's iterator",
                f"name each level differently; the outer element is `iter.parent.{name.text}`",
                related=[Related(other.span, "the outer iterator")],
            )

    def _check_spec(self, model: Model, loop: ast.Loop, spec: ast.LoopSpec) -> Findings:
        policy = spec.policy
        for key in ("mode", "max_in_flight"):
            inner: Scalar | None = getattr(policy, key) if policy else None
            values = [value for value in (getattr(spec, key), inner) if value is not None]
            if len(values) == 2 and values[0].value != values[1].value:
                yield self._differ(key, values[0], values[1])
            if key == "max_in_flight":
                for value in values:
                    yield from self._check_width(model, loop, value)
        if spec.rate:
            yield from self._check_rate(loop, spec.rate)

    def _check_rate(self, loop: ast.Loop, rate: ast.Rate) -> Findings:
        most, per = rate.max, rate.per
        if most is not None and isinstance(most.value, int) and not 1 <= most.value <= LIMIT_MAX:
            yield self.finding(most.span, f"`max: {most.text}` is not a count", f"write 1 to {LIMIT_MAX:,}")
        if per is not None and isinstance(per.value, int | float) and not 0 < per.value <= WAIT_SECONDS_MAX:
            help = f"write seconds, more than 0 and at most {WAIT_SECONDS_MAX:,}"
            yield self.finding(per.span, f"`per: {per.text}` is not a period of time", help)
        if loop.loop is not None:
            message = "`rate` has no effect: the iterations of this loop contain a loop"
            yield self.finding(rate.span, message, "write it in the `spec` of the innermost loop")

    def _differ(self, key: str, first: Scalar, second: Scalar) -> Finding:
        return self.finding(
            second.span,
            f"`{key}` is `{second.text}` here and `{first.text}` in the loop's `spec`",
            f"write `{key}` once, in the loop's `spec`",
            related=[Related(first.span, "the other one")],
        )

    def _check_width(self, model: Model, loop: ast.Loop, width: Scalar) -> Findings:
        if isinstance(width.value, int) and width.value < 1:
            message = f"`max_in_flight: {width.text}` lets no iteration run"
            yield self.finding(width.span, message, "write how many iterations may run at once, 1 or more")
        elif isinstance(width.value, int) and width.value > LIMIT_MAX:
            message = f"`max_in_flight: {width.text}` is too large"
            yield self.finding(width.span, message, f"write a number up to {LIMIT_MAX:,}")
        elif loop_mode(loop) == "sequential" and not model.is_reported(
            loop.span, ("loop_spec", "mode"), ("loop_policy", "mode")
        ):
            yield self.finding(
                width.span,
                "`max_in_flight` has no effect: the loop is sequential",
                "write `mode: parallel`, or remove `max_in_flight`",
                severity=Severity.WARNING,
            )
