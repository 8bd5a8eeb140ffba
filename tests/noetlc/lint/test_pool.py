from __future__ import annotations

import threading
from pathlib import Path

from noetlc.lint.discover import Target
from noetlc.lint.pool import lint_files
from noetlc.settings import Settings


def test_nothing_of_the_pool_is_left_when_the_files_are_linted(tmp_path: Path) -> None:
    targets = []
    for number in range(4):
        file = tmp_path / f"{number}.yaml"
        file.write_text("apiVersion: noetl.io/v2\nkind: Playbook\n")
        targets.append(Target(str(file), named=True))
    before = set(threading.enumerate())
    linted = lint_files(targets, Settings(), 2, lambda done: None)
    assert [one.problem for one in linted] == [None] * 4
    assert set(threading.enumerate()) <= before
