"""`noetlvm submit` and `noetlvm wait`: an execution on a server, watched as `noetlvm run` shows one of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from noetlvm.cli.request import EndingJson, Quiet, ServerUrl, TokenFile, first_ctx, request_payload
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import SUCCESS, CommandError

if TYPE_CHECKING:
    from noetlvm.client.client import Client
    from noetlvm.store.interface import StoreReader


def submit(
    playbook: Annotated[str, Argument(metavar="FILE|PATH", help="A playbook or bundle; or a registered playbook.")],
    set: Annotated[
        list[str] | None, Option("--set", metavar="KEY=VALUE", help="Set a value of the workload; repeatable.")
    ] = None,
    payload: Annotated[
        str | None, Option(metavar="FILE", help="JSON or YAML that is merged over the workload.")
    ] = None,
    ctx: Annotated[
        str | None, Option(metavar="FILE", help="JSON or YAML that ctx begins with, instead of empty.")
    ] = None,
    version: Annotated[int | None, Option(min=1, metavar="N", help="Version of a registered playbook.")] = None,
    key: Annotated[str | None, Option(metavar="KEY", help="Starts once, however often it is submitted.")] = None,
    server: ServerUrl = None,
    token_file: TokenFile = None,
    detach: Annotated[bool, Option("--detach", help="Do not wait for its end.")] = False,
    as_json: EndingJson = False,
    quiet: Quiet = False,
) -> int:
    """Run a playbook on a server, and wait for its end. Exit codes as of `noetlvm run`.

    Examples: noetlvm submit etl.yaml --set day=2024-05-01, noetlvm submit etl/daily --detach --json
    """
    from noetlvm.cli.remote import remote_client

    with remote_client(server, token_file) as client:
        bundle = registered(client, playbook, as_json or quiet)
        id = refusing(
            client.start,
            None if bundle else playbook,
            version=None if bundle else version,
            bundle=bundle,
            payload=request_payload(payload, set or ()),
            ctx=first_ctx(ctx),
            key=key,
        )
        if detach:
            print(json.dumps({"execution_id": id}) if as_json else id)
            return SUCCESS
        folder = Path(playbook).parent if bundle else None
        return watch(client, id, as_json=as_json, quiet=quiet, folder=folder)


def registered(client: Client, playbook: str, is_quiet: bool) -> str | None:
    """Register a file and return the bundle that it became; None if the name is that of a registered playbook."""
    from noetlvm.client.calls import ServiceError

    file = Path(playbook)
    if not file.is_file():
        return None
    try:
        answer = client.register(file.read_bytes())
    except ServiceError as error:
        for row in error.diagnostics:
            print(finding_line(playbook, row), file=sys.stderr)
        raise CommandError(str(error)) from None
    for row in () if is_quiet else answer["diagnostics"]:
        print(finding_line(playbook, row), file=sys.stderr)
    return str(answer["bundle"])


def finding_line(file: str, row: dict[str, Any]) -> str:
    """Return a finding of the server on one line."""
    return f"{file}:{row['line']}:{row['column']}: {row['severity']}[{row['code']}]: {row['message']}"


def refusing(call: Any, *arguments: Any, **options: Any) -> Any:
    """Call something; what the server refuses is an error of the command."""
    from noetlvm.client.calls import ServiceError

    try:
        return call(*arguments, **options)
    except ServiceError as error:
        raise CommandError(str(error)) from None


def watch(client: Client, id: str, *, as_json: bool, quiet: bool, folder: Path | None = None, after: int = 0) -> int:
    """Show an execution as `noetlvm run` does until it ends, print its ending, and return the exit code.

    `after` is the number of the last event that is not shown. `folder` is where the playbook's files are, if known.
    """
    return int(refusing(_watched, client, id, after, folder, as_json=as_json, quiet=quiet))


def _watched(client: Client, id: str, after: int, folder: Path | None, *, as_json: bool, quiet: bool) -> int:
    from noetlvm.cli.drive import exit_code, print_ending
    from noetlvm.cli.show import standing
    from noetlvm.cli.view import view_for
    from noetlvm.client.reader import RemoteReader

    reader = RemoteReader(client)
    row = reader.row(id)
    shows = not (quiet or as_json)
    with view_for(shows=shows) as view:
        # Without a view only the end counts, and one stream is enough.
        followed = (
            reader.follow_family(row, after)
            if shows
            else ((row, one) for one in reader.follow(row.execution_id, after))
        )
        for whose, recorded in followed:
            view.observe(whose, [recorded])
    stored = cast("StoreReader", reader)
    ending = standing(stored, reader.row(row.execution_id))
    print_ending(stored, ending, folder, "", as_json=as_json, quiet=quiet)
    return exit_code([ending])
