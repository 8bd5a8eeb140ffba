"""The filters that make text.

Those that are needed everywhere are written out here, so that they cost no import and pay exactly. Four that are long
and rare (`filesizeformat`, `striptags`, `title`, `urlize`) are Jinja2's own, imported when one is first used.
There is no HTML mark on text: `escape` and `safe` give plain text.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any
from urllib.parse import quote

from noetlvm.data.references import Reference
from noetlvm.expr.errors import CALL_STEPS, ErrorKind, ExpressionError, Fuel
from noetlvm.expr.formatting import format_text
from noetlvm.expr.operations import search_steps
from noetlvm.expr.values import CONTAINERS, TEXT_BYTES, Data, Undefined, measure, parts, text, text_bytes, wrong_type

ESCAPES = (("&", "&amp;"), (">", "&gt;"), ("<", "&lt;"), ("'", "&#39;"), ('"', "&#34;"))
JSON_ESCAPES = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("'", "\\u0027"))

_WORD = re.compile(r"\w+")
_ATTRIBUTE_END = re.compile(r"[\s/>=]", flags=re.ASCII)
_URI_SCHEME = re.compile(r"([\w.+-]{2,}:(/){0,2})")


def _text_only(value: Data) -> str:
    if type(value) is not str:
        raise wrong_type(value, "text")
    return value


def _slow(fuel: Fuel, value: str, growth: int = 1) -> None:
    """Charge for a function that reads each character."""
    fuel.spend(len(value))
    fuel.make(TEXT_BYTES + growth * text_bytes(value))


# ---- letters


def _changed(method: Callable[..., str]) -> Callable[[Fuel, Data], str]:
    def change(fuel: Fuel, value: Data) -> str:
        plain = text(fuel, value)
        # A letter becomes at most three others.
        fuel.make(TEXT_BYTES + text_bytes(plain) * (1 if plain.isascii() else 3))
        return method(plain)

    return change


def title(fuel: Fuel, value: Data) -> str:
    """Return the text with each word's first letter large."""
    plain = text(fuel, value)
    _slow(fuel, plain, 16)
    return str(_of_jinja("do_title")(plain))


def trim(fuel: Fuel, value: Data, chars: Data = None) -> str:
    """Return the text without blanks, or `chars`, at its ends."""
    plain = text(fuel, value)
    fuel.make(TEXT_BYTES + text_bytes(plain))
    if type(chars) is str:
        fuel.spend((len(plain) >> 6) * (1 + len(chars)) + (len(chars) >> 4))
    return plain.strip(chars)


def center(fuel: Fuel, value: Data, width: Data = 80) -> str:
    """Return the text in the middle of `width` characters."""
    plain = text(fuel, value)
    fuel.make(TEXT_BYTES + text_bytes(plain) + (4 * abs(width) if isinstance(width, int) else 0))
    return plain.center(width)


def replace(fuel: Fuel, value: Data, old: Data, new: Data, count: Data = None) -> str:
    """Return the text with `old` replaced by `new`."""
    return replaced(fuel, text(fuel, value), text(fuel, old), text(fuel, new), -1 if count is None else count)


def replaced(fuel: Fuel, plain: str, old: str, new: str, count: Data) -> str:
    """Replace, once the number of places is known."""
    fuel.spend(2 * search_steps(len(plain), len(old)))
    places = plain.count(old)
    if isinstance(count, int) and count >= 0:
        places = min(places, count)
    grown = max(0, len(new) - len(old)) * places
    fuel.make(TEXT_BYTES + (len(plain) + grown) * (1 if plain.isascii() and new.isascii() else 4))
    return plain.replace(old, new, count)


# ---- lines and words


def indent(fuel: Fuel, value: Data, width: Data = 4, first: Data = False, blank: Data = False) -> str:
    plain = _text_only(value)
    if isinstance(width, int):
        fuel.make(max(0, width))
    prefix = width if type(width) is str else " " * width
    lines = plain.count("\n") + plain.count("\r") + (0 if plain.isascii() else len(plain) // 4) + 16
    _slow(fuel, plain, 3)
    fuel.make(lines * (TEXT_BYTES + text_bytes(prefix)) + _exotic_breaks(plain) * text_bytes(prefix))
    head, *rest = (plain + "\n").splitlines()
    indented = "".join(f"\n{prefix}{line}" if line or blank else "\n" for line in rest)
    return (prefix if first else "") + head + indented


def _exotic_breaks(plain: str) -> int:
    """Count the line breaks of `splitlines` that are neither a line feed nor a carriage return."""
    return sum(plain.count(mark) for mark in "\v\f\x1c\x1d\x1e\x85\u2028\u2029")


def truncate(
    fuel: Fuel, value: Data, length: Data = 255, killwords: Data = False, end: Data = "...", leeway: Data = None
) -> Data:
    """Return the text cut to `length` characters."""
    leeway = 5 if leeway is None else leeway
    if length < len(end) or leeway < 0:
        raise ExpressionError(
            ErrorKind.VALUE, "`truncate` needs a `length` that has room for `end`, and a `leeway` of 0 or more"
        )
    if isinstance(value, (*CONTAINERS, Undefined)) and len(value) <= length + leeway:
        return value
    plain = _text_only(value)
    if len(plain) <= length + leeway:
        return plain
    fuel.make(3 * (TEXT_BYTES + text_bytes(plain, length)))
    cut = plain[: length - len(end)]
    return (cut if killwords else cut.rsplit(" ", 1)[0]) + end


def wordcount(fuel: Fuel, value: Data) -> int:
    plain = text(fuel, value)
    fuel.spend(len(plain))
    return sum(1 for _ in _WORD.finditer(plain))


def wordwrap(
    fuel: Fuel,
    value: Data,
    width: Data = 79,
    break_long_words: Data = True,
    wrapstring: Data = None,
    break_on_hyphens: Data = True,
) -> str:
    """Return the text in lines of `width` characters."""
    plain = _text_only(value)
    between = "\n" if wrapstring is None else _text_only(wrapstring)
    columns = max(width, 1) if isinstance(width, int) else 1
    longest = max(map(len, plain.split()), default=0) if len(plain) < 65_536 else len(plain)
    fuel.spend(4 * len(plain) + longest * longest // (8 * columns) + longest * longest // 256)
    fuel.make(TEXT_BYTES + 16 * text_bytes(plain) + TEXT_BYTES * (len(plain) // columns))
    lines = [
        line
        for paragraph in plain.splitlines()
        for line in _wrapped(paragraph, width, break_long_words, break_on_hyphens)
    ]
    fuel.make(len(lines) * text_bytes(between))
    return between.join(lines)


def _wrapped(line: str, width: Data, break_long_words: Data, break_on_hyphens: Data) -> list[str]:
    # An empty line stays one.
    return textwrap.wrap(
        line,
        width=width,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=break_long_words,
        break_on_hyphens=break_on_hyphens,
    ) or [""]


# ---- formats


def format_(fuel: Fuel, value: Data, *args: Data, **kwargs: Data) -> str:
    """Return the text with its `%` places filled."""
    if args and kwargs:
        raise ExpressionError(ErrorKind.TYPE, "`format` takes positional or named arguments, not both")
    return format_text(fuel, text(fuel, value), kwargs or args)


def filesizeformat(fuel: Fuel, value: Data, binary: Data = False) -> str:
    """Return a number of bytes for people."""
    if not isinstance(value, (int, float, str)):
        raise wrong_type(value, "a number")
    if type(value) is str:
        fuel.make(text_bytes(value))
    fuel.make(512)
    return str(_of_jinja("do_filesizeformat")(value, binary))


def tojson(fuel: Fuel, value: Data, indent: Data = None) -> str:
    """Return the value as JSON text whose keys are sorted, with HTML's special characters escaped as Jinja2 does."""
    if indent is None:
        left = fuel.json
        found = measure(fuel, value, _json_size, _json_opened)
        fuel.write_json(found.size)
        fuel.spend(left - fuel.json >> 6)
    else:
        found = measure(fuel, value, _json_size)
        fuel.spend(4 * found.nodes)
        width = len(indent) if type(indent) is str else abs(int(indent))
        fuel.make(found.size + found.nodes * (4 + found.depth * width))
    made = json.dumps(value, indent=indent, sort_keys=True, default=_no_json)
    return _with(fuel.make if indent is not None else fuel.write_json, made, JSON_ESCAPES)


def _no_json(value: Data) -> Data:
    if type(value) is Reference and value.load:  # json reads a list's insides past the list's own methods
        return value.load(value)
    raise wrong_type(value, "data")


def _json_opened(fuel: Fuel, item: Data, depth: int) -> Iterator[Data]:
    """Pay for the brackets, commas and colons of a list or mapping."""
    fuel.write_json(2 + (4 if isinstance(item, dict) else 2) * len(item))
    return parts(item, depth)


def _json_size(value: Data) -> int:
    if type(value) is str:
        plain = value.isascii() and value.isprintable() and '"' not in value and "\\" not in value
        return 2 + len(value) * (1 if plain else 12)
    if type(value) is int:
        return 2 + (value.bit_length() * 1_234 >> 12)  # a bit is 0.3010 digits
    if type(value) is float:
        if not isfinite(value):
            raise ExpressionError(ErrorKind.VALUE, f"JSON has no number `{value}`; replace it before `tojson`")
        return len(repr(value))
    return 5


def _with(pay: Callable[[int], None], plain: str, escapes: tuple[tuple[str, str], ...]) -> str:
    """Return the text with characters replaced, in this order. Two copies exist at once, so both are paid for."""
    grown = sum(plain.count(old) * (len(new) - 1) for old, new in escapes)
    if not grown:
        return plain
    pay(2 * (TEXT_BYTES + text_bytes(plain, len(plain) + grown)))
    for old, new in escapes:
        plain = plain.replace(old, new)
    return plain


# ---- HTML and URLs


def escape(fuel: Fuel, value: Data) -> str:
    """Return the text with HTML's special characters escaped."""
    return _with(fuel.make, text(fuel, value), ESCAPES)


def striptags(fuel: Fuel, value: Data) -> str:
    """Return the text without HTML tags."""
    plain = text(fuel, value)
    _slow(fuel, plain, 24)
    return str(_of_jinja("do_striptags")(plain))


def xmlattr(fuel: Fuel, value: Data, autospace: Data = True) -> str:
    """Return the mapping as XML attributes."""
    if not isinstance(value, dict):
        raise wrong_type(value, "a mapping")
    fuel.spend(CALL_STEPS * len(value))
    parts = []
    for key, content in value.items():
        if content is None or type(content) is Undefined:
            continue
        if _ATTRIBUTE_END.search(_text_only(key)):
            raise ExpressionError(ErrorKind.VALUE, "the name of an attribute cannot have blanks, `/`, `>` or `=` in it")
        part = f'{escape(fuel, key)}="{escape(fuel, content)}"'
        fuel.make(TEXT_BYTES + 2 * text_bytes(part))
        parts.append(part)
    return (" " if autospace and parts else "") + " ".join(parts)


def urlencode(fuel: Fuel, value: Data) -> str:
    """Return the text as a part of a URL, or a mapping or pairs as a query."""
    if isinstance(value, dict):
        value = list(value.items())
    if not isinstance(value, (list, tuple, Undefined)):
        return _quoted(fuel, value, "/")
    fuel.spend(CALL_STEPS * len(value))
    parts = []
    for pair in value:
        name, content = pair
        part = f"{_quoted(fuel, name, '')}={_quoted(fuel, content, '')}"
        fuel.make(TEXT_BYTES + 2 * len(part))
        parts.append(part.replace("%20", "+"))
    return "&".join(parts)


def _quoted(fuel: Fuel, value: Data, safe: str) -> str:
    plain = text(fuel, value)
    _slow(fuel, plain, 3 if plain.isascii() else 4)
    fuel.make(8 * len(plain))
    return quote(plain, safe=safe)


def urlize(
    fuel: Fuel,
    value: Data,
    trim_url_limit: Data = None,
    nofollow: Data = False,
    target: Data = None,
    rel: Data = None,
    extra_schemes: Data = None,
) -> str:
    plain = text(fuel, value)
    words = plain.split() if len(plain) < 65_536 else [plain]
    # Jinja2's patterns may go over a word several times.
    fuel.spend(len(plain) + sum(len(word) * len(word) >> 6 for word in words))
    wanted = set(_text_only(rel).split() if rel else ())
    relations = " ".join(sorted(wanted | {"noopener"} | ({"nofollow"} if nofollow else set())))
    schemes = () if extra_schemes is None else tuple(extra_schemes)
    _check_schemes(fuel, schemes, len(words))
    added = 6 * (len(relations) + len(_text_only(target or ""))) + 64
    fuel.make(16 * text_bytes(plain) + len(words) * added)
    return str(_jinja().utils.urlize(plain, trim_url_limit, rel=relations, target=target, extra_schemes=schemes))


def _check_schemes(fuel: Fuel, schemes: tuple[Data, ...], words: int) -> None:
    fuel.spend(len(schemes) * (1 + words))
    for scheme in schemes:
        if not _URI_SCHEME.fullmatch(_text_only(scheme)):
            raise ExpressionError(ErrorKind.VALUE, "a scheme of `urlize` ends in a colon, such as `tel:`")


def _of_jinja(function: str) -> Callable[..., Any]:
    return getattr(_jinja().filters, function)  # type: ignore[no-any-return]


def _jinja() -> Any:
    import jinja2

    return jinja2


TEXT_FILTERS: dict[str, Callable[..., Data]] = {
    "capitalize": _changed(str.capitalize),
    "center": center,
    "e": escape,
    "escape": escape,
    "filesizeformat": filesizeformat,
    "forceescape": escape,
    "format": format_,
    "indent": indent,
    "lower": _changed(str.lower),
    "replace": replace,
    "safe": text,
    "string": text,
    "striptags": striptags,
    "title": title,
    "tojson": tojson,
    "trim": trim,
    "truncate": truncate,
    "upper": _changed(str.upper),
    "urlencode": urlencode,
    "urlize": urlize,
    "wordcount": wordcount,
    "wordwrap": wordwrap,
    "xmlattr": xmlattr,
}
