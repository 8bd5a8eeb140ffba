"""The tests a template may use after `is`, and by name in `select` and `reject`: Jinja2's own, as far as they are pure.

This is the language's table of tests; the tests of the project live elsewhere.
"""

from __future__ import annotations

from noetlvm.language.methods import table

TESTS = table(
    ("!=", "b /", "Differs from `b`."),
    ("<", "b /", "Is less than `b`."),
    ("<=", "b /", "Is at most `b`."),
    ("==", "b /", "Equals `b`."),
    (">", "b /", "Is greater than `b`."),
    (">=", "b /", "Is at least `b`."),
    ("boolean", "", "Is `true` or `false`."),
    ("defined", "", "Exists."),
    ("divisibleby", "num", "Is divisible by `num`."),
    ("eq", "b /", "Equals `b`."),
    ("equalto", "b /", "Equals `b`."),
    ("even", "", "Is an even number."),
    ("false", "", "Is `false` itself, not merely empty."),
    ("float", "", "Is a floating-point number."),
    ("ge", "b /", "Is at least `b`."),
    ("greaterthan", "b /", "Is greater than `b`."),
    ("gt", "b /", "Is greater than `b`."),
    ("in", "seq", "Is an item of `seq`."),
    ("integer", "", "Is an integer."),
    ("iterable", "", "Can be iterated: text, list or mapping."),
    ("le", "b /", "Is at most `b`."),
    ("lessthan", "b /", "Is less than `b`."),
    ("lower", "", "Is text in lower case."),
    ("lt", "b /", "Is less than `b`."),
    ("mapping", "", "Is a mapping."),
    ("ne", "b /", "Differs from `b`."),
    ("none", "", "Is null."),
    ("number", "", "Is a number."),
    ("odd", "", "Is an odd number."),
    ("sequence", "", "Has a length and items: text, list or mapping."),
    ("string", "", "Is text."),
    ("true", "", "Is `true` itself, not merely non-empty."),
    ("undefined", "", "Does not exist."),
    ("upper", "", "Is text in upper case."),
)

REJECTED_TESTS: dict[str, str] = {
    # Data is never callable, so the answer would be a constant.
    "callable": "data is never callable; test what it is: `is mapping`, `is string`, `is defined`",
    # Tests for a type of Jinja2's that is not a value of the language.
    "escaped": "there is no HTML escaping of text; escape it where you use it, with `| escape`",
    # Both test what the implementation offers, not what the data is; a bundle would answer differently elsewhere.
    "filter": "the set of filters is fixed; lint reports unknown ones",
    "test": "the set of tests is fixed; lint reports unknown ones",
    # Identity of objects does not survive the event log.
    "sameas": "use `==`, or `is true`, `is false`, `is none`",
    # Habits from other places.
    "contains": "use `item in x`",
    "dict": "use `is mapping`",
    "empty": "use `not x`, or `x | length == 0`",
    "list": "use `is sequence and x is not string`",
    "match": "use `.startswith()`, or a `python` task for patterns",
    "null": "use `is none`",
    "present": "use `is defined`",
}
"""Tests from Jinja2, Python or other languages that do not exist here, and what to write instead."""
