"""Imports inside functions: which there may be, and why. Every other import stands at the top of its module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from tests.whole.imports import imports_of, module_name, sources

MOST = 120
"""Of both programs together. A command needs none: its module is loaded when the command is called."""


class Reason(NamedTuple):
    why: str
    importers: tuple[str, ...]
    """Beginnings of the names of modules that import."""
    imported: tuple[str, ...]
    """Beginnings of the names of what they import."""


ALLOWED = (
    Reason(
        "an optional package, or a module that needs one",
        (
            "noetlvm.cli",
            "noetlvm.protocol",
            "noetlvm.rounds.tracing",
            "noetlvm.service",
            "noetlvm.tools",
            "noetlvm.testing",
        ),
        (
            *("duckdb", "opentelemetry", "uvicorn", "uvloop", "websockets", "noetlvm.client", "noetlvm.cli.submit"),
            "noetlvm.conformance.service_runs",
            *(
                "noetlvm.results.postgres",
                "noetlvm.results.nats_object",
                "noetlvm.rounds.spans",
                "noetlvm.store.postgres",
            ),
            *(
                "noetlvm.service.access",
                "noetlvm.service.app",
                "noetlvm.service.process",
                "noetlvm.service.web_server",
            ),
            *("noetlvm.tools.postgres_client", "noetlvm.tools.nats_client", "noetlvm.wake", "noetlvm.testing"),
        ),
    ),
    Reason("running a bundle needs no compiler", ("noetlvm.bridge",), ("noetlc",)),
    Reason(
        "a heavy package that few calls need",
        ("noetlc", "noetlvm"),
        (
            "jinja2",
            "lark",
            "networkx",
            "pyflakes",
            "rich",
            "yaml",
            "yarl",
            "noetlc.graph.formats.terminal",
            "noetlvm.cli.terminal",
        ),
    ),
    Reason(
        "a heavy module of the standard library that few calls need",
        ("noetlc", "noetlvm"),
        (
            *(
                "asyncio",
                "ast",
                "concurrent.futures",
                "ctypes",
                "difflib",
                "glob",
                "http.client",
                "importlib",
                "shutil",
            ),
            *("ssl", "tempfile", "tomllib", "traceback", "urllib.request"),
        ),
    ),
    Reason("`--version` loads no command", ("noetlc.__main__", "noetlvm.__main__"), ("noetlc.cli", "noetlvm.cli")),
    Reason("`--version` and plain words need no typer", ("noetlvm.command_line",), ("noetlvm.command_line",)),
    Reason(
        "a lint of unchanged files loads neither checks nor rules",
        ("noetlc.lint",),
        ("noetlc.lint", "noetlc.rules.catalogue"),
    ),
    Reason("a model computes its analyses on demand, which read the model", ("noetlc.analysis",), ("noetlc.analysis",)),
    Reason("the catalogue imports the rules", ("noetlc.rules.rule",), ("noetlc.rules.catalogue",)),
    Reason("only a file of another dialect is migrated", ("noetlc.rules.rule",), ("noetlc.migrate",)),
    Reason("the graph of a bundle needs no compiler", ("noetlc.graph.reading",), ("noetlc",)),
    Reason("`lint` and `compile` of the library need no graph", ("noetlc.api",), ("noetlc.graph",)),
    Reason("calls of one another by name", ("noetlvm.expr",), ("noetlvm.expr",)),
    Reason("linting reads the declaration of a tool, not its implementation", ("noetlvm.tools",), ("noetlvm.tools",)),
    Reason("most runs have no secret", ("noetlvm.rounds.credentials", "noetlvm.worker"), ("noetlvm.keychain",)),
    Reason("a replay of the same bundle needs no event loop", ("noetlvm.cli.replay",), ("noetlvm.cli.run",)),
    Reason("reading a store verifies no bundle", ("noetlvm.store.fsck",), ("noetlvm.bytecode.verify",)),
)


class Lazy(NamedTuple):
    importer: str
    imported: str

    def fits(self, reason: Reason) -> bool:
        return _begins(self.importer, reason.importers) and _begins(self.imported, reason.imported)


def _begins(name: str, beginnings: tuple[str, ...]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in beginnings)


def lazy_imports(source: str, module: str) -> Iterator[list[Lazy]]:
    """Yield for each import statement inside a function what it imports."""
    functions = (
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    statements = chain.from_iterable(ast.walk(function) for function in functions)
    for node in {id(each): each for each in statements if isinstance(each, ast.Import | ast.ImportFrom)}.values():
        yield [Lazy(module, name) for name in imports_of(ast.unparse(node), module)]


FOUND = [
    each
    for program in ("noetlc", "noetlvm")
    for path in sources(program)
    for each in lazy_imports(path.read_text(encoding="utf-8"), module_name(path))
]


def test_every_import_inside_a_function_has_a_reason() -> None:
    wrong = [one for one in chain.from_iterable(FOUND) if not any(one.fits(reason) for reason in ALLOWED)]
    assert wrong == []


def test_every_reason_is_needed() -> None:
    found = list(chain.from_iterable(FOUND))
    assert [reason.why for reason in ALLOWED if not any(one.fits(reason) for one in found)] == []


def test_imports_inside_functions_stay_few() -> None:
    assert len(FOUND) < MOST


def test_an_import_inside_a_nested_function_counts_once() -> None:
    source = "def f():\n    def g():\n        import json\n    return g"
    assert list(lazy_imports(source, "noetlc.x")) == [[Lazy("noetlc.x", "json")]]
