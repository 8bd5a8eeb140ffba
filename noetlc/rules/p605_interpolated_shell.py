import re

from noetlc.analysis.model import Site
from noetlc.analysis.taint import Splice, splices
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity
from noetlc.syntax.nodes import Node, Scalar, Sequence

_SHELL = re.compile(r"(?:.*/)?(?:a|ba|da|k|z)?sh")
_SCRIPT_OPTION = re.compile(r"-[a-z]*c")


class InterpolatedShell(Rule):
    severity = Severity.WARNING
    summary = "A template puts data into text that a shell runs as a command."
    why = (
        "A space in a file name splits it into two arguments; a `;` in it starts a second command with all the "
        "permissions of the worker (shell injection)."
    )
    example = """
      - step: pack
        loop: {in: ["a.csv", "b.csv"], iterator: file}
        tool:
    -     - zip: {kind: shell, command: "gzip --keep {{ iter.file }}"}
    +     - zip: {kind: shell, command: [gzip, --keep, "{{ iter.file }}"]}
    """

    def check(self, model: Model) -> Findings:
        for splice in splices(model, "shell", _is_script):
            yield self._script(splice) if _is_script(splice.site) else self._text(splice)

    def _text(self, splice: Splice) -> Finding:
        if splice.is_whole:
            message = f"the whole command comes from `{splice.text}`: everyone who sets it can run any program"
            return self.finding(
                splice.span, message, "write the program here, as a list, and use data for its arguments only"
            )
        as_list = "" if splice.site.input == "cmds" else '; or write the command as a list: `[program, "{{ … }}"]`'
        return self.finding(
            splice.span,
            f"`{splice.text}` becomes part of a shell command, and can change it",
            'give it in `env: {NAME: "{{ … }}"}` and write `"$NAME"` in the command' + as_list,
        )

    def _script(self, splice: Splice) -> Finding:
        return self.finding(
            splice.span,
            f"`{splice.text}` becomes part of a shell script, and can change it",
            'give it as an argument: `[sh, -c, \'gzip "$1"\', sh, "{{ … }}"]`',
        )


def _is_script(site: Site) -> bool:
    """Return whether a site is the script in a list such as `[sh, -c, script]`."""
    value = site.task.task.get_extra(site.input) if site.task else None
    if not isinstance(value, Sequence):
        return False
    texts = [_text(item) for item in value.items[:3]]
    if len(texts) < 3 or not _SHELL.fullmatch(texts[0]) or not _SCRIPT_OPTION.fullmatch(texts[1]):
        return False
    return value.items[2] is site.scalar


def _text(node: Node) -> str:
    return node.text if isinstance(node, Scalar) else ""
