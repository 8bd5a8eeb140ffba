from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast
from noetlc.syntax.nodes import Scalar
from noetlvm.language.keychain import (
    ENTRY_POINT_GROUP,
    FORMS,
    PLUGIN_KINDS,
    PROVIDERS,
    is_form,
    is_provided,
    is_provider,
)
from noetlvm.nearest import did_you_mean


class UnprovidedCredential(Rule):
    severity = Severity.WARNING
    summary = "The `kind` or `provider` of a keychain entry is unknown."
    why = (
        "Every entry is looked up before the first step. If no plugin of that name is installed, the request is "
        "refused."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
      keychain:
    -   - {name: api, kind: oauth2}
    +   - {name: api, kind: bearer_token}
      workflow:
        - step: start
          tool:
            - get: {kind: http, url: "https://example.com", auth: api}
    """
    covers = ("S44",)

    def check(self, model: Model) -> Findings:
        for entry in model.playbook.keychain or ():
            kind, provider = entry.kind, entry.get_extra("provider")
            if kind is None or not isinstance(kind.value, str):
                continue
            if not is_provided(kind.text):
                use = PLUGIN_KINDS.get(kind.text)
                what = f"needs a plugin for {use}, which is not installed" if use else "has no provider"
                meant = "" if use else did_you_mean(kind.text, [*FORMS, *PROVIDERS])
                message = f"the keychain kind `{kind.text}` {what}"
                yield self.finding(kind.span, message, meant or _help(entry, kind.text))
            elif is_form(kind.text) and isinstance(provider, Scalar) and not is_provider(provider.text):
                message = f"there is no keychain provider `{provider.text}`"
                meant = did_you_mean(provider.text, PROVIDERS)
                yield self.finding(provider.span, message, meant or _help(entry, provider.text))


def _help(entry: ast.Credential, provider: str) -> str:
    name = entry.name.text if entry.name else "NAME"
    return (
        f"install a package with the entry point `{provider}` in `{ENTRY_POINT_GROUP}`, "
        f"or give the secret to the run: `--keychain {name}=env:VARIABLE`"
    )
