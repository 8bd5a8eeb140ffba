"""The virtual machine runs without the compiler, and its tables cost little to read."""

import ast
from pathlib import Path

import noetlvm

FILES = sorted(Path(noetlvm.__file__).parent.rglob("*.py"))


def imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def packages(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imported(path)}


def test_nothing_in_the_vm_imports_the_compiler() -> None:
    assert FILES
    assert [path for path in FILES if "noetlc" in packages(path)] == []


TABLES = {"scopes", "signature", "filter_table", "test_table", "methods", "catalogue", "kind", "registry"}


def test_the_tables_import_no_third_party_package() -> None:
    tables = [path for path in FILES if path.stem in TABLES or path.parent.name == "tools"]
    assert tables
    own = {"__future__", "collections", "enum", "functools", "importlib", "noetlvm", "types", "typing"}
    assert {name for path in tables for name in packages(path)} <= own
