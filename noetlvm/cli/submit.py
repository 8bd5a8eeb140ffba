"""`noetlvm submit` and `noetlvm wait`: an execution on a server, watched as `noetlvm run` shows one of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from noetlvm.cli.drive import exit_code, print_ending
from noetlvm.cli.remote import remote_client
from noetlvm.cli.request import (
    CtxFile,
    EndingJson,
    PayloadFile,
    Quiet,
    ServerUrl,
    SetValues,
    TokenFile,
    first_ctx,
    request_payload,
)
from noetlvm.cli.run import bundle_of, folder_of, note_unknown_keys
from noetlvm.cli.show import standing
from noetlvm.cli.view import view_for
from noetlvm.client.calls import ServiceError
from noetlvm.client.reader import RemoteReader
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import SUCCESS, CommandError

if TYPE_CHECKING:
    from noetlvm.client.client import Client
    from noetlvm.machine.loaded import Bundle
    from noetlvm.store.interface import StoreReader

_SUFFIXES = (".yaml", ".yml", ".nbc")
"""A name with one of these endings is a file's, whether it exists or not."""


def submit(
    playbooks: Annotated[
        list[str],
        Argument(
            metavar="FILE...|PATH",
            help="A bundle (.nbc); a playbook, followed by its children; or the path of a registered playbook.",
        ),
    ],
    set: SetValues = None,
    payload: PayloadFile = None,
    ctx: CtxFile = None,
    version: Annotated[int | None, Option(min=1, metavar="N", help="Version of a registered playbook.")] = None,
    key: Annotated[
        str | None,
        Option(metavar="KEY", help="Idempotency key: the execution starts once, however often it is submitted."),
    ] = None,
    server: ServerUrl = None,
    token_file: TokenFile = None,
    detach: Annotated[bool, Option("--detach", help="Do not wait for the end.")] = False,
    as_json: EndingJson = False,
    quiet: Quiet = False,
) -> int:
    """Run a playbook on a server and wait for its end. The exit codes are those of `noetlvm run`.

    Examples: noetlvm submit etl.yaml --set day=2024-05-01, noetlvm submit main.yaml child.yaml, noetlvm submit
    etl/daily --detach --json
    """
    workload, initial_ctx = request_payload(payload, set or ()), first_ctx(ctx)
    bundle = None if _is_registered_path(playbooks) else bundle_of(playbooks, quiet=quiet)
    if bundle is not None and not quiet:
        note_unknown_keys(bundle, workload)
    with remote_client(server, token_file) as client:
        id = refusing(
            client.start,
            playbooks[0] if bundle is None else None,
            version=version if bundle is None else None,
            bundle=None if bundle is None else registered(client, bundle),
            payload=workload,
            ctx=initial_ctx,
            key=key,
        )
        if detach:
            print(json.dumps({"execution_id": id}) if as_json else id)
            return SUCCESS
        folder = None if bundle is None else folder_of(playbooks)
        return watch(client, id, as_json=as_json, quiet=quiet, folder=folder)


def _is_registered_path(words: Sequence[str]) -> bool:
    """Return whether a request names a registered playbook, and no files."""
    return len(words) == 1 and not words[0].endswith(_SUFFIXES) and not Path(words[0]).is_file()


def registered(client: Client, bundle: Bundle) -> str:
    return str(refusing(client.register, bundle.data)["bundle"])


def refusing(call: Any, *arguments: Any, **options: Any) -> Any:
    """Call something; what the server refuses is an error of the command."""
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
    reader = RemoteReader(client)
    row = client.patiently(lambda: reader.row(id))
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
    ending = client.patiently(lambda: standing(stored, reader.row(row.execution_id)))
    print_ending(stored, ending, folder, "", as_json=as_json, quiet=quiet)
    return exit_code([ending])
