from noetlc.rules.rule import Findings, Model, Rule, Severity, migration_fix
from noetlvm.language.tool_kinds import SPEC


class KnobOutsideSpec(Rule):
    severity = Severity.WARNING
    summary = "A setting of a task stands beside its inputs instead of in its `spec`."
    why = (
        "All settings that say how a task runs are in `spec`, so that a step or the executor can set them for all "
        "tasks. Beside the inputs it is read too, but another implementation may take it for an input."
    )
    example = """
      - step: fetch
        tool:
    -     - get: {kind: http, url: "https://example.com", timeout: 5}
    +     - get: {kind: http, url: "https://example.com", spec: {timeout: 5}}
    """
    covers = ("S90", "brief §1.2")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        for item in model.respellings:
            if item.is_knob:
                message = f"`{item.written}` is a setting, not an input"
                help = f"write it as `spec: {{{item.canonical.removeprefix(SPEC)}: …}}`"
                yield self.finding(item.span, message, help, fix=migration_fix(model))
