"""docs/configuration.md lists the environment variables that the code reads."""

from __future__ import annotations

import re

from tests.whole.imports import ROOT

VARIABLE = re.compile(r"\"((?:NOETLC|NOETLVM)_[A-Z]+|NO_COLOR)\"")


def test_every_environment_variable_that_the_code_reads_is_listed() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    sources = [path for program in ("noetlc", "noetlvm") for path in (ROOT / program).rglob("*.py")]
    read = {name for path in sources for name in VARIABLE.findall(path.read_text(encoding="utf-8"))}
    assert {"NOETLVM_DB", "NOETLVM_INPUTS", "NO_COLOR"} <= read
    assert [name for name in sorted(read) if f"`{name}`" not in page] == []
