from noetlc.analysis.taint import splices
from noetlc.rules.rule import Findings, Model, Rule, Severity


class InterpolatedCode(Rule):
    severity = Severity.WARNING
    summary = "A template puts data into the source of a `python` task instead of its `args`."
    why = (
        "A quote or a line break in the data is a syntax error at best; at worst the data runs as code (code "
        "injection)."
    )
    example = """
      - step: greet
        loop: {in: [Ada, Grace], iterator: person}
        tool:
          - hello:
              kind: python
    +         args: {person: "{{ iter.person }}"}
              code: |
    -           result = "Hello, {{ iter.person }}"
    +           result = "Hello, " + person
    """

    def check(self, model: Model) -> Findings:
        for splice in splices(model, "python"):
            what = "is the whole source" if splice.is_whole else "becomes part of the source"
            yield self.finding(
                splice.span,
                f"`{splice.text}` {what}: the data is read as Python",
                'give it in `args: {x: "{{ … }}"}` and use the variable `x`; where the braces are Python\'s own, put '
                "the code between `{% raw %}` and `{% endraw %}`",
            )
