from noetlc.rules.rule import Edit, Fix, Model, ProblemRule, Severity
from noetlc.syntax.span import Problem, ProblemKind


class WrongType(ProblemRule):
    severity = Severity.ERROR
    summary = "A value does not have the required type, or is not one of the allowed words."
    why = "A task or setting with such a value fails or is refused at run time."
    example = """
      - step: fan_out
        loop:
          in: [1, 2, 3]
          iterator: item
    -     spec: {mode: paralel}
    +     spec: {mode: parallel}
        tool: {kind: noop}
    """
    covers = ("S6", "formal §2.1", "formal §2.3", "formal §8.2", "step spec §7")
    kind = ProblemKind.WRONG_TYPE

    def fix_for(self, model: Model, problem: Problem) -> Fix | None:
        if not problem.suggestion:
            return None
        written = model.source.text[problem.span.start : problem.span.end]
        quote = written[0] if written[:1] in ("'", '"') else ""
        edit = Edit(problem.span, f"{quote}{problem.suggestion}{quote}")
        return Fix(f"write `{problem.suggestion}`", (edit,), safe=False)
