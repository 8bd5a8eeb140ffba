"""The source tree keeps the rules of docs/style.md that a program can check."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LINES_MAX = 800
LINES_MIN = 40
THIN = frozenset({"noetlc/rules", "noetlc/cli", "noetlvm/cli", "noetlvm/tools"})
"""Packages of one file a rule, a command or a tool kind, however short."""

STORYTELLING = re.compile(
    r"(?<![A-Za-z])(told|tells?|telling|heard|hears?|met|asked|asks?|kept|somebody|whoever|whereabouts"
    r"|anew|for ever|in good order|go(?:es)? on(?! to)|slips? of the pen)(?![a-z])",
    re.IGNORECASE,
)
"""Words that hide the technical term: record, report, receive, request, acknowledge, store, continue, graceful."""

_DUNDER = frozenset({"__init__.py", "__main__.py"})


def _packages() -> list[str]:
    found = {_package(file) for file in _sources()}
    return sorted(found)


@cache
def _sources() -> tuple[Path, ...]:
    return tuple(sorted(file for name in ("noetlc", "noetlvm") for file in (ROOT / name).rglob("*.py")))


def _package(file: Path) -> str:
    """Return `noetlc/rules` for a file of that folder or below, `noetlc` for one beside the folders."""
    parts = file.relative_to(ROOT).parts
    return "/".join(parts[: min(2, len(parts) - 1)])


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _files_of(package: str) -> list[Path]:
    return [file for file in _sources() if _package(file) == package]


def _pages() -> list[Path]:
    """Return the pages that people read, but the one that lists these words."""
    beside = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "conformance/README.md")
    pages = [*(ROOT / name for name in beside), *(ROOT / "docs").glob("*.md")]
    return [page for page in pages if page.name != "style.md"]


@pytest.mark.parametrize("package", _packages())
def test_comments_docstrings_and_names_use_technical_terms(package: str) -> None:
    found = [place for file in _files_of(package) for place in _storytelling(file)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", sorted(page.relative_to(ROOT).as_posix() for page in _pages()))
def test_pages_use_technical_terms(page: str) -> None:
    lines = enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1)
    found = [f"{page}:{number}: {match[0]!r}" for number, line in lines if (match := STORYTELLING.search(line))]
    assert not found, "\n".join(found)


def test_names_and_docstrings_of_tests_use_technical_terms() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {match[0]!r} in {getattr(node, 'name', 'the module')}"
        for file in sorted((ROOT / "tests").rglob("*.py"))
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module)
        for match in STORYTELLING.finditer(f"{getattr(node, 'name', '')} {ast.get_docstring(node) or ''}")
    ]
    assert not found, "\n".join(found)


_FILE = re.compile(r"`([\w./-]+\.(?:py|lark|csv))`")


def test_pages_name_files_that_exist() -> None:
    roots = ("noetlc", "noetlvm", "tests", "bench", "docs", "examples", "grammar", "conformance")
    files = [file.relative_to(ROOT).as_posix() for root in roots for file in (ROOT / root).rglob("*.*")]
    named = {(page.name, name) for page in _pages() for name in _FILE.findall(page.read_text(encoding="utf-8"))}
    found = {name for name in named if not any(f"/{file}".endswith(f"/{name[1]}") for file in files)}
    assert found <= {("architecture.md", "cli/x.py"), ("decisions.md", "cli/x.py"), ("expressions.md", "outcome.py")}


def test_no_test_sleeps_without_a_reason() -> None:
    found = [place for file in sorted((ROOT / "tests").rglob("*.py")) for place in _unexplained_sleeps(file)]
    assert not found, "wait for a condition (tests/waiting.py), or say in a comment why not:\n" + "\n".join(found)


_SLEEP = re.compile(r"(?<!def )(?<!clock\.)\b(pg_)?sleep\(")
"""Simulated clocks sleep without taking time."""


def _unexplained_sleeps(file: Path) -> list[str]:
    """Return lines that sleep, also in programs inside tests, and have no comment there or on the line above."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for number, (before, line) in enumerate(zip(["", *lines], lines, strict=False), 1)
        if _SLEEP.search(line) and "#" not in line and not before.lstrip().startswith("#")
    ]


def test_a_sleep_needs_a_comment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    file = tmp_path / "test_x.py"
    file.write_text("time.sleep(1)\nclock.sleep(1)\n# so that it ends\ntime.sleep(2)\ntime.sleep(3)  # it ends\n")
    assert [place.rpartition(":")[0] for place in _unexplained_sleeps(file)] == ["test_x.py:1"]


def _storytelling(file: Path) -> list[str]:
    found = []
    for token in tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline):
        if token.type in (tokenize.NAME, tokenize.COMMENT, tokenize.STRING):
            match = STORYTELLING.search(token.string)
            if match:
                found.append(f"{file.relative_to(ROOT)}:{token.start[0]}: {match[0]!r}")
    return found


@pytest.mark.parametrize("package", _packages())
def test_files_are_worth_opening(package: str) -> None:
    found = []
    for file in _files_of(package):
        lines = len(file.read_text(encoding="utf-8").splitlines())
        is_short = lines < LINES_MIN and file.name not in _DUNDER and package not in THIN
        if is_short or lines > LINES_MAX:
            found.append(f"{file.relative_to(ROOT)}: {lines} lines")
    assert not found, "\n".join(found)


def test_exceptions_end_in_error() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for file in _sources()
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.ClassDef) and _is_exception(node) and not node.name.endswith("Error")
    ]
    assert not found, "\n".join(found)


def _is_exception(node: ast.ClassDef) -> bool:
    names = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return any(name.endswith(("Error", "Exception")) for name in names)


def test_a_class_name_has_one_home() -> None:
    homes = Counter(
        node.name
        for file in _sources()
        if _package(file) != "noetlc/rules"
        for node in _tree(file).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    found = {name for name, count in homes.items() if count > 1}
    assert not found, sorted(found)


@pytest.mark.parametrize("folder", ["noetlc/cli", "noetlvm/cli"])
def test_commands_return_named_exit_codes(folder: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in _files_of(folder)
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and type(node.value.value) is int
    ]
    assert not found, "\n".join(found)
