"""What a change touches: functions of the production code, test files, and files that no record knows."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.whole.near.record import MODULE, PACKAGES, ROOT

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_TEST_FILE = re.compile(r"tests/.*test_\w+\.py")


class Change(NamedTuple):
    """The difference between a commit and the files as they are."""

    functions: frozenset[str]
    """As the record names them: what was changed, added or removed."""
    tests: tuple[str, ...]
    """Files of tests: changed ones, and those that import a changed file of `tests`."""
    others: tuple[str, ...]
    """Files that are no Python code of the project or of its tests."""


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, text=True, capture_output=True, check=True).stdout


def base() -> str:
    """Return where this branch left `main`; on `main` itself the last commit, or the one before where it is clean."""
    head, main = git("rev-parse", "HEAD").strip(), git("rev-parse", "--verify", "-q", "main").strip()
    if head != main:
        return git("merge-base", head, main).strip()
    return head if git("status", "--porcelain") else git("rev-parse", "HEAD~1").strip()


def changes(since: str) -> Change:
    """Return what is different since a commit, with what is not committed yet."""
    functions: set[str] = set()
    tests: set[str] = set()
    others: list[str] = []
    names = git("diff", "--name-only", "--no-renames", since).split("\n")
    for name in sorted({*names, *git("ls-files", "-o", "--exclude-standard").split("\n")} - {""}):
        if name.endswith(".py") and name.partition("/")[0] in PACKAGES:
            functions |= {f"{name}:{function}" for function in _changed_functions(name, since)}
        elif _TEST_FILE.fullmatch(name):
            tests.add(name)
        elif name.startswith("tests/") and name.endswith(".py"):
            tests |= set(importers(name))
        else:
            others.append(name)
    there = sorted(name for name in tests if (ROOT / name).is_file())
    return Change(frozenset(functions), tuple(there), tuple(others))


def _changed_functions(name: str, since: str) -> Iterator[str]:
    path = ROOT / name
    new = path.read_text(encoding="utf-8") if path.is_file() else ""
    shown = subprocess.run(["git", "show", f"{since}:{name}"], cwd=ROOT, text=True, capture_output=True, check=False)
    old = shown.stdout
    for hunk in _HUNK.finditer(git("diff", "-U0", "--no-renames", since, "--", name) if old else _whole(new)):
        first, count, now, many = (int(part) if part else 1 for part in hunk.groups())
        yield from functions_at(old, range(first, first + count))
        yield from functions_at(new, range(now, now + many))


def _whole(text: str) -> str:
    return f"@@ -0,0 +1,{len(text.splitlines())} @@"


def functions_at(source: str, lines: range) -> set[str]:
    """Return the functions that lines belong to; what is outside of all is the module's."""
    if not source or not lines:
        return set()
    owner: dict[int, str] = {}
    for function, first, last in _functions(ast.parse(source).body, ""):
        owner |= dict.fromkeys(range(first, last + 1), function)
    text = source.splitlines()
    found = {owner.get(line) for line in lines if line in owner or (line <= len(text) and text[line - 1].strip())}
    return {one or MODULE for one in found}


def _functions(body: list[ast.stmt], around: str) -> Iterator[tuple[str, int, int]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{around}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min(one.lineno for one in (node, *node.decorator_list))
            yield f"{around}{node.name}", first, node.end_lineno or node.lineno


def importers(name: str) -> Iterator[str]:
    """Yield the test files that import a module, themselves or through another file of `tests`."""
    known, waiting = {name}, [name]
    sources = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in _test_modules()}
    while waiting:
        found = imports_of(waiting.pop())
        for file, text in sources.items():
            if file not in known and found.search(text):
                known.add(file)
                waiting.append(file)
    yield from sorted(one for one in known if _TEST_FILE.fullmatch(one))


def imports_of(name: str) -> re.Pattern[str]:
    """Return a pattern of the statements that import a module."""
    module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    package, _, last = module.rpartition(".")
    return re.compile(
        rf"(?:from|import) {re.escape(module)}\b|from {re.escape(package)} import (?:\([^)]*|[^\n]*)\b{last}\b"
    )


def _test_modules() -> Iterator[Path]:
    return (ROOT / "tests").rglob("*.py")
