"""`noetlvm wait`."""

from __future__ import annotations

from noetlvm.cli.remote import remote_client
from noetlvm.cli.request import EndingJson, OneExecution, Quiet, ServerUrl, TokenFile
from noetlvm.cli.submit import watch


def wait(
    execution: OneExecution,
    server: ServerUrl = None,
    token_file: TokenFile = None,
    as_json: EndingJson = False,
    quiet: Quiet = False,
) -> int:
    """Wait for the end of an execution on a server. The exit codes are those of `noetlvm run`.

    Example: noetlvm wait 0190f3c2 --json
    """
    with remote_client(server, token_file) as client:
        return watch(client, execution, as_json=as_json, quiet=quiet)
