"""Who may import whom: the compiler sees the VM's tables, the VM sees the compiler through one bridge."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ALLOWED_OF_VM = (
    "noetlvm.bytecode",
    "noetlvm.expr",
    "noetlvm.events",
    "noetlvm.tools",
    "noetlvm.record",
    "noetlvm.command_line",
)
BRIDGE = ROOT / "noetlvm" / "bridge.py"
HEAVY = {"lark", "networkx", "jinja2", "rich", "pydantic"}
LAYERS = (
    "noetlc.syntax",
    "noetlc.net",
    "noetlc.analysis",
    "noetlc.canon",
    "noetlc.rules",
    "noetlc.lint",
    "noetlc.codegen",
    "noetlc.graph",
    "noetlc.cli",
)
"""Each may import only itself and what stands before it."""
YAML_READERS = ("noetlc.syntax", "noetlvm.keychain.file")
"""Secrets come in YAML files too, and the machine has no compiler to read them with."""


def imports(path: Path, *, top_level_only: bool = False) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def sources(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found
    return found


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def test_the_vm_imports_the_compiler_in_one_place_and_only_when_it_meets_yaml() -> None:
    users = {path for path in sources("noetlvm") for name in imports(path) if name.split(".")[0] == "noetlc"}
    assert users == {BRIDGE}
    assert not [name for name in imports(BRIDGE, top_level_only=True) if name.split(".")[0] == "noetlc"]


def test_the_compiler_sees_only_the_tables_of_the_vm() -> None:
    offenders = [
        (path, name)
        for path in sources("noetlc")
        for name in imports(path)
        if name.startswith("noetlvm.") and not name.startswith(ALLOWED_OF_VM)
    ]
    assert offenders == []


def test_layers_point_one_way() -> None:
    offenders = []
    for path in sources("noetlc"):
        layer = next((index for index, name in enumerate(LAYERS) if module_name(path).startswith(name)), None)
        if layer is None:
            continue
        later = LAYERS[layer + 1 :]
        offenders += [(module_name(path), name) for name in imports(path) if name.startswith(later)]
    assert offenders == []


def test_yaml_is_touched_only_by_its_readers() -> None:
    offenders = [
        path
        for path in (*sources("noetlc"), *sources("noetlvm"))
        for name in imports(path)
        if name.split(".")[0] == "yaml" and not module_name(path).startswith(YAML_READERS)
    ]
    assert offenders == []


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    offenders = [
        (path, name)
        for path in (*sources("noetlc"), *sources("noetlvm"))
        for name in imports(path, top_level_only=True)
        if name.split(".")[0] in HEAVY
    ]
    assert offenders == []
