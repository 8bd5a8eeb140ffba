"""Reads the scripts that a playbook names, so that the bundle holds their text: files, and web addresses.

Every read is bounded in size and time, and follows no redirect to anything but http(s). What cannot be read here is
left to the worker, whose network and disk may have it.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING
from urllib import request

from noetlc.files import read_bounded

if TYPE_CHECKING:
    from http.client import HTTPResponse

SCRIPT_BYTES_MAX = 1024 * 1024
"""A longer script is left to the worker, which refuses it."""
WEB_SECONDS_MAX = 10.0
"""For the whole of one script."""
_PIECE = 64 * 1024


def read_script(playbook: str, address: str) -> str | None:
    """Return a script at a web address, beside its playbook, or else below the working folder; None: it is not here."""
    if "://" in address:
        return _web_text(address)
    for folder in (Path(playbook).parent, Path()):
        try:
            return _text(read_bounded(str(folder / address), SCRIPT_BYTES_MAX))
        except OSError:
            continue
    return None


def _text(data: bytes) -> str | None:
    try:
        return data.decode("utf-8-sig") if len(data) <= SCRIPT_BYTES_MAX else None
    except UnicodeDecodeError:
        return None


def _web_text(url: str) -> str | None:
    from http.client import HTTPException

    opener = request.OpenerDirector()  # the usual one also opens files and FTP, and redirects could lead there
    for handler in (
        request.ProxyHandler,
        request.HTTPHandler,
        request.HTTPSHandler,
        request.HTTPRedirectHandler,
        request.HTTPDefaultErrorHandler,
        request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    try:
        response = opener.open(url, timeout=WEB_SECONDS_MAX)
        if response is None:  # no handler for this scheme
            return None
        with response:
            data = _read_in_time(response)
    except (OSError, HTTPException, ValueError):
        return None
    return None if data is None else _text(data)


def _read_in_time(response: HTTPResponse) -> bytes | None:
    """Return the body, or None if it is cut off or takes too long: a socket's limit starts again with every byte."""
    until, data = monotonic() + WEB_SECONDS_MAX, b""
    while len(data) <= SCRIPT_BYTES_MAX:
        piece = response.read1(_PIECE)
        if not piece:
            return None if response.length else data
        data += piece
        if monotonic() > until:
            return None
    return data
