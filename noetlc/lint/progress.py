"""A progress bar for people who wait: on a terminal only, and only once the wait has been noticeable."""

from __future__ import annotations

import sys
import time
from typing import Any

_PATIENCE_S = 1.0


class Progress:
    """Counts finished files. Made before the work begins; `close` removes the bar."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total = total
        self._wanted = not quiet and sys.stderr.isatty()
        self._begun = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, done: int) -> None:
        """Note that `done` files are finished."""
        if not self._wanted:
            return
        if self._bar is None:
            if time.monotonic() - self._begun < _PATIENCE_S:
                return
            self._open()
        self._bar.update(self._task, completed=done)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bar

        self._bar = Bar(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("Linting", total=self._total)
        self._bar.start()
