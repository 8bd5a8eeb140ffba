from __future__ import annotations

from time import process_time

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
    ("[^ab].yaml", "b.yaml", False),
    ("a[!b]c", "a/c", False),
    ("a[+-9]c", "a/c", False),
    ("a+(b).yaml", "a+(b).yaml", True),
    ("**/x/*.yaml", "x/a.yaml", True),
    ("**/x/*.yaml", "a/x/b/x/c.yaml", True),
    ("a/**/b/**/c", "a/b/x/b/y/c/d", True),
    ("a/**/b/**/c", "a/c/b", False),
    ("a/**/**/b", "a/b", True),
    ("src/**", "src", False),
    ("a*b*c", "abbc", True),
    ("a*b*c", "acb", False),
    ("a*bc*bd", "abcbcbd", True),
    ("*.test.*", "x.test.yaml", True),
    ("x**z.yaml", "x-y-z.yaml", True),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), CASES)
def test_patterns_match_as_in_gitignore(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


@pytest.mark.parametrize("pattern", ["[", "[]", "[z-a]", "**", "", "***", "a[b"])
def test_odd_patterns_raise_nothing(pattern: str) -> None:
    assert matches(pattern, "a.yaml") in (True, False)


@pytest.mark.parametrize("part", ["**a", "**/*a", "*a", "**/a/", "?*"])
@pytest.mark.parametrize("path", ["a" * 40, "a/" * 40, "a" * 20 + "/x" * 20])
def test_a_pattern_of_twice_the_length_takes_no_hundred_times_as_long(part: str, path: str) -> None:
    def seconds(parts: int) -> float:
        began = process_time()
        matches(part * parts + "b", path)
        return process_time() - began

    assert seconds(10) < 100 * max(seconds(5), 0.001)
