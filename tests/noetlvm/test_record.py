"""Records behave as frozen dataclasses do."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from noetlvm.record import IdentityRecord, Record, as_data, changed, fields_of


class Point(Record):
    x: int
    y: int = 0


class Marked(Point):
    label: str = "none"


class Thing(IdentityRecord):
    name: str


def test_values_come_in_order_by_name_or_by_default() -> None:
    assert [as_data(point) for point in (Point(1, 2), Point(1, y=2), Point(y=2, x=1), Point(1))] == [
        {"x": 1, "y": 2},
        {"x": 1, "y": 2},
        {"x": 1, "y": 2},
        {"x": 1, "y": 0},
    ]


def test_inherited_fields_come_first() -> None:
    assert fields_of(Marked) == ("x", "y", "label")
    assert (Marked(1, 2, "a").label, Marked(1).label) == ("a", "none")


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3), {}), ((1, 2), {"x": 3}), ((1,), {"z": 3})])
def test_too_few_too_many_and_unknown_values_are_refused(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="Point"):
        Point(*values, **named)


def test_a_record_is_frozen_and_may_be_copied_with_changes() -> None:
    point = Point(1, 2)
    with pytest.raises(AttributeError):
        point.x = 3  # type: ignore[misc]
    assert changed(point, y=5) == Point(1, 5)
    assert point == Point(1, 2)


def test_records_are_equal_by_value_and_class_and_entities_by_identity() -> None:
    assert Point(1, 0) == Point(1)
    assert hash(Point(1, 0)) == hash(Point(1))
    assert Point(1, 0) != Marked(1, 0)
    assert Thing("a") != Thing("a")


def test_a_record_survives_pickling_and_shows_its_fields() -> None:
    assert pickle.loads(pickle.dumps(Marked(1, 2, "a"))) == Marked(1, 2, "a")
    assert repr(Point(1, 2)) == "Point(x=1, y=2)"


def test_a_field_is_given_once() -> None:
    with pytest.raises(TypeError, match="`x` twice"):
        Point(1, x=2)  # type: ignore[misc]
