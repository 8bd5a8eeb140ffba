"""Counts the source files that one command calls into: how many files a reader opens to follow it.

    python -m bench.files_called noetlc lint examples/hello.yaml --no-cache

A profiler hook records every called function of `noetlc` and `noetlvm`. Bodies of modules and classes are no calls, and
files of rules do not count.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
import threading
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType

ROOT = str(Path(__file__).resolve().parents[1])
_RULE = re.compile(r"noetlc/rules/[a-z]\d")


def files_called(program: str, words: list[str]) -> set[str]:
    """Run a command in this process and return the files that it called into."""
    called: set[str] = set()

    def hook(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(f"{ROOT}/noetl"):
            called.add(os.path.relpath(code.co_filename, ROOT))

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
    return {file for file in called if not _RULE.match(file)}


if __name__ == "__main__":
    found = files_called(sys.argv[1], sys.argv[2:])
    print(*sorted(found), sep="\n")
    print(f"{len(found)} files")
