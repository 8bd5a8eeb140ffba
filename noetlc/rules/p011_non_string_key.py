from noetlc.rules.rule import Edit, Fix, Model, ProblemRule, Severity
from noetlc.syntax.span import Problem, ProblemKind


class NonStringKey(ProblemRule):
    severity = Severity.NOTE
    summary = "A key is a number, a boolean or null, and is read as its text."
    why = (
        "Keys are strings in a playbook, as they are in JSON. `200: ok` works, and is found under the string `200`; "
        "quotes make that visible."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: codes, path: demo/codes}
      workload:
    -   meaning: {200: fine, 404: gone}
    +   meaning: {"200": fine, "404": gone}
      workflow:
        - step: start
          tool: {kind: noop}
    """
    covers = ("S7",)
    kind = ProblemKind.NON_STRING_KEY

    def fix_for(self, model: Model, problem: Problem) -> Fix | None:
        written = model.source.text[problem.span.start : problem.span.end]
        if not written or "\n" in written:
            return None
        return Fix("quote the key", (Edit(problem.span, f'"{written}"'),), safe=True)
