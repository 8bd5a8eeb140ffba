from __future__ import annotations

import pytest

from noetlc.files import matches

CASES = [
    ("*.yaml", "a.yaml", True),
    ("*.yaml", "deep/er/a.yaml", True),
    ("*.yaml", "a.yml", False),
    ("build", "build/x/a.yaml", True),
    ("build", "src/build/a.yaml", True),
    ("build", "builder/a.yaml", False),
    ("build/", "build/a.yaml", True),
    ("src/*.yaml", "src/a.yaml", True),
    ("src/*.yaml", "src/x/a.yaml", False),
    ("src/*.yaml", "other/src/a.yaml", False),
    ("src/**/*.yaml", "src/a.yaml", True),
    ("src/**/*.yaml", "src/x/y/a.yaml", True),
    ("src/**", "src/x/y/a.yaml", True),
    ("/a.yaml", "a.yaml", True),
    ("?.yaml", "a.yaml", True),
    ("?.yaml", "ab.yaml", False),
    ("[ab].yaml", "b.yaml", True),
    ("[!ab].yaml", "b.yaml", False),
    ("a+(b).yaml", "a+(b).yaml", True),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), CASES)
def test_patterns_match_as_in_gitignore(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


@pytest.mark.parametrize("pattern", ["[", "[]", "[z-a]", "**", "", "***", "a[b"])
def test_odd_patterns_raise_nothing(pattern: str) -> None:
    assert matches(pattern, "a.yaml") in (True, False)
