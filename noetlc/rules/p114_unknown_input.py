from noetlc.analysis.inputs import inputs, is_unknown, rewrite, typed_tasks
from noetlc.analysis.spec_keys import place_of_word
from noetlc.canon.spelling import RETRY
from noetlc.rules.p324_misplaced_patch import PATCHES
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity, migration_fix
from noetlc.syntax.nodes import Scalar
from noetlvm.language.tool_kinds import ToolKind
from noetlvm.nearest import nearest
from noetlvm.record import changed


class UnknownInput(Rule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "A task has an input that its tool does not have."
    why = (
        "The tool ignores the input, so a misspelt filter is not applied and a misspelt header is not sent. This is "
        "a warning if no input of the tool has a similar name."
    )
    example = """
      - step: fetch
        tool:
    -     - get: {kind: http, url: "https://example.com", hedaers: {accept: text/csv}}
    +     - get: {kind: http, url: "https://example.com", headers: {accept: text/csv}}
    """
    covers = ("S6",)
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for view, kind in typed_tasks(model):
            if kind.open:
                continue
            known = [item.name for item in kind.inputs] + (["auth"] if kind.takes_auth else [])
            given = {entry.key.text for entry in view.task.extra}
            absent = [name for name in known if name not in given]
            unknown = [entry.key for entry in inputs(view) if is_unknown(kind, entry.key.text)]
            found = [self._unknown(model, kind, key, known, absent) for key in unknown if key.text not in PATCHES]
            yield from _merged(kind, found)

    def _unknown(self, model: Model, kind: ToolKind, key: Scalar, known: list[str], absent: list[str]) -> Finding:
        meant = nearest(key.text, absent)
        missing = [item.name for item in kind.inputs if item.required and item.name in absent]
        severity = Severity.ERROR
        if kind.canonical(key.text) != key.text:
            help = f"it is another name of `{kind.canonical(key.text)}`, which is given too: remove one of them"
        elif key.text == "policy":
            help = "a policy is part of the task's `spec`: write `spec: {policy: …}`"
        elif key.text == RETRY:
            help = "a rule says when a task runs again: `spec: {policy: {rules: [{when: …, then: {do: retry, …}}, …]}}`"
            return self.finding(key.span, f"`{kind.name}` has no input `retry`", help, fix=migration_fix(model))
        elif key.text in kind.instead:
            help = kind.instead[key.text]
        elif kind.setting(key.text):
            help = f"`spec.{key.text}` is given too: remove one of them"
        elif place := place_of_word(key.text):
            return self.finding(key.span, f"`{kind.name}` has no input `{key.text}`", f"write it as {place}")
        elif meant:
            help = f"did you mean `{meant}`?"
        elif missing:
            help = f"`{kind.name}` needs `{missing[0]}`: is it meant?"
        else:
            severity = Severity.WARNING
            help = f"`{kind.name}` takes " + (", ".join(f"`{name}`" for name in known) or "no inputs")
        message = f"`{kind.name}` has no input `{key.text}`"
        return self.finding(key.span, message, help, severity=severity, fix=rewrite(key, meant))


def _merged(kind: ToolKind, found: list[Finding]) -> Findings:
    """Yield the errors, and all inputs of a task that are similar to none of its kind as one warning."""
    strange = [finding for finding in found if finding.severity is Severity.WARNING]
    yield from (finding for finding in found if finding.severity is not Severity.WARNING)
    if len(strange) > 1:
        first, *others = (finding.message.rpartition(" ")[2] for finding in strange)
        yield changed(strange[0], message=f"`{kind.name}` has no input {first}, nor {', '.join(others)}")
    else:
        yield from strange
