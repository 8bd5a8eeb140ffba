"""Counts the source files that one command calls into: how many files a reader opens to follow it.

    python -m bench.files_called noetlc lint examples/hello.yaml --no-cache

A profiler hook records every called function of `noetlc` and `noetlvm`; module bodies and files of rules do not count.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

ROOT = str(Path(__file__).resolve().parents[1])


def files_called(program: str, words: list[str]) -> set[str]:
    """Run a command in this process and return the files that it called into."""
    called: set[str] = set()

    def hook(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(f"{ROOT}/noetl"):
            called.add(os.path.relpath(code.co_filename, ROOT))

    main = importlib.import_module(f"{program}.__main__").main
    sys.argv = [program, *words]
    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # noqa: PTH123
            main()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {file for file in called if not file.startswith("noetlc/rules/p")}


if __name__ == "__main__":
    found = files_called(sys.argv[1], sys.argv[2:])
    for folder, count in sorted(Counter(str(Path(file).parent) for file in found).items()):
        print(f"{count:>4}  {folder}")
    print(f"{len(found):>4}  files")
