"""The Python code of `python` tasks: its tree, the names that are there when it runs, and its result.

The code of a task is parsed once and shared by the rules on it. A template in the code is replaced by a name of the
same length, which counts as defined.
"""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Iterator
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING

from noetlc.analysis.inputs import typed_tasks
from noetlc.analysis.model import Model, TaskView
from noetlc.syntax.nodes import Mapping, Node, Scalar, Sequence
from noetlc.syntax.scalar_offsets import span_in_file
from noetlc.syntax.span import Span

if TYPE_CHECKING:
    from pyflakes.checker import Checker
    from pyflakes.messages import Message

GIVEN = frozenset({"input_data", "context", "idempotency_key"})
"""Names that every code can use besides its arguments and `libs`."""

_BUILTINS = frozenset(dir(builtins)) | {"__name__", "__builtins__"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = ast.expr | ast.stmt | ast.arg | ast.alias

_HOLE = re.compile(r"\{\{[^{}\n]*\}\}")
_HOLE_NAME = re.compile(r"_0{3,}")
_DYNAMIC = re.compile(r"\b(?:exec|eval|globals|locals|vars)\s*\(|import\s+\*")
"""With these, code can define and read names that its text does not show."""


class PythonCode:
    """The code of one task."""

    def __init__(self, model: Model, view: TaskView, scalar: Scalar) -> None:
        self.view, self.scalar = view, scalar
        self._file = model.source.text
        self.text = _HOLE.sub(lambda hole: "_" + "0" * (len(hole[0]) - 1), scalar.text)
        self.args = _arguments(model, view)
        """The names of its arguments; None if they are not known."""
        self.libs = _libs(view.task.get_extra("libs"))

    @cached_property
    def parsed(self) -> ast.Module | SyntaxError:
        """The tree of the code, or why it cannot be compiled."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(self.text)
                _compile(tree)
        except SyntaxError as error:
            return error
        except (ValueError, RecursionError, MemoryError) as error:
            return SyntaxError(str(error) or "the source nests too deep")
        return tree

    @property
    def tree(self) -> ast.Module | None:
        return self.parsed if isinstance(self.parsed, ast.Module) else None

    @cached_property
    def names(self) -> frozenset[str] | None:
        """The names that are there before the code runs, builtins aside; None if they are not known."""
        return None if self.args is None or self.libs is None else GIVEN | self.args | self.libs

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree."""
        return tuple(ast.walk(self.tree)) if self.tree else ()

    @cached_property
    def words(self) -> frozenset[str]:
        """The names that the code reads or sets, arguments of functions aside."""
        return frozenset(node.id for node in self.nodes if isinstance(node, ast.Name))

    @cached_property
    def flakes(self) -> tuple[Message, ...]:
        """What pyflakes says of the code."""
        if self.tree is None:
            return ()
        there = sorted(name for name in self.words if name in (self.names or ()) or name in _BUILTINS or is_hole(name))
        tree = _as_function(self.tree, there) if self.returns_at_top_level else self.tree
        return tuple(_checker()(tree, builtins=there).messages)

    @property
    def is_dynamic(self) -> bool:
        """Return whether the code may define or read names that cannot be found in its text."""
        return _DYNAMIC.search(self.text) is not None

    @cached_property
    def main(self) -> Function | None:
        """The function `main`, if the code defines one at top level and in one place."""
        body = self.tree.body if self.tree else []
        found = [node for node in body if isinstance(node, Function) and node.name == "main"]
        return found[0] if len(found) == 1 and not found[0].decorator_list else None

    @cached_property
    def returns_at_top_level(self) -> bool:
        return (
            any(isinstance(node, ast.Return) for node in own_nodes(self.tree))
            if self.tree and "return" in self.text
            else False
        )

    def span(self, line: int, column: int, length: int = 1) -> Span:
        """Return where a place of the code stands in the file; columns count bytes, from 0."""
        lines = self.text.splitlines(keepends=True)
        if line > len(lines):
            line, column = max(len(lines), 1), 0
        before = lines[line - 1].encode()[:column].decode(errors="ignore") if lines else ""
        start = sum(map(len, lines[: line - 1])) + len(before)
        return span_in_file(self._file, self.scalar, Span(start, min(start + length, len(self.text))))

    def span_of(self, node: Place) -> Span:
        """Return where a node stands in the file: of one with several lines, its first."""
        is_short = node.end_lineno == node.lineno and node.end_col_offset is not None
        length = (node.end_col_offset or 0) - node.col_offset if is_short else 1
        return self.span(node.lineno, node.col_offset, max(length, 1))


@cache
def _checker() -> type[Checker]:
    """Return pyflakes' checker without Python's builtins: to bind each takes longer than to check a short code."""
    from pyflakes.checker import Checker  # its import takes as long as linting a file, and few files need it

    class CodeChecker(Checker):
        builtIns: set[str] = set()  # noqa: N815  # the name that pyflakes gives it

    return CodeChecker


def is_hole(name: str) -> bool:
    """Return whether a name stands for a template, or has one in it."""
    return _HOLE_NAME.search(name) is not None


@lru_cache(maxsize=1)  # the rules of one model run one after the other
def python_codes(model: Model) -> tuple[PythonCode, ...]:
    """Return the codes of all tasks that can be looked at."""
    return tuple(PythonCode(model, view, scalar) for view, scalar in _scalars(model) if _is_readable(scalar))


def own_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module or a function, without those of the functions and classes in it."""
    waiting = list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            waiting[:0] = ast.iter_child_nodes(node)


def _scalars(model: Model) -> Iterator[tuple[TaskView, Scalar]]:
    for view, kind in typed_tasks(model):
        for entry in view.task.extra:
            declared, value = kind.input(entry.key.text), entry.value
            if declared is not None and declared.language == "python" and isinstance(value, Scalar):
                yield view, value


def _is_readable(scalar: Scalar) -> bool:
    """Return whether a text is code, with templates in the place of values at most."""
    return isinstance(scalar.value, str) and "{%" not in scalar.text and "{{" not in _HOLE.sub("", scalar.text)


def _compile(tree: ast.Module) -> None:
    """Compile code as it is, or as the body of a function if it returns at top level. Raises SyntaxError."""
    try:
        compile(tree, "<code>", "exec", dont_inherit=True)
    except SyntaxError as error:
        if "'return' outside function" not in str(error):
            raise
        compile(_as_function(tree, []), "<code>", "exec", dont_inherit=True)


def _as_function(tree: ast.Module, names: list[str]) -> ast.Module:
    """Return code as the body of a function in which these names are global."""
    module = ast.parse("def task(): pass")
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef), "this is what was parsed"
    globals: list[ast.stmt] = [ast.Global(names, lineno=1, col_offset=0)] if names else []
    function.body = [*globals, *tree.body]
    return module


def _arguments(model: Model, view: TaskView) -> frozenset[str] | None:
    step = view.owner.step
    if step is not None and model.is_reported(step.span, ("step", "args")):
        return None
    own = _keys(view.task.get_extra("args"))
    if own is None or not view.owner.in_workbook:
        return own
    for call in model.tasks:
        name = call.task.get_extra("task") if call.kind == "workbook" else None
        if isinstance(name, Scalar) and name.text == view.owner.name:
            given = _keys(call.task.get_extra("args"))
            if given is None:
                return None
            own |= given
    return own


def _keys(node: Node | None) -> frozenset[str] | None:
    """Return the keys of a mapping; none where nothing is given, and None where only a run knows them."""
    if isinstance(node, Mapping):
        return frozenset(entry.key.text for entry in node.entries)
    return frozenset() if node is None or (isinstance(node, Scalar) and node.value is None) else None


def _libs(node: Node | None) -> frozenset[str] | None:
    if isinstance(node, Sequence):
        return frozenset(item.text.partition(".")[0] for item in node.items if isinstance(item, Scalar))
    return _keys(node)
