"""Runs audit cases through the command line, in this process."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from noetlvm.__main__ import main
from tests.whole.audit.cases import Case


def run_case(case: Case, folder: Path) -> list[str]:
    """Run a case in an empty folder; return how its end differs from what is predicted."""
    files = []
    for number, playbook in enumerate((case.playbook, *case.children)):
        file = folder / f"{number}.yaml"
        file.write_text(json.dumps(playbook), encoding="utf-8")
        files.append(str(file))
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    arguments = ["noetlvm", "run", *files, "--db", str(folder / "audit.db"), "--json"]
    with patch.object(sys, "argv", arguments), redirect_stdout(out), redirect_stderr(err):
        main()
    try:
        found = json.loads(_text(out))
    except ValueError:
        return [f"{case.name}: no result: {_text(err)[:2000]}"]
    return [f"{case.name}: {text}" for text in _differences(case.expected, found)]


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def _differences(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    found = found | {"kinds": [failure["error"]["kind"] for failure in found["failures"]]}
    return [
        f"{key} is {found[key]!r}, predicted {value!r}"
        for key, value in expected.items()
        if found[key] != value or type(found[key]) is not type(value)
    ]
