from noetlc.analysis.inputs import rewrite, typed_tasks
from noetlc.analysis.spec_keys import nearby_place, other_place, place_of_word
from noetlc.rules.rule import Findings, Model, Rule, Severity, migration_fix
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar
from noetlvm.language.tool_kinds import NO_TIME_KIND, ToolKind
from noetlvm.nearest import nearest


class UnknownSetting(Rule):
    severity = Severity.WARNING
    summary = "The `spec` of a task has a key that its tool does not have."
    why = (
        "The tool ignores the key, so a misspelt time limit is not applied. The `spec` of a step or of the executor "
        "may have keys for other tool kinds. This is an error if the key belongs elsewhere or is similar to a known "
        "one."
    )
    example = """
      - step: fetch
        tool:
    -     - get: {kind: http, url: "https://example.com", spec: {timeuot: 5}}
    +     - get: {kind: http, url: "https://example.com", spec: {timeout: 5}}
    """
    covers = ("S6", "S38", "S63")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for view, kind in typed_tasks(model):
            spec = view.task.spec
            for entry in spec.extra if spec else ():
                if kind.setting(entry.key.text) is None:
                    yield from self._unknown(kind, entry.key, has_policy=bool(spec and spec.policy))

        for respelling in model.respellings:
            if respelling.is_misplaced:
                message = f"`{respelling.canonical}` is an input, not a setting"
                help = "it is an input: move it out of `spec`"
                yield self.finding(respelling.span, message, help, fix=migration_fix(model))

    def _unknown(self, kind: ToolKind, key: Scalar, *, has_policy: bool) -> Findings:
        settings = [setting.name for setting in kind.settings]
        message = f"`{kind.name}` has no setting `{key.text}`"
        is_certain = _declares_all(kind)
        meant = nearest(key.text, settings if has_policy else [*settings, "policy"])
        near = nearby_place(key.text, ast.TaskSpec) or place_of_word(key.text)
        if place := near or (not meant and is_certain and other_place(key.text)):
            yield self.finding(key.span, message, f"write it as {place}", severity=Severity.ERROR)
        elif meant:
            fix = rewrite(key, meant)
            yield self.finding(key.span, message, f"did you mean `{meant}`?", fix=fix, severity=Severity.ERROR)
        elif is_certain:
            listed = ", ".join(f"`{name}`" for name in settings) or "none"
            yield self.finding(key.span, message, f"`{kind.name}` has {listed}")


def _declares_all(kind: ToolKind) -> bool:
    """False if the key may be a setting: of the tasks that replace a call of the workbook, or of an open plugin."""
    return kind.name == NO_TIME_KIND or (kind.runs_on != "compiler" and bool(kind.settings))
