import re
from collections.abc import Iterator

from noetlc.analysis.inputs import typed_tasks
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax.nodes import Node, Scalar, Sequence
from noetlc.syntax.scalar_offsets import span_in_file
from noetlc.syntax.span import Span
from noetlvm.language.tool_kinds import Input

_BASH = re.compile(
    r"(?m)^[ \t]*set\s[^\n;]*?(pipefail)\b"
    r"|(?:^|[;&|!(]|\b(?:if|elif|while|until|then|else|do)\s)[ \t]*(\[\[)\s"
    r"|^[ \t]*(?:declare\s+-[aA]\s+)?\w+\+?(=\()"
    r"|(\$\{\w+\[)"
    r"|(<<<)"
    r"|\s([<>]\()"
)
"""What bash has beyond POSIX: options, tests, arrays, here-strings and process substitution."""
_STARTS_BASH = re.compile(r"\b(?:bash|zsh)\b")


class ShellDialect(Rule):
    severity = Severity.WARNING
    summary = "A command for `sh` uses bash syntax."
    why = (
        "`sh` runs the text of `command` and `cmds`. If `sh` is not bash, as on Debian and Alpine, the task fails on "
        "such a line, after earlier steps have done their work."
    )
    example = """
      - step: check
        tool:
    -     - ready: {kind: shell, command: 'if [[ -f /tmp/ready ]]; then echo yes; fi'}
    +     - ready: {kind: shell, command: 'if [ -f /tmp/ready ]; then echo yes; fi'}
    """

    def check(self, model: Model) -> Findings:
        for view, kind in typed_tasks(model):
            for entry in view.task.extra:
                declared = kind.input(entry.key.text)
                if declared is None or declared.language != "shell":
                    continue
                found = next(filter(None, map(_bashism, _texts(declared, entry.value))), None)
                if found is not None:  # the first says it for the task
                    source, span = found
                    yield self.finding(
                        span_in_file(model.source.text, source, span),
                        f"`{source.text[span.start : span.end]}` is bash syntax, and `sh` runs this text",
                        'run it with bash: `command: [bash, -euc, "…"]`, or write it in POSIX syntax',
                    )


def _texts(declared: Input, value: Node) -> Iterator[Scalar]:
    """Yield the texts that `sh` reads."""
    if isinstance(value, Scalar):
        yield value
    elif isinstance(value, Sequence) and declared.reads_items:
        yield from (item for item in value.items if isinstance(item, Scalar))


def _bashism(source: Scalar) -> tuple[Scalar, Span] | None:
    match = None if _STARTS_BASH.search(source.text) else _BASH.search(source.text)
    return (source, Span(*match.span(match.lastindex or 0))) if match else None
