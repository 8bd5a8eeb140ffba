"""Replacing a file so that a reader, or a crash, sees the old content or the new, never half of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def write_atomically(path: str, data: bytes) -> None:
    """Replace the content of `path`, keeping its permissions; through a symbolic link, what the link leads to."""
    import tempfile  # only runs that write pay for it

    target = Path(path).resolve()
    mode = _mode(target)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".noetlc-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:  # whatever stopped us, interruption included, leaves no litter
        temporary.unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:  # a new file gets what the user's umask allows
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
