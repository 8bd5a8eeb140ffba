"""`kind: secrets`: reads a secret while the playbook runs, for one that the keychain cannot know beforehand."""

from __future__ import annotations

from noetlvm.tools.kind import Input, ToolKind, time_limit

KIND = ToolKind(
    name="secrets",
    summary="Reads one secret from a provider at run time. Prefer `keychain` for what is known beforehand.",
    example="""\
kind: secrets
provider: file
secret: tenants/acme/token
""",
    result="the secret's value; it counts as a secret wherever it goes",
    inputs=(
        # Not `name`: that is the task's label (S5).
        Input("secret", ("string",), "Name or path of the secret, as its provider knows it.", required=True),
        Input(
            "provider",
            ("string",),
            "Where to look: `environment`, `file`, `command` or a plugin's.",
            default="environment",
        ),
        Input("version", ("string", "integer"), "Version of the secret; the newest if absent."),
    ),
    settings=(time_limit(30),),
    takes_auth=True,
    gives_secret=True,
    instead={"key": "write `secret`", "path": "write `secret`", "secret_name": "write `secret`"},
)
