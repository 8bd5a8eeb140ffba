"""Each row of the filter, test and method tables accepts exactly the calls that Jinja2, or Python, accepts."""

import inspect
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest
from jinja2 import Environment, TemplateRuntimeError
from jinja2.defaults import DEFAULT_NAMESPACE
from jinja2.exceptions import FilterArgumentError
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.tests import TESTS as JINJA_TESTS

from noetlvm.language.filters import (
    FILTERS,
    FUNCTIONS,
    NAMED_BY_ARGUMENT,
    REJECTED_FILTERS,
    REJECTED_FUNCTIONS,
    REJECTED_TESTS,
    TESTS,
)
from noetlvm.language.methods import METHODS, REJECTED_METHODS, Signature

RECEIVERS: dict[str, Any] = {"str": "abc", "list": ["a"], "dict": {"a": 1}, "float": 1.0}

PASSED_BY_JINJA = {"environment", "env", "context", "eval_ctx"}

# Jinja2 takes anything here and looks at it when it runs; the table says at once what is missing.
STRICTER = {"selectattr", "rejectattr"}

# The C implementation of these offers no signature to look at; arguments that each accepts, up to the greatest number.
PROBES: dict[str, tuple[Any, ...]] = {
    "copy": (),
    "items": (),
    "keys": (),
    "values": (),
    "count": ("a", 0, 1),
    "endswith": ("c", 0, 1),
    "find": ("a", 0, 1),
    "index": ("a", 0, 1),
    "rfind": ("a", 0, 1),
    "rindex": ("a", 0, 1),
    "startswith": ("a", 0, 1),
    "range": (1, 2, 1),
    "dict": ({},),
}


def calls(row: Signature) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Every number of positional arguments up to one too many, with no, one or two names, one of them unknown."""
    names = (*row.parameters, "nonsense")
    for positional in range(len(row.parameters) + 2):
        for size in range(3):
            for keywords in combinations(names, size):
                yield positional, keywords


def accepts(function: Callable[..., Any], leading: int, positional: int, keywords: tuple[str, ...]) -> bool:
    try:
        inspect.signature(function).bind(*range(leading + positional), **dict.fromkeys(keywords))
    except TypeError:
        return False
    return True


def leading(function: Callable[..., Any]) -> int:
    """The piped value, and before it what Jinja2 passes on its own account."""
    return 1 + (next(iter(inspect.signature(function).parameters)) in PASSED_BY_JINJA)


def disagreements(row: Signature, function: Callable[..., Any]) -> list[tuple[int, tuple[str, ...]]]:
    first = leading(function)
    return [call for call in calls(row) if (row.problem(*call) is None) != accepts(function, first, call[0], call[1])]


@pytest.mark.parametrize("name", sorted(set(FILTERS) - STRICTER))
def test_filter_takes_what_jinja_takes(name: str) -> None:
    assert disagreements(FILTERS[name], JINJA_FILTERS[name]) == []


@pytest.mark.parametrize("name", sorted(STRICTER))
def test_filter_that_is_stricter_than_its_signature_is_right(name: str) -> None:
    assert FILTERS[name].problem(0) is not None
    assert FILTERS[name].problem(1) is None
    with pytest.raises(FilterArgumentError):
        Environment().from_string(f"{{{{ [1] | {name} | list }}}}").render()


@pytest.mark.parametrize("name", sorted(TESTS))
def test_test_takes_what_jinja_takes(name: str) -> None:
    function: Any = JINJA_TESTS[name]
    assert disagreements(TESTS[name], function) == []


def test_every_filter_of_jinja_is_allowed_or_rejected_with_a_hint() -> None:
    assert set(FILTERS) | (set(REJECTED_FILTERS) & set(JINJA_FILTERS)) == set(JINJA_FILTERS)


def test_every_test_of_jinja_is_allowed_or_rejected_with_a_hint() -> None:
    assert set(TESTS) | (set(REJECTED_TESTS) & set(JINJA_TESTS)) == set(JINJA_TESTS)


def test_every_function_of_jinja_is_allowed_or_rejected_with_a_hint() -> None:
    assert set(FUNCTIONS) | (set(REJECTED_FUNCTIONS) & set(DEFAULT_NAMESPACE)) == set(DEFAULT_NAMESPACE)


@pytest.mark.parametrize(
    ("allowed", "rejected"),
    [
        (FILTERS, REJECTED_FILTERS),
        (TESTS, REJECTED_TESTS),
        (FUNCTIONS, REJECTED_FUNCTIONS),
        (METHODS, REJECTED_METHODS),
    ],
)
def test_nothing_is_both_allowed_and_rejected(allowed: dict[str, Any], rejected: dict[str, str]) -> None:
    assert not set(allowed) & set(rejected)
    assert all(rejected.values())


@pytest.mark.parametrize("rows", [FILTERS, TESTS, FUNCTIONS])
def test_rows_stand_under_their_name_and_have_a_meaning(rows: dict[str, Signature]) -> None:
    assert all(row.name == name and row.doc.endswith(".") for name, row in rows.items())


@pytest.mark.parametrize(
    ("template", "message"),
    [("{{ [1] | map('nope') | list }}", "filter"), ("{{ [1] | select('nope') | list }}", "test")],
)
def test_jinja_looks_up_the_name_that_map_and_select_are_given(template: str, message: str) -> None:
    with pytest.raises(TemplateRuntimeError, match=f"No {message} named 'nope'"):
        Environment().from_string(template).render()


@pytest.mark.parametrize("name", NAMED_BY_ARGUMENT)
def test_the_argument_that_names_a_filter_or_test_is_where_the_table_says(name: str) -> None:
    table, position = NAMED_BY_ARGUMENT[name]
    arguments = ["'a'"] * position + ["'nope'"]
    with pytest.raises(TemplateRuntimeError, match=f"No {table} named 'nope'"):
        Environment().from_string(f"{{{{ [{{'a': 1}}] | {name}({', '.join(arguments)}) | list }}}}").render()


METHOD_ROWS = [(name, kind) for name, method in METHODS.items() for kind in method.types]


@pytest.mark.parametrize(("name", "kind"), METHOD_ROWS)
def test_method_takes_no_more_than_python_takes(name: str, kind: str) -> None:
    row, bound = METHODS[name].signature, getattr(RECEIVERS[kind], name)
    if name in PROBES:
        assert_probe(row, bound, kind)
        return
    for positional, keywords in calls(row):
        fits = row.problem(positional, keywords) is None
        # Later Pythons let more parameters be named, so without names the two agree, and with names ours requires more.
        if not keywords:
            assert fits == accepts(bound, 0, positional, keywords)
        elif fits:
            assert accepts(bound, 0, positional, keywords)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_takes_what_python_takes(name: str) -> None:
    function: Any = DEFAULT_NAMESPACE[name]
    assert_probe(FUNCTIONS[name], function, name)


def assert_probe(row: Signature, function: Callable[..., Any], kind: str) -> None:
    # `list.count` takes one argument and `str.count` three: one row serves both, and the evaluator knows the value.
    probe = PROBES[row.name][:1] if (row.name, kind) == ("count", "list") else PROBES[row.name]
    for positional in range(row.required, len(probe) + 1):
        assert row.problem(positional) is None
        function(*probe[:positional])
    with pytest.raises(TypeError):
        function(*PROBES[row.name], 0, 0, 0)
    assert row.problem(len(row.parameters) + 1) is not None
    if row.required:
        with pytest.raises(TypeError):
            function(*probe[: row.required - 1])
        assert row.problem(row.required - 1) is not None


MUTABLE = ("list", "dict")


@pytest.mark.parametrize(("name", "kind"), [row for row in METHOD_ROWS if row[1] in MUTABLE])
def test_allowed_method_leaves_its_receiver_alone(name: str, kind: str) -> None:
    receiver = RECEIVERS[kind].copy()
    getattr(receiver, name)(*["a"] * METHODS[name].signature.required)
    assert receiver == RECEIVERS[kind]


def test_every_method_of_lists_and_mappings_that_changes_them_has_a_hint() -> None:
    public = {name for kind in (list, dict) for name in dir(kind) if not name.startswith("_")}
    assert public - set(METHODS) - {"fromkeys"} <= set(REJECTED_METHODS)
