"""The examples that people start from are clean, and the one with mistakes shows a good many of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetlc.lint.check import check_bytes

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
WITH_MISTAKES = ("mistakes", "orders_draft")


CLEAN = [path for path in EXAMPLES if path.stem not in WITH_MISTAKES]


@pytest.mark.parametrize("path", CLEAN, ids=lambda path: path.stem)
def test_examples_have_no_findings(path: Path) -> None:
    assert [finding.message for finding in check_bytes(path.name, path.read_bytes()).findings] == []


def test_the_example_with_mistakes_has_them() -> None:
    (path,) = (path for path in EXAMPLES if path.stem == "mistakes")
    assert len({finding.code for finding in check_bytes(path.name, path.read_bytes()).findings}) >= 15
