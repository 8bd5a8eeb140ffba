"""P123: a keychain entry of a kind that nothing provides."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.analysis.model import Model
from noetlc.finding import Finding, Severity
from noetlc.rules.rule import Rule
from noetlvm.language.keychain_kinds import ENTRY_POINT_GROUP, FORMS, PLUGIN_KINDS, PROVIDERS, is_provided
from noetlvm.nearest import did_you_mean


class UnprovidedCredential(Rule):
    code = "P123"
    name = "unprovided-credential"
    severity = Severity.WARNING
    summary = "The kind of a keychain entry is no form of a secret, and no provider has that name."
    why = (
        "Every entry is looked up before the first step. Where no plugin of that name is installed, the request is "
        "refused."
    )
    bad = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: {name: load, path: demo/load}
    keychain:
      - {name: api, kind: oauth2}
    workflow:
      - step: start
        tool:
          - get: {kind: http, url: "https://example.com", auth: api}
    """
    good = """
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: {name: load, path: demo/load}
    keychain:
      - {name: api, kind: bearer_token}
    workflow:
      - step: start
        tool:
          - get: {kind: http, url: "https://example.com", auth: api}
    """
    covers = ("S44",)

    def check(self, model: Model) -> Iterator[Finding]:
        for entry in model.playbook.keychain or ():
            kind = entry.kind
            if kind is not None and isinstance(kind.value, str) and not is_provided(kind.text):
                use = PLUGIN_KINDS.get(kind.text)
                what = f"needs a plugin for {use}, which is not installed" if use else "has no provider"
                help = f"install a package with the entry point `{kind.text}` in `{ENTRY_POINT_GROUP}`"
                meant = "" if use else did_you_mean(kind.text, [*FORMS, *PROVIDERS])
                yield self.finding(kind.span, f"the keychain kind `{kind.text}` {what}", meant or help)
