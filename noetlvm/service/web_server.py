"""The web server of one process: uvicorn, with our limits, and with an end for what clients wait for."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

from noetlvm.protocol.link import MESSAGE_BYTES_MAX
from noetlvm.service.access import TimedConnection

SHUTDOWN_SECONDS = 5
"""How long other requests may last after a signal."""


class WebServer(uvicorn.Server):
    """Reports when it accepts connections, and stops gracefully on a signal."""

    def __init__(self, app: FastAPI, on_ready: Callable[[], None], **options: Any) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            proxy_headers=False,  # nothing here depends on the address of a client
            ws="websockets-sansio",
            ws_max_size=MESSAGE_BYTES_MAX,
            http=TimedConnection,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            **options,
        )
        super().__init__(config)
        self._app = app
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop. Workers and watchers lose what they wait for here, and connect again elsewhere."""
        self._app.state.waits.stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        yield
