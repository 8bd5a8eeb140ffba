"""`kind: secrets`: reads a secret while the playbook runs, if its name is not known before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noetlvm.keychain.resolve import MissingEntryError, look_up
from noetlvm.language.tool_kinds import Input, ToolKind, time_limit
from noetlvm.tools.call import Outcome, ToolCall, error, ok

if TYPE_CHECKING:
    from noetlvm.tools.call import Resources

KIND = ToolKind(
    name="secrets",
    summary="Reads one secret from a provider at run time. Prefer `keychain` if its name is known before the run.",
    example="""\
kind: secrets
provider: file
secret: tenants/acme/token
""",
    result="the value of the secret; it is masked like any other secret",
    inputs=(
        # Not `name`: that is the task's label (S5).
        Input("secret", ("string",), "Name or path of the secret in its provider.", required=True),
        Input(
            "provider",
            ("string",),
            "`environment`, `file`, `command`, or the name of a plugin.",
            default="environment",
        ),
        Input("version", ("string", "integer"), "Version of the secret; the newest if absent."),
    ),
    settings=(time_limit(30),),
    takes_auth=True,
    gives_secret=True,
    spellings={"key": "secret", "path": "secret", "secret_name": "secret", "timeout": "spec.timeout"},
)


async def run(call: ToolCall, resources: Resources) -> Outcome:
    """Call the provider in a thread: it may read a file or run a program."""
    import asyncio

    inputs = call.inputs
    version = str(inputs["version"]) if "version" in inputs else None
    try:
        return ok(await asyncio.to_thread(look_up, inputs["provider"], inputs["secret"], resources.keychain, version))
    except MissingEntryError as missing:
        return error("secrets", str(missing))
