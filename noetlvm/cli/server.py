"""`noetlvm server`."""

from __future__ import annotations

import json
from typing import Annotated

from noetlvm.cli.request import Json, Keychain
from noetlvm.command_line.declared import Option
from noetlvm.rounds.credentials import resolver
from noetlvm.service.process import log_to_stderr, serve


def server(
    store: Annotated[str, Option(metavar="STORE", help="sqlite:FILE or postgresql://USER@HOST/DATABASE.")],
    listen: Annotated[
        str, Option(metavar="HOST:PORT", help="Address to listen on; port 0 selects a free port.")
    ] = "127.0.0.1:8080",
    wake: Annotated[
        str | None, Option(metavar="nats://…", help="NATS server for wake-ups. [default: PostgreSQL NOTIFY, or none]")
    ] = None,
    lease: Annotated[
        int,
        Option(min=1, metavar="SECONDS", help="Seconds after which another worker takes over from a silent one."),
    ] = 15,
    results: Annotated[
        list[str] | None,
        Option(
            "--results",
            metavar="STORE",
            help="Another store of large results that playbooks may choose: files:FOLDER or nats://HOST:PORT/BUCKET; "
            "repeatable.",
        ),
    ] = None,
    keychain: Keychain = None,
    log_level: Annotated[str, Option(metavar="LEVEL", help="debug, info, warning or error.")] = "info",
    as_json: Json = False,
) -> int:
    """Serve the HTTP API and decide for executions; workers run their tasks.

    With --json it prints an object with the URL as soon as it is ready. Create a token first:
    `noetlvm token create --store STORE --scope admin`.

    Examples: noetlvm server --store sqlite:noetl.db, noetlvm server --store postgresql://noetl@db/noetl --listen
    0.0.0.0:8080
    """

    def ready(url: str) -> None:
        print(json.dumps({"url": url}) if as_json else f"noetlvm serves {store} on {url}", flush=True)

    log_to_stderr(log_level)
    return serve(
        store,
        listen,
        resolver(tuple(keychain or ())),
        wake=wake,
        on_ready=ready,
        lease_seconds=lease,
        results=results or (),
    )
