"""Frozen records that are cheap to define.

A linter is a short-lived process, and `dataclass(frozen=True, slots=True)` compiles several functions for each class:
for a hundred small classes that took longer than linting a file. Here the functions are written once, below, and work
from each class's list of fields. Type checkers see dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, dataclass_transform


@dataclass_transform(frozen_default=True)
class _RecordType(type):
    """Turns annotations into slots, and remembers fields and defaults."""

    _fields: tuple[str, ...]
    _defaults: dict[str, Any]
    _setters: dict[str, Callable[[Any, Any], None]]
    """How to fill each slot of a new record; faster than by its name."""
    _order: tuple[Callable[[Any, Any], None], ...]
    """The same, for values that come in the fields' order."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, cached: bool = False
    ) -> _RecordType:
        own = tuple(namespace.get("__annotations__", ()))
        defaults = {field: namespace.pop(field) for field in own if field in namespace}
        namespace["__slots__"] = (*own, "__dict__") if cached else own
        made = super().__new__(cls, name, bases, namespace)
        inherited = [base for base in bases if isinstance(base, _RecordType)]
        made._fields = sum((base._fields for base in inherited), ()) + own
        made._defaults = {key: value for base in inherited for key, value in base._defaults.items()} | defaults
        made._setters = {field: getattr(made, field).__set__ for field in made._fields}
        made._order = tuple(made._setters.values())
        type.__setattr__(made, "__match_args__", made._fields)
        return made

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, cached: bool = False) -> None:
        """`cached` leaves room for `functools.cached_property`."""
        super().__init__(name, bases, namespace)


AnyRecord = TypeVar("AnyRecord", bound="Record")


class Record(metaclass=_RecordType):
    """A value with named fields, equal to another of its class if all fields are."""

    def __init__(self, *values: Any, **named: Any) -> None:
        order = type(self)._order
        for setter, value in zip(order, values):  # noqa: B905 - `_complete` counts; here every word costs
            setter(self, value)
        if named or len(values) != len(order):
            self._complete(len(values), named)

    def _complete(self, given: int, named: dict[str, Any]) -> None:
        """Set what was given by name, and what was not given to its default."""
        cls = type(self)
        if given + len(named) > len(cls._fields) or not named.keys() <= cls._setters.keys():
            raise TypeError(f"{cls.__name__} has the fields {', '.join(cls._fields)} and no more")
        if twice := named.keys() & set(cls._fields[:given]):
            raise TypeError(f"{cls.__name__} is given `{min(twice)}` twice")
        for field, value in named.items():
            cls._setters[field](self, value)
        for field in cls._fields[given:]:
            if field not in named:
                if field not in cls._defaults:
                    raise TypeError(f"{cls.__name__} needs `{field}`")
                cls._setters[field](self, cls._defaults[field])

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, field) == getattr(other, field) for field in type(self)._fields)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, field) for field in type(self)._fields))

    def __repr__(self) -> str:
        shown = ", ".join(f"{field}={getattr(self, field)!r}" for field in type(self)._fields)
        return f"{type(self).__name__}({shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field) for field in type(self)._fields)


class IdentityRecord(Record):
    """A record that is equal to itself only: two tasks that read alike are still two tasks."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__


def changed(record: AnyRecord, **changes: Any) -> AnyRecord:
    """Return a copy of a record with some fields changed."""
    cls = type(record)
    return cls(**{field: changes[field] if field in changes else getattr(record, field) for field in cls._fields})


def as_data(value: Any) -> Any:
    """Return a record as plain data: mappings, lists and what they hold."""
    if isinstance(value, Record):
        return {field: as_data(getattr(value, field)) for field in type(value)._fields}
    if isinstance(value, Mapping):
        return {key: as_data(item) for key, item in value.items()}
    return [as_data(item) for item in value] if isinstance(value, tuple | list) else value


def fields_of(cls: type[Record]) -> tuple[str, ...]:
    """Return the names of a record's fields, inherited ones first."""
    return cls._fields
