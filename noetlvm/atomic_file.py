"""Writes a file as a whole: a reader sees the old content or the new one, and a failure leaves no other file."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def write_atomically(
    path: str | Path, data: bytes, *, mode: int | None = None, ending: str = "", syncs: bool = False
) -> None:
    """Replace the content of a file or of a link's target. Raises OSError.

    Without a mode, the file's permissions stay; those of a new one are what the umask allows. `ending` is that of the
    temporary file beside it, which only the death of the process leaves behind. `syncs`: the content is durable before
    the file has its name.
    """
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name}.{os.urandom(8).hex()}{ending}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode or 0o666), "wb") as file:
            file.write(data)
            file.flush()
            if syncs:
                os.fsync(file.fileno())
        if mode is None:
            _keep_mode(target, temporary)
        temporary.replace(target)
    except BaseException:  # an interrupt too must leave no temporary file
        temporary.unlink(missing_ok=True)
        raise


def _keep_mode(target: Path, temporary: Path) -> None:
    """Give a file the permissions of another, if that exists."""
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
    except OSError:
        return
    temporary.chmod(mode)
