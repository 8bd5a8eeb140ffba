from collections.abc import Iterator

from noetlc.analysis.credentials import entries_read
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax.nodes import Mapping, Node, Scalar, scalars

_NAMING = ("auth", "attach", "credential", "credentials")
"""Inputs that name keychain entries."""


class UnusedCredential(Rule):
    severity = Severity.WARNING
    summary = "No task uses a declared keychain entry."
    why = (
        "Every entry is resolved before the first step. An unused entry can still fail the request, and gives the "
        "playbook a secret that it does not need."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
      keychain:
        - {name: pg_main, kind: postgres_credential}
    -   - {name: pg_old, kind: postgres_credential}
      workflow:
        - step: start
          tool:
            - check: {kind: postgres, auth: pg_main, command: "SELECT 1"}
    """
    covers = ("S44", "brief §2.1", "step spec §2.1")

    def check(self, model: Model) -> Findings:
        used = _used(model) if model.credentials else None
        if used is None:
            return
        unknown = sorted(used - model.credentials.keys())
        used |= {model.suggestions.nearest(name, model.credentials) for name in unknown}  # P110 suggests that one
        for name, credential in model.credentials.items():
            if name not in used and credential.name:
                yield self.finding(
                    credential.name.span,
                    f"nothing uses the credential `{name}`",
                    f"remove the entry, or use it: `auth: {name}`",
                )


def _used(model: Model) -> set[str] | None:
    """Return the names of the credentials that are used; None if any may be, because one is chosen at run time."""
    used: set[str] = set()
    for scalar in _auths(model):
        if scalar.is_template:
            return None
        used.add(scalar.text)
    for reading in model.readings:
        for use in reading.names.uses:
            if use.name != "keychain":
                continue
            if not use.fields:
                return None
            used.add(use.fields[0].name)
    return used.union(name for _, name in entries_read(model))


def _auths(model: Model) -> Iterator[Scalar]:
    """Yield everything written under a word for credentials, wherever it stands: no such entry is unused."""
    for mapping in {id(mapping): mapping for mapping in model.mappings_by_key.values()}.values():
        for entry in mapping.entries:
            if entry.key.text in _NAMING:
                yield from scalars(entry.value)
                yield from _keys(entry.value)


def _keys(node: Node) -> Iterator[Scalar]:
    """Yield the keys of mappings: in `auth: {api_token: {type: bearer}}` the first one names the entry."""
    for entry in node.entries if isinstance(node, Mapping) else ():
        yield entry.key
        yield from _keys(entry.value)
