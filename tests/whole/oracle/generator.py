"""Random expressions and templates, mostly of fitting types, over a fixed context."""

from __future__ import annotations

from random import Random
from typing import Any

CONTEXT: dict[str, Any] = {
    "workload": {
        "n": 7,
        "zero": 0,
        "neg": -3,
        "pi": 3.25,
        "big": 10**12,
        "name": "Ada Lovelace",
        "empty": "",
        "html": "<b>x & 'y'</b>",
        "line": "one two  three\nfour-five\tsix",
        "unicode": "Größe ß 東京",
        "number_text": "42.5",
        "nothing": None,
        "yes": True,
        "no": False,
    },
    "ctx": {
        "numbers": [3, 1, 2, 10, -4],
        "words": ["beta", "Alpha", "gamma", "alpha"],
        "mixed": [1, "a", None, 2.5, True],
        "none": [],
        "nested": [[1, 2], [3], []],
        "rows": [
            {"id": 1, "name": "x", "tag": {"k": "b"}, "on": True},
            {"id": 3, "name": "Z", "tag": {"k": "A"}, "on": False},
            {"id": 2, "name": "y", "tag": {"k": "b"}},
        ],
    },
    "args": {"map": {"a": 1, "B": 2, "c": [1, 2]}, "deep": {"x": {"y": {"z": 5}}}, "shadow": "args"},
    "iter": {"index": 2, "item": {"id": 9, "labels": ["p", "q"]}, "shadow": "iter"},
    "steps": {"fetch": {"rows": [1, 2], "status": "ok"}},
    "execution_id": "e-1",
    "_prev": {"page": 3, "items": ["i", "j"]},
    "outcome": {"status": "error", "http": {"status": 503}, "error": {"kind": "timeout", "retryable": True}},
}

NUMBERS = (
    "workload.n",
    "workload.zero",
    "workload.neg",
    "workload.pi",
    "iter.index",
    "outcome.http.status",
    "n",
    "_prev.page",
)
TEXTS = (
    "workload.name",
    "workload.empty",
    "workload.html",
    "workload.line",
    "workload.unicode",
    "workload.number_text",
    "outcome.status",
    "execution_id",
    "shadow",
    "name",
)
LISTS = (
    "ctx.numbers",
    "ctx.words",
    "ctx.mixed",
    "ctx.none",
    "ctx.nested",
    "ctx.rows",
    "_prev['items']",
    "fetch.rows",
    "numbers",
)
MAPS = ("args.map", "args.deep", "iter.item", "outcome.error", "ctx.rows[0]", "workload", "fetch")
BOOLEANS = ("workload.yes", "workload.no", "outcome.error.retryable", "true", "false")
OTHERS = (
    "workload.nothing",
    "none",
    "missing",
    "ctx.missing.deeper",
    "outcome.http.headers",
    "args.map.zzz",
    "ctx.rows[9].name",
)

NUMBER_LITERALS = ("0", "1", "2", "-1", "3", "7", "10", "0.5", "2.0", "1.25", "100", "1e3")
TEXT_LITERALS = ("''", "'a'", "'Ada'", "','", "' '", "'x-y'", "'%s'", "'%d items'", "'true'", "'12'", "'<i>'", "'é'")

NUMBER_FILTERS = (
    "abs", "int", "float", "round", "round(1)", "round(1, 'ceil')", "round(0, 'floor')", "string", "filesizeformat",
    "default(1)", "round(-1)", "filesizeformat(true)",
)  # fmt: skip
TEXT_FILTERS = (
    "upper", "lower", "title", "capitalize", "trim", "length", "reverse", "string", "wordcount", "int", "float",
    "replace('a', 'bb')", "replace('o', '', 1)", "center(20)", "indent(2)", "indent(2, true)",
    "indent('> ', true, true)",
    "truncate(6, true)", "truncate(8)", "truncate(5, false, '..', 0)", "list", "first", "last", "escape", "e", "safe",
    "forceescape", "striptags", "urlencode", "wordwrap(5)", "wordwrap(6, false)", "tojson", "default('d')",
    "join('-')", "trim('A')", "count", "int(5)", "int(0, 16)", "unique", "sort", "format(3)", "urlize", "max", "min",
    "batch(3)", "slice(2)",
)  # fmt: skip
LIST_FILTERS = (
    "length", "first", "last", "list", "reverse", "sort", "sort(reverse=true)", "unique", "max", "min", "sum", "join",
    "join(', ')", "join('-', attribute='id')", "map('string')", "map('upper')", "map(attribute='id')",
    "map(attribute='tag.k')", "map(attribute='zz', default=0)", "map('default', 'x')", "select", "reject",
    "select('number')", "reject('string')", "select('defined')", "selectattr('on')", "selectattr('id', 'gt', 1)",
    "rejectattr('on')", "rejectattr('name', 'equalto', 'x')", "groupby('tag.k')", "groupby('name', default='d')",
    "batch(2)", "batch(2, 'f')", "slice(2)", "slice(3, 0)", "tojson", "string", "count", "default([])",
    "sort(attribute='id')", "sort(attribute='name,id')", "sum(attribute='id')", "sum(start=10)", "min(attribute='id')",
    "max(attribute='name')", "unique(attribute='tag.k')", "map('length')", "map('int')", "select('odd')", "urlencode",
    "sort(case_sensitive=true)", "map(attribute=0)", "sum(attribute='tag', start=[])", "tojson(2)", "map('first')",
)  # fmt: skip
MAP_FILTERS = (
    "length", "dictsort", "dictsort(true)", "dictsort(false, 'value')", "dictsort(reverse=true)", "items", "list",
    "first", "last", "tojson", "tojson(indent=1)", "string", "urlencode", "xmlattr", "xmlattr(false)", "count",
    "join(',')",
    "sort", "default({})", "map('upper')", "select('in', 'abc')", "reverse", "max",
)  # fmt: skip
TESTS = (
    "defined", "undefined", "none", "number", "integer", "float", "string", "mapping", "iterable", "sequence",
    "boolean",
    "true", "false", "odd", "even", "divisibleby(2)", "divisibleby 3", "lower", "upper", "in [1, 2, 'a']", "eq(1)",
    "ne('a')", "gt(1)", "lt 5", "ge(2)", "le(3)", "equalto('x')", "greaterthan(0)", "lessthan(9)",
)  # fmt: skip
TEXT_METHODS = (
    "upper()", "lower()", "split()", "split(',')", "split('-', 1)", "strip()", "startswith('A')", "endswith('s')",
    "replace('a', 'b')", "find('o')", "count('e')", "title()", "isdigit()", "isalpha()", "zfill(5)", "center(9, '*')",
    "ljust(12)", "rjust(12, '.')", "partition(' ')", "rpartition('-')", "splitlines()", "splitlines(true)",
    "swapcase()",
    "join(['x', 'y'])", "rsplit(' ', 1)", "lstrip('A')", "rstrip()", "capitalize()", "casefold()", "isupper()",
    "removeprefix('Ada')", "removesuffix('s')", "index('a')", "rfind('e')", "expandtabs(4)", "isspace()", "istitle()",
    "isalnum()", "isascii()", "islower()", "isnumeric()", "isdecimal()", "rindex('x')", "find('e', 2)",
    "split(maxsplit=1)",
)  # fmt: skip
LIST_METHODS = ("index(1)", "count('alpha')", "count(1)", "copy()", "index(3, 0, 2)")
MAP_METHODS = ("get('a')", "get('q', 5)", "get('id')", "keys()", "values()", "items()", "copy()", "get('x').y")


class Generator:
    """One stream of expressions; the same seed gives the same stream."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def _pick(self, *choices: Any) -> Any:
        return self._random.choice(choices)

    def template(self) -> str:
        """Return a template: mostly one expression, at times a text with statements."""
        if self._random.random() < 0.75:
            return f"{{{{ {self.anything(3)} }}}}"
        return "".join(self._part(2) for _ in range(self._random.randint(1, 4)))

    def anything(self, depth: int) -> str:
        kind = self._random.choices(
            (self.number, self.text, self.list, self.map, self.boolean, self._other), (5, 5, 5, 2, 5, 1)
        )[0]
        return str(kind(depth))

    def _maybe(self, depth: int, kind: Any) -> str:
        """Return an expression of a kind, at times of any other."""
        return self.anything(depth) if self._random.random() < 0.06 else str(kind(depth))

    def _choose(self, depth: int, kind: Any) -> str:
        first, second = self._maybe(depth, kind), self._maybe(depth, kind)
        return str(
            self._pick(
                f"({first} if {self.boolean(depth)} else {second})",
                f"({first} or {second})",
                f"({first} and {second})",
                f"({first} if {self.boolean(depth)})",
                f"({first} | default({second}))",
                f"({first} | default({second}, true))",
            )
        )

    def number(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.25:
            return str(self._pick(*NUMBERS, *NUMBER_LITERALS))
        left, right = self._maybe(depth - 1, self.number), self._maybe(depth - 1, self.number)
        return str(
            self._pick(
                f"({left} {self._pick('+', '-', '*', '/', '//', '%')} {right})",
                f"({left} {self._pick('+', '-', '*')} {right})",
                f"({left} ** {self._pick('2', '3', '-1', '0.5')})",
                f"-{left}" if not left.startswith("-") else left,
                f"({left} | {self._pick(*NUMBER_FILTERS)})",
                f"({self._maybe(depth - 1, self.list)} | {self._pick('length', 'sum', 'max', 'min', 'first')})",
                f"({self._maybe(depth - 1, self.text)} | {self._pick('length', 'int', 'float', 'wordcount')})",
                f"{self.list(depth - 1)}[{self._pick('0', '-1', '1', '99')}]",
                self._choose(depth - 1, self.number),
            )
        )

    def text(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.2:
            return str(self._pick(*TEXTS, *TEXT_LITERALS))
        inner = self._maybe(depth - 1, self.text)
        return str(
            self._pick(
                f"({inner} ~ {self.anything(depth - 1)})",
                f"({inner} + {self._maybe(depth - 1, self.text)})",
                f"({inner} * {self._pick('2', '0', '-1', '3')})",
                f"({inner} | {self._pick(*TEXT_FILTERS)})",
                f"({inner} | {self._pick(*TEXT_FILTERS)} | {self._pick(*TEXT_FILTERS)})",
                f"{inner}.{self._pick(*TEXT_METHODS)}",
                f"{inner}[{self._pick('0', '-1', '1:3', ':2', '::-1', '99', '::2')}]",
                f"({self._pick('%s', '%5s|', '%r', '%-4s|', '%%%s')!r} % {self.anything(depth - 1)})",
                f"({self._pick('%d', '%05.1f', '%x', '%+d', '%e')!r} | format({self._maybe(depth - 1, self.number)}))",
                f"({self._maybe(depth - 1, self.list)} | join({self._pick(*TEXT_LITERALS)}))",
                self._choose(depth - 1, self.text),
            )
        )

    def list(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.25:
            return str(self._pick(*LISTS, "[1, 2, 3]", "[]", "('a', 'b')", "range(4)", "range(5, 0, -2)"))
        inner = self._maybe(depth - 1, self.list)
        return str(
            self._pick(
                f"[{self.anything(depth - 1)}, {self.anything(depth - 1)}]",
                f"({self.anything(depth - 1)}, {self.number(depth - 1)})",
                f"({inner} + {self._maybe(depth - 1, self.list)})",
                f"({inner} * 2)",
                f"({inner} | {self._pick(*LIST_FILTERS)})",
                f"({inner} | {self._pick(*LIST_FILTERS)} | {self._pick(*LIST_FILTERS)})",
                f"{inner}.{self._pick(*LIST_METHODS)}",
                f"{inner}[{self._pick('0', '1:', ':-1', '::-1', '::2', '5')}]",
                f"({self._maybe(depth - 1, self.map)} | {self._pick('dictsort', 'items', 'list')})",
                f"{self._maybe(depth - 1, self.text)}.split()",
                f"range({self._pick('3', 'n', '0', '2, 6', '9, 1, -3')})",
                self._choose(depth - 1, self.list),
            )
        )

    def map(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.4:
            return str(self._pick(*MAPS, "{}", "{'a': 1, 'b': 'x'}"))
        inner = self._maybe(depth - 1, self.map)
        return str(
            self._pick(
                f"{{'a': {self.anything(depth - 1)}, {self.text(0)}: {self.anything(depth - 1)}}}",
                f"dict({inner}, z={self.anything(depth - 1)})",
                f"dict({inner}, **{self._maybe(depth - 1, self.map)})",
                f"({inner} | {self._pick(*MAP_FILTERS)})",
                f"{inner}.{self._pick(*MAP_METHODS)}",
                f"{inner}.{self._pick('a', 'id', 'x', 'missing')}",
                f"{inner}[{self.text(depth - 1)}]",
                self._choose(depth - 1, self.map),
            )
        )

    def boolean(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.2:
            return str(self._pick(*BOOLEANS))
        kind = self._pick(self.number, self.text, self.number)
        left, right, third = (self._maybe(depth - 1, kind) for _ in range(3))
        orders = ("==", "!=", "<", "<=", ">", ">=")
        return str(
            self._pick(
                f"({left} {self._pick(*orders)} {right})",
                f"({left} {self._pick(*orders)} {right} {self._pick(*orders)} {third})",
                f"(not {self.boolean(depth - 1)})",
                f"({self.boolean(depth - 1)} and {self.boolean(depth - 1)} and {self.boolean(depth - 1)})",
                f"({self.boolean(depth - 1)} or {self.boolean(depth - 1)})",
                f"({self.anything(depth - 1)} {self._pick('in', 'not in')} {self._maybe(depth - 1, self.list)})",
                f"({self._maybe(depth - 1, self.text)} in {self._maybe(depth - 1, self.text)})",
                f"({self._maybe(depth - 1, self.text)} in {self._maybe(depth - 1, self.map)})",
                f"({self.anything(depth - 1)} is {self._pick(*TESTS)})",
                f"({self.anything(depth - 1)} is not {self._pick(*TESTS)})",
                f"({self.anything(depth - 1)} == {self.anything(depth - 1)})",
            )
        )

    def _other(self, depth: int) -> str:
        return str(self._pick(*OTHERS))

    def _part(self, depth: int) -> str:
        if depth <= 0:
            return f"{{{{ {self.anything(1)} }}}}"
        body, other = self._part(depth - 1), self._part(depth - 1)
        return str(
            self._pick(
                "text ",
                f"{{{{ {self.anything(2)} }}}}",
                f"{{{{ {self.anything(2)} }}}}",
                f"{{% if {self.boolean(2)} %}}{body}{{% else %}}{other}{{% endif %}}",
                f"{{% if {self.boolean(1)} %}}{body}{{% elif {self.boolean(1)} %}}{other}{{% endif %}}",
                f"{{% for x in {self._maybe(1, self.list)} %}}{{{{ loop.index }}}}:{{{{ x }}}} {body}{{% endfor %}}",
                f"{{% for x in {self._maybe(1, self.list)} if x %}}{{{{ x }}}}{{% if not loop.last %}},{{% endif %}}"
                f"{{% else %}}{other}{{% endfor %}}",
                f"{{% for k, v in {self.map(1)} | items %}}{{{{ k }}}}={{{{ v }}}};{{% endfor %}}",
                f"{{% for x in {self.list(1)} %}}{{{{ loop.{self._pick('revindex', 'first', 'length', 'previtem')} }}}}"
                f"{{% for y in {self.list(0)} %}}{{{{ loop.index0 }}}}{{{{ x }}}}{{% endfor %}}{{% endfor %}}",
                f"{{% set s = {self.anything(2)} %}}{{{{ s }}}}{body}{{{{ s is defined }}}}",
                f"{{% set s %}}{body}{{% endset %}}{{{{ s | upper }}}}",
            )
        )
