from collections.abc import Iterator

from noetlc.analysis.guards import decide
from noetlc.analysis.names import Reading
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar


class ConstantGuard(Rule):
    severity = Severity.WARNING
    summary = "A `when` does not depend on data, so it is always true or always false."
    why = (
        "The guarded rule or arc always applies, or never. Usually a name lacks its namespace, or a debugging switch "
        "was not removed."
    )
    example = """
      - step: start
        next:
          arcs:
            - step: notify
    -         when: "{{ 'failed' == 'failed' }}"
    +         when: "{{ event.status == 'error' }}"
            - step: finish
      - step: notify
        tool: { kind: http, url: "https://example.com/notify" }
      - step: finish
        tool: { kind: noop }
    """
    covers = ("S9",)

    def check(self, model: Model) -> Findings:
        customary = {id(guard) for guard in _customary(model)}
        for site in model.sites:
            guard = site.scalar
            if not site.is_guard or id(guard) in customary or _is_plain_text(guard):
                continue
            truth = decide(guard)
            if truth is not None:
                yield self.finding(guard.span, _MESSAGES[truth], _HELP[truth])
        for reading in model.readings:
            guard = reading.site.scalar
            if reading.site.is_guard and _reads_nothing(reading) and decide(guard) is None:
                yield self.finding(
                    guard.span, "this `when` reads no data, so it always has the same value", _HELP[True]
                )


_MESSAGES = {True: "this `when` always holds", False: "this `when` never holds"}
_HELP = {
    True: "compare a value that can change; if it should always happen, remove the `when` or use a last `else`",
    False: "compare a value that can change, or remove the guarded rule or arc",
}


def _is_literal(guard: Scalar) -> bool:
    """Return whether a guard is true or false itself, in whichever notation."""
    words = guard.text.strip().removeprefix("{{").removesuffix("}}").strip()
    return isinstance(guard.value, bool) or words.lower() in ("true", "false")


def _is_plain_text(guard: Scalar) -> bool:
    """Text that is not a template has a rule of its own (P213), unless it is `true` or `false`."""
    return not guard.is_template and not _is_literal(guard)


def _reads_nothing(reading: Reading) -> bool:
    return not reading.names.uses and reading.template.is_single and not reading.template.problems


def _customary(model: Model) -> Iterator[Scalar]:
    """Yield guards that are usually plain true or false: the last alternative, one of many, a `while: true`."""
    for guard in _last_alternatives(model):
        if guard and _is_literal(guard) and decide(guard):
            yield guard
    for owner in model.owners:
        for entry in owner.entries:
            yield from _round_literals(entry)


def _last_alternatives(model: Model) -> Iterator[Scalar | None]:
    for step in model.steps:
        # Under `inclusive` every arc is on its own, so each may say that it always fires.
        for arc in step.arcs if step.is_inclusive else step.arcs[-1:]:
            yield arc.when
        for admission in step.admission_rules[-1:]:
            yield admission.when
    for view in model.tasks:
        for rule in view.task.rules[-1:]:
            yield rule.when
        for block in view.blocks:
            if isinstance(block, ast.Choose):
                yield block.choose[-1].when


def _round_literals(entry: ast.PipelineEntry) -> Iterator[Scalar]:
    """`while: true` with a `break` inside is a way to write a loop; rounds that never run have a rule of their own."""
    if isinstance(entry, ast.Task):
        return
    if isinstance(entry, ast.Repeat) and entry.when:
        yield entry.when
    for body in ast.bodies(entry):
        for inner in body:
            yield from _round_literals(inner)
