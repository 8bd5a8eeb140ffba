"""Every filter, test, function and method of the tables is implemented, and takes what its row says."""

from __future__ import annotations

import inspect

import pytest

from noetlvm.expr.calls import SIGNATURES, implementations, named
from noetlvm.expr.method_calls import BY_TYPE
from noetlvm.language.methods import METHODS

ROWS = [(opcode, name) for opcode, table in SIGNATURES.items() for name in table]


def test_nothing_is_implemented_that_is_not_in_a_table() -> None:
    assert {opcode: set(table) for opcode, table in implementations().items()} == {
        opcode: set(table) for opcode, table in SIGNATURES.items()
    }


def test_methods_belong_to_the_types_of_their_row() -> None:
    by_name = {name: {kind.__name__ for kind, methods in BY_TYPE.items() if name in methods} for name in METHODS}
    assert by_name == {name: set(method.types) for name, method in METHODS.items()}


@pytest.mark.parametrize(("opcode", "name"), ROWS)
def test_an_implementation_takes_what_its_row_says(opcode: str, name: str) -> None:
    row = named(opcode, name)
    parameters = inspect.signature(row.function)
    for count in range(row.signature.required, len(row.signature.parameters) + 1):
        parameters.bind("fuel", "value", *range(count))
    for keyword in row.signature.keywords[row.signature.required :]:
        parameters.bind("fuel", "value", *range(row.signature.required), **{keyword: 1})
