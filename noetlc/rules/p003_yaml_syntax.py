from noetlc.rules.rule import ProblemRule, Severity
from noetlc.syntax.span import ProblemKind


class YamlSyntax(ProblemRule):
    severity = Severity.ERROR
    summary = "The text is not well-formed YAML."
    why = (
        "A line that is not YAML cannot be checked. The linter skips the line and checks the rest of the file, as "
        "far as it does not depend on that line."
    )
    example = """
      - step: start
    -   desc: "greets the night shift
    +   desc: "greets the night shift"
        tool: {kind: noop}
    """
    covers = ("formal §2.1", "S7")
    kind = ProblemKind.YAML_SYNTAX
