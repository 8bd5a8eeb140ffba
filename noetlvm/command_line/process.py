"""How the process of a command begins and ends. Most commands are over in a fraction of a second, so both count."""

from __future__ import annotations

import atexit
import gc
import os
import sys

_USUAL = gc.get_threshold()
_PATIENT = (200_000, 50, 50)


def begin() -> None:
    """Let the search for garbage wait: what a command imports and reads, it keeps."""
    gc.set_threshold(*_PATIENT)


def settle() -> None:
    """Search for garbage as usual from now on, for work that may take days, but not in all that is here already."""
    if gc.get_threshold() == _PATIENT:
        gc.freeze()
        gc.set_threshold(*_USUAL)


def leave(code: int) -> None:
    """End the process, without first taking apart what the system takes back at once.

    Exit functions have run and all that was printed is out by then. Where a thread is still at work, a profiler or
    debugger watches or a stream takes no more, Python ends the process in its own way.
    """
    threading = sys.modules.get("threading")
    if (threading and threading.active_count() > 1) or sys.getprofile() or sys.gettrace():
        sys.exit(code)
    atexit._run_exitfuncs()  # the only way to have them run and then leave
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)
    os._exit(code)
