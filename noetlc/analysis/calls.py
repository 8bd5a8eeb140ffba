"""What a template calls by a known name, and with what: filters, tests, functions and methods, each with its signature.

A filter that is given another filter or test by name (`map('upper')`) counts as a use of both. It reports nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from noetlc.syntax import template_ast as t
from noetlvm.language.filters import FILTERS, FUNCTIONS, NAMED_BY_ARGUMENT
from noetlvm.language.methods import METHODS
from noetlvm.language.tests import TESTS
from noetlvm.record import IdentityRecord

if TYPE_CHECKING:
    from noetlc.analysis.names import TemplateNames
    from noetlc.syntax.span import Span
    from noetlvm.language.signature import Signature

Sort: TypeAlias = Literal["filter", "test", "function", "method"]

_TABLES: dict[Sort, Mapping[str, Signature]] = {
    "filter": FILTERS,
    "test": TESTS,
    "function": FUNCTIONS,
    "method": {name: method.signature for name, method in METHODS.items()},
}


class Application(IdentityRecord):
    """One filter, test, function or method with its arguments."""

    sort: Sort
    name: str
    span: Span
    """Where the name stands, without quotes."""
    positional: int
    keywords: tuple[str, ...]
    is_open: bool
    """Some arguments come from `*x` or `**x`, so their number is not known."""
    receiver: t.Expression | None = None

    @property
    def signature(self) -> Signature | None:
        return _TABLES[self.sort].get(self.name)


def applications(names: TemplateNames) -> Iterator[Application]:
    """Yield everything that a template applies by name."""
    for filter in names.filters:
        yield _application("filter", filter, filter.name, filter.name_span, filter.node)
        yield from _named_by_argument(filter)
    for test in names.tests:
        yield _application("test", test, test.name, test.name_span, test.node)
    for call in names.calls:
        callee = call.node
        if isinstance(callee, t.Name):
            yield _application("function", call, callee.name, callee.name_span)
        elif isinstance(callee, t.Getattr):
            yield _application("method", call, callee.name, callee.name_span, callee.node)


def _application(
    sort: Sort, node: t.Filter | t.Test | t.Call, name: str, span: Span, receiver: t.Expression | None = None
) -> Application:
    is_open = node.dyn_args is not None or node.dyn_kwargs is not None
    return Application(sort, name, span, len(node.args), _keywords(node), is_open, receiver)


def _named_by_argument(filter: t.Filter) -> Iterator[Application]:
    named = NAMED_BY_ARGUMENT.get(filter.name)
    if named is None or len(filter.args) <= named[1]:
        return
    sort: Sort = "filter" if named[0] == "filter" else "test"
    position = named[1]
    name = filter.args[position]
    if isinstance(name, t.Const) and isinstance(name.value, str):
        span = type(name.span)(name.span.start + 1, name.span.end - 1)
        is_open = filter.dyn_args is not None or filter.dyn_kwargs is not None
        yield Application(sort, name.value, span, len(filter.args) - position - 1, _keywords(filter), is_open)


def _keywords(node: t.Filter | t.Test | t.Call) -> tuple[str, ...]:
    return tuple(keyword.name for keyword in node.kwargs)
