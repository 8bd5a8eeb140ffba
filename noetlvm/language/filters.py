"""The filters, tests and functions a template may use: Jinja2's own, as far as they are pure (S12).

Pure means that the same data gives the same value, today, on another machine and in a replay. Bounds on time and size
are the evaluator's business, not this table's.
"""

from __future__ import annotations

from noetlvm.language.methods import table

FILTERS = table(
    ("abs", "", "The absolute value of the number."),
    ("batch", "linecount fill_with?", "The list in pieces of `linecount` items."),
    ("capitalize", "", "The text with its first letter in upper case and the others in lower case."),
    ("center", "width?", "The text in the middle of `width` characters."),
    ("count", "", "The number of items or characters; same as `length`."),
    ("d", "default_value? boolean?", "Same as `default`."),
    ("default", "default_value? boolean?", "Another value if this one is undefined, or false with `boolean=true`."),
    ("dictsort", "case_sensitive? by? reverse?", "The mapping as a sorted list of pairs."),
    ("e", "", "Same as `escape`."),
    ("escape", "", "The text with HTML's special characters escaped."),
    ("filesizeformat", "binary?", "A number of bytes in readable form, such as `13 kB`."),
    ("first", "", "The first item."),
    ("float", "default?", "The value as a floating-point number, or `default` if it is not a number."),
    ("forceescape", "", "The text escaped for HTML even if it already is."),
    ("format", "* **", "The text with its `%s` and `%d` filled in."),
    ("groupby", "attribute default? case_sensitive?", "Items grouped by a field: pairs of its value and the items."),
    ("indent", "width? first? blank?", "The text with its lines indented."),
    ("int", "default? base?", "The value as an integer, or `default` if it is not a number."),
    ("items", "", "The mapping's pairs of key and value."),
    ("join", "d? attribute?", "One text of all items, with `d` between them."),
    ("last", "", "The last item."),
    ("length", "", "The number of items or characters."),
    ("list", "", "The value as a list."),
    ("lower", "", "The text in lower case."),
    ("map", "* **", "The results of a filter for each item, or with `attribute=` one field of each."),
    ("max", "case_sensitive? attribute?", "The largest item."),
    ("min", "case_sensitive? attribute?", "The smallest item."),
    ("reject", "* **", "The items for which a test is false."),
    ("rejectattr", "attribute / * **", "The items for which a test of one field is false."),
    ("replace", "old new count?", "The text with `old` replaced by `new`."),
    ("reverse", "", "The text or list in reverse order."),
    ("round", "precision? method?", "The number rounded; `method` is `common`, `ceil` or `floor`."),
    ("safe", "", "The text unchanged; there is no HTML escaping."),
    ("select", "* **", "The items for which a test is true."),
    ("selectattr", "attribute / * **", "The items for which a test of one field is true."),
    ("slice", "slices fill_with?", "The list in `slices` parts of about the same length."),
    ("sort", "reverse? case_sensitive? attribute?", "The items in order."),
    ("string", "", "The value as text."),
    ("striptags", "", "The text without HTML tags."),
    ("sum", "attribute? start?", "The sum of the items, or of one field of each."),
    ("title", "", "The text with the first letter of each word in upper case."),
    ("tojson", "indent?", "The value as JSON text."),
    ("trim", "chars?", "The text without whitespace, or `chars`, at both ends."),
    ("truncate", "length? killwords? end? leeway?", "The text cut to `length` characters."),
    ("unique", "case_sensitive? attribute?", "The items without repetitions."),
    ("upper", "", "The text in upper case."),
    ("urlencode", "", "The text or mapping as a part of a URL."),
    ("urlize", "trim_url_limit? nofollow? target? rel? extra_schemes?", "The text with its URLs as HTML links."),
    ("wordcount", "", "The number of words."),
    ("wordwrap", "width? break_long_words? wrapstring? break_on_hyphens?", "The text in lines of `width` characters."),
    ("xmlattr", "autospace?", "The mapping as XML attributes."),
)

NAMED_BY_ARGUMENT: dict[str, tuple[str, int]] = {
    "map": ("filter", 0),
    "select": ("test", 0),
    "reject": ("test", 0),
    "selectattr": ("test", 1),
    "rejectattr": ("test", 1),
}
"""Filters that are given another filter or test by name, and at which positional argument: that name is checked too."""

REJECTED_FILTERS: dict[str, str] = {
    # Jinja2 has these three; they are not pure functions of data.
    "random": "a template must give the same value every time; choose in a `python` task and pass the result on",
    "attr": "`a.b` and `a['b']` read data; Python's attributes are not part of the language",
    "pprint": "it prints Python syntax; use `tojson(indent=2)`",
    # Habits from other places.
    "b64decode": "decode in a `python` task",
    "b64encode": "encode in a `python` task",
    "bool": "compare instead: `x == 'true'`, or put it in a `when`, where the text `false` is false",
    "combine": "use `dict(a, **b)`",
    "from_json": "the http tool already parses JSON; otherwise parse in a `python` task",
    "json": "use `tojson`",
    "keys": "use `.keys()`, or `list` on the mapping",
    "len": "use `length`",
    "regex_replace": "use `replace` for plain text, or a `python` task",
    "size": "use `length`",
    "split": "use the method: `x.split(',')`",
    "str": "use `string`",
    "strip": "use `trim`",
    "ternary": "use `a if condition else b`",
    "to_json": "use `tojson`",
    "values": "use `.values()`",
}
"""Filters from Jinja2, Python or other languages that do not exist here, and what to write instead."""

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

FUNCTIONS = table(
    ("range", "start stop? step? /", "The integers from 0 to `start`, or from `start` to `stop`, without the last."),
    ("dict", "mapping? / **", "A new mapping of the arguments; later arguments replace earlier ones."),
)

REJECTED_FUNCTIONS: dict[str, str] = {
    # Jinja2 has these four; they make objects that change, or text from chance.
    "cycler": "it has state; use an index and `%`",
    "joiner": "it has state; use the filter `join`",
    "lipsum": "it makes random text",
    "namespace": "it has state; use `set_iter` or `set_ctx` to store a value",
    # Habits from other places.
    "abs": "use the filter: `x | abs`",
    "bool": "compare instead: `x == 'true'`, or put it in a `when`, where the text `false` is false",
    "env": "the environment is not visible; declare a keychain entry or a workload default",
    "float": "use the filter: `x | float`",
    "int": "use the filter: `x | int`",
    "len": "use the filter: `x | length`",
    "list": "use the filter: `x | list`",
    "max": "use the filter: `x | max`",
    "min": "use the filter: `x | min`",
    "now": "a template must give the same value every time; `event.timestamp` and `outcome.meta.ts` are recorded",
    "round": "use the filter: `x | round`",
    "sorted": "use the filter: `x | sort`",
    "str": "use the filter: `x | string`",
    "sum": "use the filter: `x | sum`",
}
"""Functions from Jinja2, Python or other languages that do not exist here, and what to write instead."""
