from noetlc.rules.rule import Edit, Findings, Fix, Model, Rule, Severity
from noetlc.syntax import ast
from noetlvm.nearest import nearest

KIND = "Playbook"


def is_other_document(playbook: ast.Playbook) -> bool:
    """Return whether a document declares another kind than a playbook, and has no workflow."""
    kind = playbook.kind
    return kind is not None and playbook.workflow is None and not nearest(kind.text, (KIND,))


class DocumentKind(Rule):
    severity = Severity.ERROR
    stops_compiler = False
    summary = "`kind` is not `Playbook`."
    why = "Catalogues and tools recognise a playbook by its kind, and skip files with another kind."
    example = """
      apiVersion: noetl.io/v2
    - kind: playbook
    + kind: Playbook
      metadata: {name: load, path: demo/load}
      workflow:
        - step: start
          tool: {kind: noop}
    """
    covers = ("formal §2.1", "S2")
    on_damaged = True

    def check(self, model: Model) -> Findings:
        kind = model.playbook.kind
        if kind and is_other_document(model.playbook):
            help = f"a playbook has `kind: {KIND}`; when lint searches a folder, it skips documents of other kinds"
            yield self.finding(kind.span, f"this document is a `{kind.text}`, not a playbook", help)
        elif kind and kind.text != KIND:
            fix = Fix(f"write `{KIND}`", (Edit(kind.span, KIND),), safe=False)
            yield self.finding(
                kind.span, f"`kind` must be `{KIND}`, not `{kind.text}`", f"write `kind: {KIND}`", fix=fix
            )
