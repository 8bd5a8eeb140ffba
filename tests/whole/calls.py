"""Prints the functions of `noetlc` and `noetlvm` that one command calls, each at its first call.

    python -m tests.whole.calls noetlc lint examples/hello.yaml --no-cache

A line is `noetlc/lint/run.LintRun.files`. Bodies of modules and classes are no calls.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

ROOT = str(Path(__file__).resolve().parents[2])


def calls(program: str, words: list[str]) -> list[str]:
    """Run a command in this process and return the functions that it called, in the order of their first calls."""
    called: dict[str, None] = {}

    def hook(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(f"{ROOT}/noetl"):
            file = os.path.relpath(code.co_filename, ROOT).removesuffix(".py")
            called.setdefault(f"{file}.{code.co_qualname}")

    main = importlib.import_module(f"{program}.__main__").main
    sys.argv = [program, *words]
    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            main()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(called)


if __name__ == "__main__":
    print(*calls(sys.argv[1], sys.argv[2:]), sep="\n")
