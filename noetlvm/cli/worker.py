"""`noetlvm worker`."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import uuid
from collections.abc import Callable
from typing import Annotated

from noetlvm.cli.drive import records_inputs
from noetlvm.cli.remote import server_and_token
from noetlvm.cli.request import Keychain, ServerUrl, TokenFile
from noetlvm.command_line.declared import Option
from noetlvm.command_line.process import SUCCESS, CommandError
from noetlvm.language.placement import DEFAULT_POOL
from noetlvm.protocol.link import RefusedError, WebSocketLink
from noetlvm.service.process import log_to_stderr
from noetlvm.tools.runner import ToolRunner, missing_packages
from noetlvm.worker.remote_worker import RemoteWorker


def worker(
    server: ServerUrl = None,
    token_file: TokenFile = None,
    pool: Annotated[
        list[str] | None, Option("--pool", metavar="NAME", help="Pool to serve; repeatable. [default: default]")
    ] = None,
    slots: Annotated[int, Option(min=1, metavar="N", help="Number of pipelines that run at once.")] = 4,
    keychain: Keychain = None,
    log_level: Annotated[str, Option(metavar="LEVEL", help="debug, info, warning or error.")] = "info",
) -> int:
    """Run the tasks of a server's executions.

    It needs no port and no database. On SIGTERM it takes no new work and exits when the running tasks have ended. Give
    the token, with the scope `worker`, in NOETLVM_TOKEN or in a file.

    Example: NOETLVM_TOKEN=… noetlvm worker --server http://127.0.0.1:8080 --slots 8
    """
    log_to_stderr(log_level)
    url, token = server_and_token(server, token_file)

    async def run() -> None:
        tools = ToolRunner(tuple(keychain or ()))
        pools = tuple(pool or (DEFAULT_POOL,))
        remote = RemoteWorker(
            WebSocketLink(url, token),
            tools,
            id=uuid.uuid4().hex,
            pools=pools,
            slots=slots,
            missing=missing_packages,
            records_inputs=records_inputs(),
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, remote.drain)
        await remote.run()

    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with contextlib.suppress(ModuleNotFoundError):  # uvloop is not for every system
        from uvloop import new_event_loop

        loop_factory = new_event_loop
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(run())
    except RefusedError as error:
        raise CommandError(str(error)) from None
    return SUCCESS
