"""The one place where the virtual machine asks the compiler for something: to run a playbook straight from YAML.

The machine itself runs bundles and needs no compiler; the import is here, and happens only when YAML is met.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any


class NotCompiled(Exception):  # noqa: N818 - it says what happened
    """There is no bundle. The message says why; findings were told already, and then it is empty."""


def compile_playbooks(paths: Sequence[str], *, quiet: bool = False) -> bytes:
    """Return the bundle of playbook files, the main one first. What the compiler finds goes to standard error.

    With `quiet` only what keeps them from running does.
    """
    try:
        from noetlc.bundle.build import Order, compile_and_tell
        from noetlc.lint.cannot_run import CannotRun
    except ImportError as error:
        raise NotCompiled(f"running YAML needs the compiler, which is not installed ({error}); run a .nbc") from None
    from contextlib import nullcontext, redirect_stderr
    from io import StringIO

    held = StringIO()
    try:
        with redirect_stderr(held) if quiet else nullcontext():
            compiled = compile_and_tell(Order(tuple(paths)))
    except CannotRun as problem:
        raise NotCompiled(str(problem)) from None
    if compiled is None:
        print(held.getvalue(), end="", file=sys.stderr)
        raise NotCompiled("")
    return compiled.data


def compile_texts(texts: Sequence[str]) -> bytes:
    """Return the bundle of playbooks that are in no file, the main one first; what is wrong with them is the error."""
    from noetlc.compile import PlaybookFile, compile_playbooks
    from noetlc.finding import Severity

    compiled = compile_playbooks([PlaybookFile(f"playbook_{at}", text.encode()) for at, text in enumerate(texts, 1)])
    errors = [one.message for file in compiled.files for one in file.findings if one.severity is Severity.ERROR]
    if compiled.program is None:
        raise NotCompiled("; ".join(errors))
    return compiled.data


def read_yaml(path: str, data: bytes) -> Any:
    """Return what a YAML file says, as data; None for nothing. Raises NotCompiled at the first thing that is wrong."""
    from noetlc.syntax.nodes import plain
    from noetlc.syntax.problem import ProblemKind
    from noetlc.syntax.span import Source
    from noetlc.syntax.yaml_reader import decode, read_document

    text, problem = decode(data)
    document = read_document(text)
    for found in (problem, *document.problems):
        if found is not None and found.kind is not ProblemKind.EMPTY:
            line, column = Source(path, text).position(found.span.start)
            raise NotCompiled(f"{path}:{line}:{column}: {found.message}; {found.help}")
    return None if document.root is None else plain(document.root)
