import ast
from collections.abc import Iterator
from functools import lru_cache

from noetlc.analysis.python_code import PythonCode, own_nodes, python_codes
from noetlc.rules.rule import Findings, Model, Rule, Severity

_TYPES = {
    ast.Set: "a set",
    ast.SetComp: "a set",
    ast.GeneratorExp: "a generator",
    ast.Lambda: "a function",
}
_CALLS = {
    "bytearray": "bytes",
    "bytes": "bytes",
    "complex": "a complex number",
    "enumerate": "an iterator",
    "filter": "an iterator",
    "frozenset": "a set",
    "iter": "an iterator",
    "map": "an iterator",
    "object": "an object",
    "range": "a range",
    "reversed": "an iterator",
    "set": "a set",
    "zip": "an iterator",
    "datetime.date.today": "a date",
    "datetime.datetime.now": "a date",
    "datetime.datetime.today": "a date",
    "datetime.datetime.utcnow": "a date",
    "decimal.Decimal": "a decimal number",
    "pathlib.Path": "a path",
    "uuid.uuid1": "a UUID",
    "uuid.uuid4": "a UUID",
}
"""What calls of these names return, where the code does not define the name otherwise."""
_INSTEAD = {
    "a set": "write `sorted(…)` or `list(…)`",
    "an iterator": "write `list(…)`",
    "a generator": "write a list: `[… for …]`",
    "a range": "write `list(…)`",
    "bytes": "decode it: `….decode()`",
    "a function": "call it",
    "a date": "write `….isoformat()`",
    "a path": "write `str(…)`",
    "a UUID": "write `str(…)`",
    "a decimal number": "write `float(…)` or `str(…)`",
}


class ResultNotData(Rule):
    severity = Severity.ERROR
    summary = "Python code returns a value that is not data, such as a set, bytes, a date or an iterator."
    why = (
        "A result is stored as JSON: null, booleans, numbers, text, lists and mappings. The task fails after the code "
        "has run and has had its effects."
    )
    example = """
      - step: start
        tool:
          kind: python
          args: { names: [a, b, a] }
          code: |
            def main(names):
    -           return {"names": set(names)}
    +           return {"names": sorted(set(names))}
    """
    covers = ("S19", "S88")

    def check(self, model: Model) -> Findings:
        for code in python_codes(model):
            for value in _results(code):
                for node in _parts(value):
                    what = _type_of(code, node)
                    if what:
                        yield self.finding(
                            code.span_of(node),
                            f"{what} is not data, and the result is stored as data",
                            _INSTEAD.get(what, "return null, booleans, numbers, text, lists or mappings"),
                        )


def _results(code: PythonCode) -> Iterator[ast.expr]:
    """Yield the values that the code may give as its result."""
    if code.tree is None:
        return
    if code.returns_at_top_level or code.main is not None:
        is_generator = False
        holder: ast.AST = code.tree if code.returns_at_top_level or code.main is None else code.main
        returned = []
        for node in own_nodes(holder):
            is_generator = is_generator or isinstance(node, ast.Yield | ast.YieldFrom)
            if isinstance(node, ast.Return) and node.value is not None:
                returned.append(node.value)
        yield from () if is_generator else returned
        return
    last = None
    for node in code.tree.body:  # of several, the last one holds
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["result"]:
            last = node.value
    if last is not None and sum(isinstance(n, ast.Name) and n.id == "result" for n in code.nodes) == 1:
        yield last


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """Yield a value, or the values in a list or mapping that is written out."""
    match value:
        case ast.Dict():
            for item in value.values:
                yield from _parts(item)
        case ast.List() | ast.Tuple():
            for item in value.elts:
                yield from _parts(item)
        case _:
            yield value


def _type_of(code: PythonCode, node: ast.expr) -> str:
    """Return what a value is, if it is plainly not data."""
    if isinstance(node, ast.Constant):
        return {bytes: "bytes", complex: "a complex number", type(...): "an object"}.get(type(node.value), "")
    if isinstance(node, ast.Call):
        head, dot, rest = _path(node.func).partition(".")
        imported, defined = _meanings(code)
        return "" if head in defined else _CALLS.get(f"{imported.get(head, head)}{dot}{rest}", "")
    return _TYPES.get(type(node), "")


@lru_cache(maxsize=1)  # the values of one code are looked at one after the other
def _meanings(code: PythonCode) -> tuple[dict[str, str], set[str]]:
    """Return what names stand for: the paths of imported ones, and those that the code defines otherwise."""
    imported: dict[str, str] = {}
    defined = set(code.args or ()) | set(code.libs or ())
    for node in code.nodes:
        match node:
            case ast.Import():
                imported |= {alias.asname or alias.name: alias.name for alias in node.names}
            case ast.ImportFrom(module=str(module), level=0):
                imported |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names}
            case ast.Name(ctx=ast.Store()):
                defined.add(node.id)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                defined.add(node.name)
            case ast.arg():
                defined.add(node.arg)
    return imported, defined


def _path(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _path(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""
