"""The virtual machine runs without the compiler, and its tables cost little to read."""

import ast
from pathlib import Path

import noetlvm

FILES = sorted(Path(noetlvm.__file__).parent.rglob("*.py"))


def imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def packages_at_once(path: Path) -> set[str]:
    """Return what is imported as soon as the file is, and not only where it is needed or for type checkers."""
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in plain | modules}


def packages(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imported(path)}


def test_nothing_but_the_bridge_imports_the_compiler() -> None:
    assert FILES
    assert [path.name for path in FILES if "noetlc" in packages(path)] == ["bridge.py"]


TABLES = {"scopes", "signature", "filter_table", "test_table", "methods", "catalogue", "kind", "registry"}


def test_the_tables_import_no_third_party_package() -> None:
    tables = [path for path in FILES if path.stem in TABLES or (path.parent.name == "tools" and _is_table(path))]
    assert tables
    own = {"__future__", "collections", "datetime", "enum", "functools", "importlib", "noetlvm", "types", "typing"}
    assert {name for path in tables for name in packages_at_once(path)} <= own


def _is_table(path: Path) -> bool:
    """Return whether a tool's file is imported by the linter too, and not only by whoever runs tools."""
    return path.stem not in {"runner", "python_child", "python_pool"}
