import re
from collections.abc import Iterator

from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax.nodes import Scalar
from noetlvm.language.names import LABEL, NAME_CHARS_MAX, ONE_LINE, STEP_NAME, VARIABLE, WORD


class BadName(Rule):
    severity = Severity.ERROR
    summary = "The name of a playbook, step, label, iterator or credential is not a plain name, or is too long."
    why = (
        "Names are used in expressions (`iter.city`, `keychain.pg`), in jumps and in events. An expression cannot "
        "read a name that contains a space, and the size of an event is limited. Dots are reserved for generated "
        "labels (`save.insert`)."
    )
    example = """
    - - step: load orders
    + - step: load_orders
        tool: {kind: noop}
    """
    covers = ("formal §2.2", "S5", "S18", "S40")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for what, name, pattern in _names(model):
            if name is None or not isinstance(name.value, str):
                continue
            if len(name.text) > NAME_CHARS_MAX:
                message = f"{what} has up to {NAME_CHARS_MAX:,} characters, and this has {len(name.text):,}"
                yield self.finding(name.span, message, "write a shorter name")
            elif pattern is STEP_NAME and "/" in name.text and pattern.match(name.text):
                yield self.finding(
                    name.span,
                    f"`{name.text}` is not a plain name, so templates cannot read the result of the step",
                    f"use underscores: `{_corrected(name.text)}`",
                    severity=Severity.WARNING,
                )
            elif pattern is ONE_LINE and not pattern.match(name.text):
                yield self.finding(
                    name.span,
                    f"{what} is empty or has a control character",
                    "write it on one line, without control characters",
                )
            elif not pattern.match(name.text):
                hyphen = "" if pattern is VARIABLE else " or hyphens"
                yield self.finding(
                    name.span,
                    f"`{name.text}` cannot be {what}",
                    f"use letters, digits and underscores{hyphen}, beginning with a letter"
                    + (f": `{_corrected(name.text)}`" if _corrected(name.text) else ""),
                )


def _names(model: Model) -> Iterator[tuple[str, Scalar | None, re.Pattern[str]]]:
    metadata = model.playbook.metadata
    if metadata is not None:
        yield "the name of a playbook", metadata.name, ONE_LINE
        yield "the path of a playbook", metadata.path, ONE_LINE
    for credential in model.playbook.keychain or ():
        yield "a keychain name", credential.name, WORD
        yield "the kind of a credential", credential.kind, ONE_LINE
    for step in model.steps:
        yield "a step name", step.step, STEP_NAME
        for loop in step.loops:
            yield "an iterator", loop.iterator, VARIABLE
    for view in model.tasks:
        yield "a task label", view.task.label, LABEL
    for task in model.playbook.shared_tasks:
        yield "a workbook task name", task.name, WORD


def _corrected(name: str) -> str:
    corrected = re.sub(r"\W+", "_", name).strip("_")
    return corrected if VARIABLE.match(corrected) else ""
