"""`kind: secrets`: reads a secret while the playbook runs, for one that the keychain cannot know beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlvm.language.tool_kind import Input, ToolKind, time_limit
from noetlvm.tools.call import Outcome, ToolCall, error, ok

if TYPE_CHECKING:
    from noetlvm.tools.kept import Kept

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


async def run(call: ToolCall, kept: Kept) -> Outcome:
    """Ask the provider, in a thread: it may read a file or run a program."""
    import asyncio

    from noetlvm.keychain.resolve import MissingEntry, look_up

    inputs = call.inputs
    version = str(inputs["version"]) if "version" in inputs else None
    try:
        return ok(await asyncio.to_thread(look_up, inputs["provider"], inputs["secret"], kept.keychain, version))
    except MissingEntry as missing:
        return error("secrets", str(missing))
