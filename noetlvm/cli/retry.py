"""`noetlvm retry`: runs the failed steps of a failed execution again, as a new execution."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from noetlvm.cli.database import find_execution, options_given, reading
from noetlvm.cli.drive import RunOptions, drive
from noetlvm.cli.remote import remote_client, uses_server
from noetlvm.cli.request import (
    Database,
    Durability,
    DurabilityLevel,
    EndingJson,
    Keychain,
    MaxParallel,
    OneExecution,
    Quiet,
    ServerUrl,
    TokenFile,
)
from noetlvm.cli.run import bundle_of
from noetlvm.command_line.declared import Option
from noetlvm.command_line.process import SUCCESS, CommandError

if TYPE_CHECKING:
    from noetlvm.client.client import Client


def retry(
    execution: OneExecution,
    bundle: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Bundle (.nbc) or edited playbook to continue with; it must make the same decisions so far.",
        ),
    ] = None,
    keychain: Keychain = None,
    db: Database = None,
    server: ServerUrl = None,
    token_file: TokenFile = None,
    detach: Annotated[bool, Option("--detach", help="On a server: do not wait for the end.")] = False,
    max_parallel: MaxParallel = None,
    durability: Durability = DurabilityLevel.FULL,
    as_json: EndingJson = False,
    quiet: Quiet = False,
) -> int:
    """Run the failed steps of a failed execution again, as a new execution.

    The new log begins with the whole log of the failed execution: steps that succeeded do not run again, and `ctx` and
    results are unchanged. With an edited playbook the failed steps run its tasks; its other decisions must be the same.
    The exit codes are those of `noetlvm run`.

    Examples: noetlvm retry 0190f3c2, noetlvm retry 0190f3c2 --bundle corrected.yaml --json
    """
    if uses_server(db, server):
        with remote_client(server, token_file) as client:
            return _retry_remotely(client, execution, bundle, detach=detach, as_json=as_json, quiet=quiet)
    if detach:
        raise CommandError("--detach needs a server, which runs the execution; see --server")
    options = RunOptions.of(db, durability, max_parallel, keychain, as_json=as_json, quiet=quiet)
    other = bundle_of([bundle], quiet=quiet) if bundle else None
    with reading(str(options.database)) as reader:
        row = find_execution(reader, execution, options_given(db))
    folder = Path(bundle).parent if bundle else None
    return drive(options, lambda engine: [engine.retry(row.execution_id, other)], folder)


def _retry_remotely(
    client: Client, execution: str, file: str | None, *, detach: bool, as_json: bool, quiet: bool
) -> int:
    from noetlvm.cli.submit import refusing, registered, watch

    bundle = registered(client, bundle_of([file], quiet=quiet)) if file else None
    failed = refusing(client.execution, execution)
    id = refusing(client.retry, failed["execution_id"], bundle=bundle)
    if detach:
        print(json.dumps({"execution_id": id}) if as_json else id)
        return SUCCESS
    folder = Path(file).parent if file else None
    return watch(client, id, as_json=as_json, quiet=quiet, folder=folder, after=failed["event_count"])
