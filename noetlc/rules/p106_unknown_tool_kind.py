from noetlc.analysis.inputs import rewrite
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity
from noetlc.syntax.nodes import Scalar
from noetlvm.language.tool_kinds import ENTRY_POINT_GROUP, PLUGIN_KINDS, find_kind, kind_names, why_unusable
from noetlvm.nearest import nearest

_LEFT_TO_OTHERS = frozenset({"sink"})
"""Kinds of the older dialect: their own rules explain what replaced them."""


class UnknownToolKind(Rule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "The `kind` of a task is not a known tool kind."
    why = (
        "No worker can run the task. Tool kinds are built in or come from installed packages. A kind that only your "
        "workers have can be allowed in the configuration (`tool-kinds`, or `allow-unknown-kinds = true`)."
    )
    example = """
      - step: fetch
        tool:
    -     - get: {kind: htpp, url: "https://example.com"}
    +     - get: {kind: http, url: "https://example.com"}
    """
    covers = ("formal §2.4", "formal §13")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        if model.allow_unknown_kinds:
            return
        for view in model.tasks:
            kind = view.task.kind
            if kind and kind.text not in model.allowed_kinds | _LEFT_TO_OTHERS and find_kind(kind.text) is None:
                yield self._unknown(model, kind)

    def _unknown(self, model: Model, kind: Scalar) -> Finding:
        names = [*kind_names(), *model.allowed_kinds]
        reason = why_unusable(kind.text)
        meant = nearest(kind.text, names)
        help = f"did you mean `{meant}`?" if meant else "known kinds: " + ", ".join(f"`{name}`" for name in names)
        if reason:
            help = f"a package provides it, but it cannot be loaded: {reason}"
        elif kind.text in PLUGIN_KINDS:
            message = (
                f"the tool kind `{kind.text}` needs a plugin for {PLUGIN_KINDS[kind.text]}, which is not installed"
            )
            help = f"install a package with the entry point `{kind.text}` in `{ENTRY_POINT_GROUP}` (docs/plugins.md)"
            return self.finding(kind.span, message, help, severity=Severity.WARNING)
        return self.finding(kind.span, f"there is no tool kind `{kind.text}`", help, fix=rewrite(kind, meant))
