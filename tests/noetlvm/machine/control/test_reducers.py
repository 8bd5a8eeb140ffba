"""What iterations of a parallel loop wrote, merged in index order (S26)."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.bytecode import isa
from noetlvm.machine.loops import REDUCERS, MergeError, deep_merge, merge_patches


def merged(reducer: str, *values: Any) -> Any:
    return merge_patches(dict(enumerate({"k": value} for value in values)), [("k", reducer)])["k"]


@pytest.mark.parametrize(
    ("reducer", "values", "expected"),
    [
        ("sum", (1, 2, 3.5), 6.5),
        ("min", (3, 1, 2), 1),
        ("max", ("a", "c", "b"), "c"),
        ("count", (None, None), 2),
        ("any", (0, "", 1), True),
        ("all", (1, 0), False),
        ("first", ("x", "y"), "x"),
        ("last", ("x", "y"), "y"),
        ("append", ([1], 2), [[1], 2]),
        ("extend", ([1], [2, 3]), [1, 2, 3]),
        ("merge", ({"a": {"x": 1}}, {"a": {"y": 2}, "b": 3}), {"a": {"x": 1, "y": 2}, "b": 3}),
    ],
)
def test_each_reducer(reducer: str, values: tuple[Any, ...], expected: Any) -> None:
    assert merged(reducer, *values) == expected


def test_there_is_one_for_each_name_a_bundle_may_use() -> None:
    assert tuple(REDUCERS) == isa.REDUCERS


@pytest.mark.parametrize(
    ("reducer", "values"),
    [("sum", (1, "a")), ("sum", (True,)), ("min", (1, "a")), ("extend", ([1], 2)), ("merge", ({}, []))],
)
def test_values_that_a_reducer_cannot_take_are_an_error_that_names_the_key(
    reducer: str, values: tuple[Any, ...]
) -> None:
    with pytest.raises(MergeError, match="`k` cannot be reduced") as caught:
        merged(reducer, *values)
    assert caught.value.error["kind"] == "reducer"


def test_the_order_is_that_of_the_indices_not_of_the_writes() -> None:
    assert merge_patches({2: {"k": "c"}, 0: {"k": "a"}, 1: {"k": "b"}}, [("k", "append")]) == {"k": ["a", "b", "c"]}


def test_equal_writes_need_no_reducer() -> None:
    assert merge_patches({0: {"k": [1]}, 5: {"k": [1]}}, []) == {"k": [1]}


def test_different_writes_without_a_reducer_conflict_and_say_what_to_do() -> None:
    with pytest.raises(
        MergeError, match=r"iterations 0 and 5 write different values to `ctx\.k`; name a reducer"
    ) as caught:
        merge_patches({0: {"k": 1}, 5: {"k": 2}}, [("other", "sum")])
    assert caught.value.error["kind"] == "ctx_conflict"


def test_reducers_that_look_at_values_read_references() -> None:
    stored = {"ref": [1, 2]}
    assert merge_patches({0: {"k": "ref"}}, [("k", "extend")], lambda value: stored.get(value, value)) == {"k": [1, 2]}


def test_deep_merge_replaces_lists_and_leaves_its_arguments_alone() -> None:
    under = {"a": {"x": 1}, "l": [1, 2]}
    assert deep_merge(under, {"a": {"y": 2}, "l": [3]}) == {"a": {"x": 1, "y": 2}, "l": [3]}
    assert under == {"a": {"x": 1}, "l": [1, 2]}


@pytest.mark.parametrize(("under", "over"), [({"a": 1}, 2), (2, {"a": 1})])
def test_a_mapping_and_anything_else_do_not_merge(under: object, over: object) -> None:
    assert deep_merge({"key": under}, {"key": over}) == {"key": over}
