from noetlc.analysis.inputs import rewrite, typed_tasks
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity, migration_fix
from noetlc.syntax.nodes import Scalar
from noetlvm.language.tool_kinds import ToolKind
from noetlvm.nearest import nearest


class UnknownSetting(Rule):
    severity = Severity.WARNING
    summary = "The `spec` of a task has a key that its tool does not have."
    why = (
        "The tool ignores the key, so a misspelt time limit is not applied. The `spec` of a step or of the executor "
        "may have keys for other tool kinds. This is an error if the key is similar to a known one."
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
            if kind.runs_on == "compiler" or not kind.settings or not view.task.spec:
                continue  # the spec of a workbook call is for the tasks that take its place
            for entry in view.task.spec.extra:
                if kind.setting(entry.key.text) is None:
                    yield self._unknown(kind, entry.key)

        for respelling in model.respellings:
            if respelling.is_misplaced:
                message = f"`{respelling.canonical}` is an input, not a setting"
                help = "it is an input: move it out of `spec`"
                yield self.finding(respelling.span, message, help, fix=migration_fix(model))

    def _unknown(self, kind: ToolKind, key: Scalar) -> Finding:
        known = [setting.name for setting in kind.settings]
        meant = nearest(key.text, known)
        message = f"`{kind.name}` has no setting `{key.text}`"
        if meant:
            help = f"did you mean `{meant}`?"
            return self.finding(key.span, message, help, fix=rewrite(key, meant), severity=Severity.ERROR)
        return self.finding(key.span, message, f"`{kind.name}` has " + ", ".join(f"`{name}`" for name in known))
