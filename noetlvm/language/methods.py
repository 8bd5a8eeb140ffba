"""Signatures of whatever a template calls, and the methods of text, lists, mappings and numbers that only read (S12).

A method that changes its receiver is out, because data here never changes in place; so is one that leads to Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from noetlvm.record import Record


class Signature(Record):
    """Name, parameters and meaning. The piped, tested or receiving value is not a parameter."""

    name: str
    parameters: tuple[str, ...]
    required: int
    """How many parameters, counted from the first, have no default."""
    positional_only: int
    """How many parameters, counted from the first, cannot be given by name."""
    variadic: bool
    """Takes any number of further positional arguments."""
    any_keyword: bool
    """Takes any further named arguments."""
    doc: str

    @property
    def most(self) -> int | None:
        """The greatest number of positional arguments, or None if there is no limit."""
        return None if self.variadic else len(self.parameters)

    @property
    def keywords(self) -> tuple[str, ...]:
        """The parameters that can be given by name."""
        return self.parameters[self.positional_only :]

    def problem(self, positional: int, keywords: Sequence[str] = ()) -> str | None:
        """Say in a sentence why a call with these arguments fails, or return None if it fits."""
        return next(self._problems(positional, keywords), None)

    def problem_with_spread(self, positional: int, keywords: Sequence[str]) -> str | None:
        """Say why a call fails even if `*args` and `**kwargs` supply every missing argument, or return None."""
        positional = max(positional, min(self.required, self.positional_only))
        missing = [name for name in self.parameters[positional : self.required] if name not in keywords]
        return self.problem(positional, [*keywords, *missing])

    def _problems(self, positional: int, keywords: Sequence[str]) -> Iterator[str]:
        if self.most is not None and positional > self.most:
            yield f"`{self.name}` takes {self._expected()}, not {positional}"
        given = set(self.parameters[:positional])
        named = given.intersection(self.keywords)
        for keyword in keywords:
            if keyword in named:
                yield f"`{self.name}` gets `{keyword}` twice"
            elif keyword not in self.keywords and not self.any_keyword:
                yield f"`{self.name}` has no argument named `{keyword}`{self._offer()}"
            named.add(keyword)
        given |= named.intersection(self.keywords)
        missing = [name for name in self.parameters[: self.required] if name not in given]
        if missing:
            yield f"`{self.name}` lacks {' and '.join(f'`{name}`' for name in missing)}: it takes {self._expected()}"

    def _expected(self) -> str:
        most = len(self.parameters)
        if self.variadic:
            return f"at least {_arguments(self.required)}"
        if most == 0:
            return "no arguments"
        if self.required == most:
            return _arguments(most)
        return f"{self.required} to {_arguments(most)}" if self.required else f"at most {_arguments(most)}"

    def _offer(self) -> str:
        return f" (it has {', '.join(f'`{name}`' for name in self.keywords)})" if self.keywords else ""


def _arguments(count: int) -> str:
    return f"{count} argument" if count == 1 else f"{count} arguments"


def signature(name: str, parameters: str, doc: str) -> Signature:
    """Make a signature from Python's own notation, by spaces: `old new count?`, `chars? /`, `* **`.

    A question mark ends an optional parameter, those before `/` cannot be named, `*` and `**` take whatever comes.
    """
    words = parameters.split()
    names = [word for word in words if word not in ("/", "*", "**")]
    return Signature(
        name,
        tuple(word.rstrip("?") for word in names),
        required=sum(not word.endswith("?") for word in names),
        positional_only=words.index("/") if "/" in words else 0,
        variadic="*" in words,
        any_keyword="**" in words,
        doc=doc,
    )


def table(*rows: tuple[str, str, str]) -> dict[str, Signature]:
    """Make a table by name from rows of name, parameters and meaning."""
    return {name: signature(name, parameters, doc) for name, parameters, doc in rows}


class Method(Record):
    """A method and the types of value that have it, by their Python names."""

    signature: Signature
    types: tuple[str, ...]


_ROWS = (
    ("capitalize", "str", "", "The text with its first letter in upper case and the others in lower case."),
    ("casefold", "str", "", "The text in a form for comparison without regard to case."),
    ("center", "str", "width fillchar? /", "The text in the middle of `width` characters."),
    ("copy", "list dict", "", "A copy of the data."),
    ("count", "str list", "value start? end? /", "The number of occurrences of `value`."),
    ("endswith", "str", "suffix start? end? /", "Whether the text ends with `suffix`."),
    ("expandtabs", "str", "tabsize?", "The text with tabs replaced by spaces."),
    ("find", "str", "sub start? end? /", "The position of `sub`, or -1."),
    ("get", "dict", "key default? /", "The value of `key`, or `default`."),
    ("index", "str list", "value start? end? /", "The position of `value`; an error if it does not occur."),
    ("is_integer", "float", "", "Whether the number has no fraction."),
    ("isalnum", "str", "", "Whether there are only letters and digits."),
    ("isalpha", "str", "", "Whether there are only letters."),
    ("isascii", "str", "", "Whether there are only ASCII characters."),
    ("isdecimal", "str", "", "Whether there are only decimal digits."),
    ("isdigit", "str", "", "Whether there are only digits."),
    ("islower", "str", "", "Whether all letters are in lower case."),
    ("isnumeric", "str", "", "Whether there are only numeric characters."),
    ("isspace", "str", "", "Whether all characters are whitespace."),
    ("istitle", "str", "", "Whether each word begins with an upper-case letter."),
    ("isupper", "str", "", "Whether all letters are in upper case."),
    ("items", "dict", "", "The pairs of key and value."),
    ("join", "str", "iterable /", "One text of all items, with this text between them."),
    ("keys", "dict", "", "The keys."),
    ("ljust", "str", "width fillchar? /", "The text at the left of `width` characters."),
    ("lower", "str", "", "The text in lower case."),
    ("lstrip", "str", "chars? /", "The text without whitespace, or `chars`, at its start."),
    ("partition", "str", "sep /", "The text before `sep`, `sep`, and the text after it."),
    ("removeprefix", "str", "prefix /", "The text without `prefix` at its start."),
    ("removesuffix", "str", "suffix /", "The text without `suffix` at its end."),
    ("replace", "str", "old new count? /", "The text with `old` replaced by `new`."),
    ("rfind", "str", "sub start? end? /", "The last position of `sub`, or -1."),
    ("rindex", "str", "sub start? end? /", "The last position of `sub`; an error if it does not occur."),
    ("rjust", "str", "width fillchar? /", "The text at the right of `width` characters."),
    ("rpartition", "str", "sep /", "Like `partition`, at the last `sep`."),
    ("rsplit", "str", "sep? maxsplit?", "The parts between `sep`, counted from the end."),
    ("rstrip", "str", "chars? /", "The text without whitespace, or `chars`, at its end."),
    ("split", "str", "sep? maxsplit?", "The parts between `sep`, or between whitespace."),
    ("splitlines", "str", "keepends?", "The lines."),
    ("startswith", "str", "prefix start? end? /", "Whether the text begins with `prefix`."),
    ("strip", "str", "chars? /", "The text without whitespace, or `chars`, at both ends."),
    ("swapcase", "str", "", "The text with upper and lower case exchanged."),
    ("title", "str", "", "The text with the first letter of each word in upper case."),
    ("upper", "str", "", "The text in upper case."),
    ("values", "dict", "", "The values."),
    ("zfill", "str", "width /", "The number as text, with zeros in front."),
)

METHODS: dict[str, Method] = {
    name: Method(signature(name, parameters, doc), tuple(types.split())) for name, types, parameters, doc in _ROWS
}

_NO_BYTES = "values are text, never bytes; encode in a `python` task"
_NO_TIME = "times are text here; compute with them in a `python` task"

REJECTED_METHODS: dict[str, str] = {
    # These change their receiver.
    "add": "data does not change in place; write `x + [item]`",
    "append": "data does not change in place; write `x + [item]`",
    "clear": "data does not change in place; write `[]` or `{}`",
    "extend": "data does not change in place; write `x + other`",
    "insert": "data does not change in place; write `x[:i] + [item] + x[i:]`",
    "pop": "data does not change in place; read `x[-1]`, and continue with `x[:-1]`",
    "popitem": "data does not change in place; read it with `x | dictsort | last`",
    "push": "data does not change in place; write `x + [item]`",
    "remove": "data does not change in place; write `x | reject('equalto', item) | list`",
    "reverse": "use the filter: `x | reverse | list`",
    "setdefault": "data does not change in place; read with `x.get(key, default)`",
    "sort": "use the filter: `x | sort`",
    "update": "data does not change in place; write `dict(x, **other)`",
    # These lead from data to Python.
    "decode": _NO_BYTES,
    "encode": _NO_BYTES,
    "format": "use the filter: `'%s-%s' | format(a, b)`, or join with `~`",
    "format_map": "use the filter: `'%s-%s' | format(a, b)`, or join with `~`",
    "maketrans": "use `.replace()`",
    "translate": "use `.replace()`",
    # Habits from other places.
    "contains": "use `item in x`",
    "filter": "use the filters `select` and `selectattr`",
    "has_key": "use `key in x`",
    "includes": "use `item in x`",
    "isoformat": _NO_TIME,
    "iteritems": "use `.items()`",
    "length": "use the filter: `x | length`",
    "map": "use the filter: `x | map(attribute='name')`",
    "size": "use the filter: `x | length`",
    "strftime": _NO_TIME,
    "substring": "use a slice: `x[2:5]`",
    "toString": "use the filter: `x | string`",
    "toLowerCase": "use `.lower()`",
    "toUpperCase": "use `.upper()`",
    "trim": "use `.strip()`",
}
"""Methods from Jinja2, Python or other languages that do not exist here, and what to write instead."""
