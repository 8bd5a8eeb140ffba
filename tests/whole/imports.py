"""Imports of the modules of both packages, read from their sources: lazy ones and those under TYPE_CHECKING too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def sources(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, package
    return found


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imports(path: Path, *, top_level_only: bool = False) -> Iterator[str]:
    """Return the full name of each imported module: `package.name` for `from package import name` if it is a module."""
    return imports_of(path.read_text(encoding="utf-8"), module_name(path), top_level_only=top_level_only)


def imports_of(source: str, module: str, *, top_level_only: bool = False) -> Iterator[str]:
    tree = ast.parse(source)
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*parents, *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" if _is_module(f"{base}.{alias.name}") else base for alias in node.names)


def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def package_of(module: str) -> str:
    """Return the package or module right below `noetlc` or `noetlvm` that a module belongs to."""
    return ".".join(module.split(".")[:2]).removesuffix(".__init__")
