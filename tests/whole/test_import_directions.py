"""Who may import whom. The layers are documented in docs/architecture.md, and a test compares the two."""

from __future__ import annotations

import re
import sys
from itertools import chain

import pytest

from tests.whole.imports import ROOT, imports, imports_of, module_name, package_of, sources

LAYERS = {
    "noetlvm": (
        ("record", "nearest", "atomic_file"),
        ("limits", "command_line", "language"),
        ("data",),
        ("bytecode",),
        ("expr",),
        ("keychain",),
        ("machine", "store", "tools"),
        ("results", "wake"),
        ("rounds", "protocol"),
        ("worker",),
        ("engine", "replay"),
        ("bridge",),
        ("api", "testing"),
        ("client", "service"),
        ("conformance", "sim"),
        ("cli",),
        ("__main__",),
    ),
    "noetlc": (
        ("files",),
        ("syntax",),
        ("finding", "assembly"),
        ("migrate",),
        ("analysis",),
        ("canon",),
        ("net",),
        ("rules",),
        ("report",),
        ("settings",),
        ("lint",),
        ("codegen", "parse", "schema"),
        ("compile", "script_text"),
        ("session",),
        ("bundle",),
        ("graph",),
        ("api",),
        ("cli",),
        ("__main__",),
    ),
}
"""A package may import itself and packages of earlier layers: neither later ones nor its neighbours in the layer."""

SEEN_BY_THE_COMPILER = ("record", "nearest", "atomic_file", "limits", "command_line", "language", "bytecode")
"""Packages of `noetlvm` that the compiler may import. `language` says what can be written, `bytecode` is the target."""

BRIDGE = "noetlvm.bridge"
YAML_READERS = ("noetlc.syntax", "noetlvm.keychain.file")
"""Secrets can come from YAML files, and the virtual machine has no compiler to read them with."""

LAZY = {
    "noetlc.graph.formats.html",
    "noetlc.graph.formats.terminal",
    "noetlc.graph.networkx_graph",
    "noetlvm.cli.terminal",
    "noetlvm.protocol.worker_messages",
}
"""Modules that are imported inside functions, or by servers only: they may import something heavy themselves."""
SERVICE = "noetlvm.service"
"""Imported by the commands that serve, and by nothing else."""
HEAVY = {"lark", "networkx", "jinja2", "rich", "pydantic"}
EVERYTHING = [*sources("noetlc"), *sources("noetlvm")]


@pytest.mark.parametrize("program", LAYERS)
def test_a_package_imports_only_packages_of_earlier_layers(program: str) -> None:
    level = {f"{program}.{name}": number for number, names in enumerate(LAYERS[program]) for name in names}
    wrong = []
    for path in sources(program):
        importer = package_of(module_name(path))
        if importer == program:
            continue
        assert importer in level, f"{importer} has no layer yet: give it one in LAYERS and in docs/architecture.md"
        for name in imports(path):
            imported = package_of(name)
            if imported in level and imported != importer and level[imported] >= level[importer]:
                wrong.append(f"{module_name(path)} imports {name}")
    assert wrong == []


@pytest.mark.parametrize("program", LAYERS)
def test_every_layer_exists_and_is_documented_in_this_order(program: str) -> None:
    names = list(chain.from_iterable(LAYERS[program]))
    assert [name for name in names if not list(ROOT.glob(f"{program}/{name}*"))] == []
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    documented = re.search(rf"^- `{program}`: (.+)$", page, re.MULTILINE)
    assert documented, f"docs/architecture.md has no line of layers for {program}"
    layers = [name for name in LAYERS[program] if name != ("__main__",)]
    assert documented[1] == " ← ".join(", ".join(names) for names in layers)


def test_the_vm_imports_the_compiler_only_in_the_bridge_and_only_lazily() -> None:
    users = {module_name(path) for path in sources("noetlvm") if "noetlc" in map(_distribution, imports(path))}
    assert users == {BRIDGE}
    bridge = ROOT / "noetlvm" / "bridge.py"
    assert "noetlc" not in map(_distribution, imports(bridge, top_level_only=True))


def test_the_compiler_imports_only_what_it_may_see_of_the_vm() -> None:
    allowed = {"noetlvm", *(f"noetlvm.{name}" for name in SEEN_BY_THE_COMPILER)}
    wrong = [
        f"{module_name(path)} imports {name}"
        for path in sources("noetlc")
        for name in imports(path)
        if _distribution(name) == "noetlvm" and package_of(name) not in allowed
    ]
    assert wrong == []
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert f"imports only {', '.join(f'`{name}`' for name in SEEN_BY_THE_COMPILER)}.\n" in page


def test_only_two_readers_import_yaml() -> None:
    users = [module_name(path) for path in EVERYTHING if "yaml" in map(_distribution, imports(path))]
    assert [name for name in users if not name.startswith(YAML_READERS)] == []


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    wrong = [
        f"{module_name(path)} imports {name}"
        for path in EVERYTHING
        for name in imports(path, top_level_only=True)
        if _distribution(name) in HEAVY and module_name(path) not in LAZY and package_of(module_name(path)) != SERVICE
    ]
    assert wrong == []


def test_the_language_and_the_declarations_of_tools_need_only_the_standard_library() -> None:
    """The linter imports them in every run."""
    run_only = {
        "http_client",
        "http_connection",
        "nats_client",
        "postgres_client",
        "python_child",
        "python_pool",
        "python_sandbox",
        "runner",
    }
    tables = [*sources("noetlvm/language"), *(path for path in sources("noetlvm/tools") if path.stem not in run_only)]
    needed = {_distribution(name) for path in tables for name in imports(path, top_level_only=True)}
    assert needed - {"noetlvm"} <= sys.stdlib_module_names


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import noetlvm.machine.fold", "noetlvm.machine.fold"),
        ("from noetlvm import machine", "noetlvm.machine"),
        ("from noetlvm.machine import fold", "noetlvm.machine.fold"),
        ("from noetlvm.machine.fold import apply", "noetlvm.machine.fold"),
        ("from . import fold", "noetlvm.machine.fold"),
        ("from ..machine import fold", "noetlvm.machine.fold"),
        ("def lazily():\n    from noetlvm import machine", "noetlvm.machine"),
        ("if TYPE_CHECKING:\n    from noetlvm.machine import fold", "noetlvm.machine.fold"),
    ],
)
def test_every_spelling_of_an_import_is_found(source: str, expected: str) -> None:
    assert list(imports_of(source, "noetlvm.machine.state")) == [expected]


def _distribution(module: str) -> str:
    return module.partition(".")[0]
