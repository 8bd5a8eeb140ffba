"""Jinja2 with the written differences (docs/expression-differences.md) applied, and nothing else changed.

What this class overrides is the list of differences in code. A result of ours that differs from this environment's is a
mistake on one of the two sides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from jinja2 import ChainableUndefined, nodes
from jinja2.compiler import CodeGenerator
from jinja2.exceptions import UndefinedError
from jinja2.filters import FILTERS
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

from noetlvm.language.methods import METHODS

LAZY_FILTERS = ("batch", "items", "map", "reject", "rejectattr", "reverse", "select", "selectattr", "slice", "unique")
MARKING_FILTERS = ("e", "escape", "forceescape", "safe", "tojson", "striptags", "urlize", "xmlattr")


def _converted(function: Callable[..., Any], convert: Callable[[Any], Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return convert(function(*args, **kwargs))

    return call


def _listed(value: Any) -> Any:
    return value if isinstance(value, str) else list(value)


class _Unfolded(CodeGenerator):
    """Does not evaluate constants beforehand, by other rules than those of the evaluation itself."""

    def _output_child_to_const(self, *args: Any) -> str:
        raise nodes.Impossible


class DataEnvironment(SandboxedEnvironment):
    """The sandbox over data only."""

    code_generator_class = _Unfolded
    intercepted_binops = frozenset({"**"})

    def __init__(self) -> None:
        super().__init__(undefined=ChainableUndefined, optimized=False)
        for name in LAZY_FILTERS:
            self.filters[name] = _converted(FILTERS[name], _listed)
        for name in MARKING_FILTERS:
            self.filters[name] = _converted(FILTERS[name], str)
        self.filters["_defined"] = _defined
        self.globals["range"] = _converted(range, list)
        self.policies["json.dumps_kwargs"] = {"sort_keys": True, "allow_nan": False}

    def _parse(self, *args: Any, **kwargs: Any) -> nodes.Template:
        """Let a `for` over what is undefined be an error."""
        tree = super()._parse(*args, **kwargs)
        for loop in list(tree.find_all(nodes.For)):
            loop.iter = nodes.Filter(loop.iter, "_defined", [], [], None, None, lineno=loop.lineno)
        return tree

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, complex):
            raise TypeError("there are no complex numbers")
        return result

    def _generate(self, *args: Any, **kwargs: Any) -> str:
        # What `a if b` without `else` gives is as chainable as any other undefined.
        return (
            super()
            ._generate(*args, **kwargs)
            .replace("cond_expr_undefined = Undefined", "cond_expr_undefined = undefined")
        )

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, (LoopContext, Undefined)) or type(obj).__name__ == "_GroupTuple":
            return super().getattr(obj, attribute)
        method = METHODS.get(attribute)
        if method and type(obj).__name__ in method.types:
            bound = super().getattr(obj, attribute)
            return _converted(bound, list) if attribute in ("keys", "values", "items") else bound
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, Undefined):
            return obj
        try:
            return obj[argument]
        except (TypeError, LookupError):
            return self.undefined(obj=obj, name=argument)


def _defined(value: Any) -> Any:
    if isinstance(value, Undefined):
        raise UndefinedError("nothing to go through")
    return value


def plain(value: Any) -> Any:
    """Return a value without Jinja2's own types, in a form that `==` compares by type too."""
    if isinstance(value, Undefined):
        return ("undefined",)
    if isinstance(value, Markup):
        return ("str", str(value))
    if isinstance(value, dict):
        return ("dict", [(plain(key), plain(item)) for key, item in value.items()])
    if isinstance(value, tuple):
        return ("tuple", [plain(item) for item in value])
    if isinstance(value, list):
        return ("list", [plain(item) for item in value])
    return (type(value).__name__, repr(value))
