import ast
from collections.abc import Iterator

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
            modules = _Names(code)
            for value in _results(code):
                for node in _parts(value):
                    what = modules.type_of(node)
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
    if last is not None and sum(isinstance(n, ast.Name) and n.id == "result" for n in ast.walk(code.tree)) == 1:
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


class _Names:
    """What names mean in a code: modules and their members by the names that imports give them."""

    def __init__(self, code: PythonCode) -> None:
        self._imported: dict[str, str] = {}
        self._defined = set(code.args or ()) | set(code.libs or ())
        for node in ast.walk(code.tree) if code.tree else ():
            match node:
                case ast.Import():
                    self._imported |= {alias.asname or alias.name: alias.name for alias in node.names}
                case ast.ImportFrom(module=str(module), level=0):
                    self._imported |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names}
                case ast.Name(ctx=ast.Store()):
                    self._defined.add(node.id)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self._defined.add(node.name)
                case ast.arg():
                    self._defined.add(node.arg)

    def type_of(self, node: ast.expr) -> str:
        """Return what a value is, if it is plainly not data."""
        if isinstance(node, ast.Constant):
            return {bytes: "bytes", complex: "a complex number", type(...): "an object"}.get(type(node.value), "")
        if isinstance(node, ast.Call):
            path = _path(node.func)
            head, dot, rest = path.partition(".")
            if head in self._defined:
                return ""
            return _CALLS.get(f"{self._imported.get(head, head)}{dot}{rest}", "")
        return _TYPES.get(type(node), "")


def _path(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _path(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""
