"""P114: an input that the tool does not have."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.inputs import inputs, typed_tasks
from noetlc.analysis.misnamed import rewrite
from noetlc.analysis.model import Model
from noetlc.finding import Finding, Severity
from noetlc.rules.rule import Rule
from noetlc.syntax.ast import Task
from noetlc.syntax.nodes import Scalar
from noetlvm.language.tool_kind import ToolKind
from noetlvm.nearest import nearest


class UnknownInput(Rule):
    code = "P114"
    name = "unknown-input"
    severity = Severity.ERROR
    stops_compiler = False
    summary = "A task gives an input that its tool does not have."
    why = "The tool never reads it: the filter that is not applied, the header that is not sent."
    bad = """
    - step: fetch
      tool:
        - get: {kind: http, url: "https://example.com", hedaers: {accept: text/csv}}
    """
    good = """
    - step: fetch
      tool:
        - get: {kind: http, url: "https://example.com", headers: {accept: text/csv}}
    """
    covers = ("S6",)
    on_damaged = True

    def check(self, model: Model) -> Iterator[Finding]:
        for view, kind in typed_tasks(model):
            if kind.open:
                continue
            for entry in inputs(view):
                name = entry.key.text
                is_known = kind.input(name) is not None or name in kind.spellings
                if not is_known and not (name == "auth" and kind.takes_auth):
                    yield self._unknown(kind, entry.key, view.task)

    def _unknown(self, kind: ToolKind, key: Scalar, task: Task) -> Finding:
        known = [item.name for item in kind.inputs] + (["auth"] if kind.takes_auth else [])
        meant = nearest(key.text, [name for name in known if task.get_extra(name) is None])
        if key.text in kind.instead:
            help = kind.instead[key.text]
        elif kind.setting(key.text):
            help = f"it is a setting: move it under `spec`, as `spec: {{{key.text}: …}}`"
        elif meant:
            help = f"did you mean `{meant}`?"
        else:
            help = f"`{kind.name}` takes " + (", ".join(f"`{name}`" for name in known) or "no inputs")
        return self.finding(key.span, f"`{kind.name}` has no input `{key.text}`", help, fix=rewrite(key, meant))
