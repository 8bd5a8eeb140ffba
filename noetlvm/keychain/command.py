"""`command`: secrets that a program prints. No shell reads the command; time and output are bounded.

The program's standard error is discarded, because it may quote the secret.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from noetlvm.keychain.source import ProviderError, json_object

MAX_BYTES = 64 * 1024
TIMEOUT_S = 30.0
NAME = "{name}"
_CHUNK = 65536


class Command:
    """A program that prints one secret: as text, or as a JSON object of what belongs together."""

    def __init__(self, argv: tuple[str, ...], timeout_s: float = TIMEOUT_S) -> None:
        self._argv = argv
        self._timeout_s = timeout_s

    def find(self, name: str, fields: tuple[str, ...]) -> Any:
        printed = self._printed([part.replace(NAME, name) for part in self._argv])
        try:
            text = printed.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise ProviderError(f"the command `{self._argv[0]}` does not print UTF-8 text") from None
        return json_object(text) or text or None

    def where(self, name: str) -> str:
        # Not its arguments: people do write secrets into them.
        return f"the command `{self._argv[0]}`"

    def _printed(self, argv: list[str]) -> bytes:
        deadline = time.monotonic() + self._timeout_s
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "strerror", None) or "it is not a command"
            raise ProviderError(f"the command `{self._argv[0]}` cannot be run: {reason}") from None
        with process:
            try:
                printed = self._read(process, deadline)
                code = process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise self._late() from None
            finally:
                _end(process)
        if code:
            raise ProviderError(f"the command `{self._argv[0]}` ended with {code}; run it in a shell to see why")
        return printed

    def _read(self, process: subprocess.Popen[bytes], deadline: float) -> bytes:
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        printed = bytearray()
        while len(printed) <= MAX_BYTES:
            if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise self._late()
            chunk = os.read(pipe, _CHUNK)
            if not chunk:
                return bytes(printed)
            printed += chunk
        raise ProviderError(f"the command `{self._argv[0]}` prints more than {MAX_BYTES} bytes")

    def _late(self) -> ProviderError:
        return ProviderError(f"the command `{self._argv[0]}` did not end within {self._timeout_s:g} s")


def open_command(settings: Mapping[str, Any]) -> Command:
    """Return a program's secrets; in `command`, a list, `{name}` stands for the entry's name."""
    argv = settings.get("command")
    if not isinstance(argv, list | tuple) or not argv or not all(isinstance(part, str) for part in argv):
        raise ProviderError("`command` must be a list of texts, the program first")
    timeout_s = settings.get("timeout", TIMEOUT_S)
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or timeout_s <= 0:
        raise ProviderError("`timeout` must be a number of seconds above 0")
    return Command(tuple(argv), float(timeout_s))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program that still runs, and what it started."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
