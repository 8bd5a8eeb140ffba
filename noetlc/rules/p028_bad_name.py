"""P028: a name that cannot be addressed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetlc.analysis.model import Model
from noetlc.finding import Finding, Severity
from noetlc.rules.rule import Rule
from noetlc.syntax.nodes import Scalar

_WORD = re.compile(r"[^\W\d][\w-]*\Z")
_STEP = re.compile(r"[^\W\d][\w-]*(/(?!(admit|tool|in|when|args)(/|\Z))[^\W\d][\w-]*)*\Z")
"""Parts may follow a slash, but for those that addresses have after a step's name."""
_VARIABLE = re.compile(r"[^\W\d]\w*\Z")
_LABEL = re.compile(r"[^\W\d][\w-]*(\.[^\W\d][\w-]*)*\Z")
_ONE_LINE = re.compile(r"[^\x00-\x1f\x7f]*\Z")


class BadName(Rule):
    severity = Severity.ERROR
    summary = "A step, label, iterator or keychain name is not a plain name."
    why = (
        "Names end up in expressions (`iter.city`, `keychain.pg`), in jumps and in the labels of events. "
        "A space in one makes it impossible to address. Dots are for the parts of generated labels (`save.insert`)."
    )
    example = """
    - - step: load orders
    + - step: load_orders
        tool: {kind: noop}
    """
    covers = ("formal §2.2", "S5", "S18", "S40")
    on_damaged = True

    def check(self, model: Model) -> Iterator[Finding]:
        for what, name, pattern in _names(model):
            if name is None or not isinstance(name.value, str):
                continue
            if pattern is _STEP and "/" in name.text and pattern.match(name.text):
                yield self.finding(
                    name.span,
                    f"`{name.text}` is no plain name: templates cannot read the step's result by it",
                    f"use underscores: `{_mended(name.text)}`",
                    severity=Severity.WARNING,
                )
            elif pattern is _ONE_LINE and not pattern.match(name.text):
                yield self.finding(name.span, f"{what} has a control character", "write it on one line, without tabs")
            elif not pattern.match(name.text):
                hyphen = "" if pattern is _VARIABLE else " or hyphens"
                yield self.finding(
                    name.span,
                    f"`{name.text}` cannot be {what}",
                    f"use letters, digits and underscores{hyphen}, beginning with a letter"
                    + (f": `{_mended(name.text)}`" if _mended(name.text) else ""),
                )


def _names(model: Model) -> Iterator[tuple[str, Scalar | None, re.Pattern[str]]]:
    metadata = model.playbook.metadata
    if metadata is not None:
        yield "the name of a playbook", metadata.name, _ONE_LINE
        yield "the path of a playbook", metadata.path, _ONE_LINE
    for credential in model.playbook.keychain or ():
        yield "a keychain name", credential.name, _WORD
    for step in model.steps:
        yield "a step name", step.step, _STEP
        for loop in step.loops:
            yield "an iterator", loop.iterator, _VARIABLE
    for view in model.tasks:
        yield "a task label", view.task.label, _LABEL
    workbook = model.playbook.workbook
    for task in (workbook.tasks or ()) if workbook else ():
        yield "a workbook task name", task.name, _WORD


def _mended(name: str) -> str:
    mended = re.sub(r"\W+", "_", name).strip("_")
    return mended if _VARIABLE.match(mended) else ""
