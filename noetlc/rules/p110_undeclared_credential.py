"""P110: a credential is used that the keychain does not declare."""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetlc.analysis.model import Model
from noetlc.finding import Finding, Severity
from noetlc.rules.rule import Rule
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.span import Span
from noetlc.syntax.template_ast import Const, Getattr, Getitem, Name, walk
from noetlvm.nearest import did_you_mean


class UndeclaredCredential(Rule):
    code = "P110"
    name = "undeclared-credential"
    severity = Severity.ERROR
    stops_compiler = False
    summary = "`auth` or `keychain.<name>` uses a credential that `keychain` does not declare."
    why = (
        "Credentials are resolved before the first step, from the declarations at the root. One that is not declared "
        "is not there when the task needs it."
    )
    bad = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: {name: load, path: demo/load}
    keychain:
      - {name: pg_main, kind: postgres_credential}
    workflow:
      - step: start
        tool:
          - save: {kind: postgres, auth: pg_man, command: "SELECT 1"}
          - check: {kind: postgres, auth: pg_main, command: "SELECT 1"}
    """
    good = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: {name: load, path: demo/load}
    keychain:
      - {name: pg_main, kind: postgres_credential}
    workflow:
      - step: start
        tool:
          - save: {kind: postgres, auth: pg_main, command: "SELECT 1"}
    """
    covers = ("brief §2.2", "step spec §2.1", "S44")

    def check(self, model: Model) -> Iterator[Finding]:
        if any((problem.object, problem.key) == ("playbook", "keychain") for problem in model.problems):
            return  # a keychain that cannot be read is reported as such
        for span, name in _uses(model):
            if name not in model.credentials:
                yield self.finding(
                    span,
                    f"the keychain has no entry `{name}`",
                    did_you_mean(name, model.credentials) or f"declare it: `keychain: [{{name: {name}, kind: …}}]`",
                )


_WORKLOAD = re.compile(r"\{\{-?\s*(?:workload\.)?(\w+)\s*-?\}\}\s*")


def workload_default(model: Model, template: str) -> object:
    """Return the default of the workload key that a template consists of; None if there is none that is plain."""
    match = _WORKLOAD.fullmatch(template)
    workload = model.playbook.workload
    entry = workload.get(match[1]) if match and workload else None
    return entry.value if isinstance(entry, Scalar) and not entry.is_template else None


def _uses(model: Model) -> Iterator[tuple[Span, str]]:
    for view in model.tasks:
        auth = view.task.get_extra("auth")
        if isinstance(auth, Scalar) and isinstance(auth.value, str):
            name = workload_default(model, auth.text) if auth.is_template else auth.value
            if isinstance(name, str) and name:
                yield auth.span, name
    for site, template in model.template_sites:
        if "keychain" not in template.text:
            continue
        for node in walk(template):
            match node:
                case Getattr(node=Name(name="keychain"), name=name):
                    yield model.place(site, node.name_span), name
                case Getitem(node=Name(name="keychain"), index=Const(value=str(name))):
                    yield model.place(site, node.index.span), name
