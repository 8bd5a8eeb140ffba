"""Which server a command works with: `--server` and the environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from noetlvm.command_line.process import CommandError

if TYPE_CHECKING:
    from noetlvm.client.client import Client

SERVER, TOKEN = "NOETLVM_SERVER", "NOETLVM_TOKEN"


def uses_server(db: str | None, server: str | None) -> bool:
    """Return whether a command works with a server: one is named, or the environment names one and no database is."""
    return server is not None or (db is None and bool(os.environ.get(SERVER)))


def server_and_token(server: str | None, token_file: str | None) -> tuple[str, str]:
    """Return the URL and the token that were given or are in the environment. Raises CommandError."""
    url = server or os.environ.get(SERVER)
    if not url:
        raise CommandError(f"which server? Give --server URL, or set {SERVER}")
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"`{url}` is not the URL of a server: it must begin with http:// or https://")
    return url, _token(token_file)


def _token(file: str | None) -> str:
    if file is not None:
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise CommandError(f"cannot read the token in {file}: {error.strerror}") from None
    token = os.environ.get(TOKEN, "").strip()
    if not token:
        raise CommandError(f"a token is needed: set {TOKEN}, or give --token-file; `noetlvm token create` makes one")
    return token


def remote_client(server: str | None, token_file: str | None) -> Client:
    from noetlvm.client.client import Client

    return Client(*server_and_token(server, token_file))
