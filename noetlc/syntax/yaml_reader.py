"""Reads YAML text into nodes: the only module that calls libyaml, and only for its events.

No object is ever constructed from a tag, aliases share nodes instead of copying them, and each limit is checked
while reading. A syntax error does not end the reading: the line at fault is blanked and the rest is read again, so
that one run shows every mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import yaml

from noetlc.syntax.document_cache import begin_document
from noetlc.syntax.input import DEFAULT_LIMITS, ReadLimits
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar, ScalarValue, Sequence
from noetlc.syntax.span import Problem, ProblemKind, Span
from noetlvm.record import Record

INTEGER_DIGITS_MAX = 1_000
"""A longer integer is refused: Python spends quadratic time on it and no playbook means it."""

_CONSTANTS: dict[str, ScalarValue] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_OCTAL = re.compile(r"0o[0-7]+\Z")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")

_STRING_TAG = "tag:yaml.org,2002:str"
CORE_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq"))


def plain_value(text: str) -> ScalarValue:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _INTEGER.match(text):
        return int(text) if len(text) <= INTEGER_DIGITS_MAX else text
    if _OCTAL.match(text):
        return int(text, 0) if len(text) <= INTEGER_DIGITS_MAX else text
    if _HEXADECIMAL.match(text):
        return int(text, 0) if len(text) <= INTEGER_DIGITS_MAX else text
    return float(text) if _FLOAT.match(text) else text


def tagged_value(tag: str, text: str) -> ScalarValue:
    """Return the value of a scalar with a core tag; raise ValueError where the text is not such a value."""
    if tag == _STRING_TAG:
        return text
    value = plain_value(text)
    wanted = tag.rpartition(":")[2]
    if wanted == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    found = {bool: "bool", int: "int", float: "float", type(None): "null"}.get(type(value), "str")
    if found != wanted:
        raise ValueError(f"`{text}` is not a {wanted}")
    return value


SYNTAX_ERRORS_MAX = 10
"""How often reading starts again after a syntax error."""

_EVENT_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Only its events are used. Without libyaml the pure Python parser gives the same ones, ten times slower."""

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NO_BREAKS = "\x85\u2028\u2029"
"""Line breaks of YAML 1.1, which libyaml reads; in YAML 1.2 they are characters as others (S7)."""
_NO_TABS = "indent with spaces, not tabs"
_LEADING_TABS = re.compile(r"^\t+", re.MULTILINE)
_BOM = "\ufeff"
_WHITE = " \t\r\n"
"""White space of YAML. A no-break space is text."""
_MERGE = "<<"


class Document(Record):
    """What one YAML text holds. `root` is None where there is nothing to read."""

    root: Node | None
    problems: tuple[Problem, ...]
    scalar_spans: tuple[Span, ...]
    """Every scalar's place, keys included: what looks like a comment inside one is text."""

    @property
    def is_damaged(self) -> bool:
        """Return whether part of the text could not be read, so that what is missing may only be unread."""
        return any(problem.kind in _DAMAGING for problem in self.problems)


_DAMAGING = frozenset({ProblemKind.YAML_SYNTAX, ProblemKind.TOO_LARGE, ProblemKind.NOT_UTF8})


class _UnreadableError(Exception):
    """Reading cannot continue; the problem gives the reason."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


def decode(data: bytes, limits: ReadLimits = DEFAULT_LIMITS) -> tuple[str, Problem | None]:
    """Return a file's text, and why it is incomplete where the bytes are not valid UTF-8."""
    if len(data) > limits.document_bytes_max:
        return "", _too_large(Span(0, 0), f"the document has more than {limits.document_bytes_max:,} bytes")
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError as error:
        text = data[: error.start].decode("utf-8")
        what = "it looks like UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else f"byte 0x{data[error.start]:02x}"
        problem = Problem(
            ProblemKind.NOT_UTF8,
            Span(len(text), len(text)),
            f"the file is not UTF-8 text: {what}",
            "save the file as UTF-8",
        )
        return text, problem


def read_document(text: str, limits: ReadLimits = DEFAULT_LIMITS) -> Document:
    """Read one YAML document, whatever the text is."""
    begin_document()
    errors: list[Problem] = []
    current = text
    while True:
        reader = _Reader(current, limits)
        try:
            root = reader.read()
        except _UnreadableError as stop:
            if any(problem.help == _NO_TABS for problem in errors):
                return Document(None, tuple(errors), ())  # the intended indentation of a tab is unknown
            errors.append(stop.problem)
            retry = _without_line_at_fault(current, stop.problem)
            if retry is None or len(errors) >= SYNTAX_ERRORS_MAX:
                return Document(None, tuple(_ordered(errors + reader.problems)), tuple(reader.scalar_spans))
            current = retry
            continue
        if root is None and not errors:
            reader.problems.append(
                Problem(
                    ProblemKind.EMPTY,
                    Span(0, 0),
                    "the document is empty",
                    "write a playbook: start with `apiVersion: noetl.io/v2`",
                )
            )
        return Document(root, tuple(_ordered(errors + reader.problems)), tuple(reader.scalar_spans))


def _ordered(problems: list[Problem]) -> list[Problem]:
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.span)


def _without_line_at_fault(text: str, problem: Problem) -> str | None:
    """Blank the line of a syntax error, or the tabs that indent it, keeping every offset.

    None where another try is of no use.
    """
    if problem.kind is not ProblemKind.YAML_SYNTAX:
        return None
    where = min(problem.span.start, len(text))
    start = max(text.rfind("\n", 0, where), text.rfind("\r", 0, where)) + 1
    end = text.find("\n", where)
    end = len(text) if end < 0 else end
    if not text[start:end].strip():
        return None
    if text[where : where + 1] == "\t" and not text[start:where].strip():
        # One mistake, however many lines it is made in.
        spaces = text[:where] + " " + text[where + 1 :]
        return _LEADING_TABS.sub(lambda tabs: " " * len(tabs[0]), spaces)
    return text[:start] + " " * (end - start) + text[end:]


def _too_large(span: Span, message: str) -> Problem:
    return Problem(
        ProblemKind.TOO_LARGE,
        span,
        message,
        "split the playbook, or move bulk data out of it into storage and refer to it",
    )


class _Open:
    """A collection whose end has not been read yet."""

    def __init__(self, start: int, flow: bool, anchor: str | None, is_mapping: bool) -> None:
        self.start = start
        self.flow = flow
        self.anchor = anchor
        self.is_mapping = is_mapping
        self.items: list[Node] = []
        self.entries: list[MappingEntry] = []
        self.key: Scalar | None = None
        self.skip_value = False
        self.has_complex_key = False
        self.weight = 1


def _has_any(text: str, characters: str) -> bool:
    return any(character in text for character in characters)


def _unused(text: str) -> list[str]:
    """Return characters for private use that a text does not have, one for each of `NO_BREAKS`."""
    used = set(text)
    unused = (character for character in map(chr, range(0xE000, 0xF900)) if character not in used)
    return list(islice(unused, len(NO_BREAKS)))


class _Reader:
    """One pass over the events of one text."""

    def __init__(self, text: str, limits: ReadLimits) -> None:
        self.text = text
        self.problems: list[Problem] = []
        self.scalar_spans: list[Span] = []
        self._limits = limits
        self._base = 1 if text.startswith(_BOM) else 0
        self._open: list[_Open] = []
        self._root: Node | None = None
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._open_anchors: set[str] = set()
        self._written = dict(zip(_unused(text), NO_BREAKS, strict=True)) if _has_any(text, NO_BREAKS) else {}
        """What each character stands for that libyaml reads in place of one that it takes for a line break."""
        self._nodes = 0
        self._repeated = 0

    def read(self) -> Node | None:
        self._refuse_oversize()
        self._refuse_forbidden()
        documents = 0
        for event in self._events():
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self._scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._begin(event, kind is yaml.MappingStartEvent)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._end(event)
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    self._problem(
                        ProblemKind.MANY_DOCUMENTS,
                        self._span(event),
                        "a second document begins here",
                        "keep one playbook in one file",
                    )
                    break
        if isinstance(self._root, Scalar) and self._root.value is None:
            return None
        return self._root

    def _events(self) -> Iterator[Any]:
        text = self.text[self._base :]
        for stand_in, written in self._written.items():
            text = text.replace(written, stand_in)
        parser = _EVENT_PARSER(text)
        try:
            while parser.check_event():
                yield parser.get_event()
        except yaml.MarkedYAMLError as error:
            raise _UnreadableError(self._syntax_problem(error)) from None
        finally:
            parser.dispose()

    def _syntax_problem(self, error: yaml.MarkedYAMLError) -> Problem:
        mark = error.problem_mark or error.context_mark
        at = self._base + mark.index if mark else 0
        what = error.problem or error.context or "not YAML"
        unclosed = at >= len(self.text.rstrip()) or what.startswith("did not find expected ',' or")
        brackets = [opened.start for opened in self._open if opened.flow]
        if unclosed and brackets:
            at = brackets[-1]  # point to where the bracket was opened
        elif unclosed and error.context_mark:
            at = self._base + error.context_mark.index  # or the quote
        context = f" ({error.context})" if error.context and error.problem else ""
        help = _syntax_help(what, self.text, at)
        message = "this line is indented with a tab" if help == _NO_TABS else f"{what}{context}"
        return Problem(ProblemKind.YAML_SYNTAX, Span(at, at + 1), message, help)

    def _refuse_oversize(self) -> None:
        size = len(self.text)
        if size * 4 > self._limits.document_bytes_max:
            size = len(self.text.encode("utf-8", "surrogatepass"))
        if size > self._limits.document_bytes_max:
            message = f"the document has more than {self._limits.document_bytes_max:,} bytes"
            raise _UnreadableError(_too_large(Span(0, 0), message))

    def _refuse_forbidden(self) -> None:
        found = _FORBIDDEN.search(self.text, self._base)
        if found:
            raise _UnreadableError(
                Problem(
                    ProblemKind.YAML_SYNTAX,
                    Span(found.start(), found.end()),
                    f"the character U+{ord(found.group()):04X} may not stand in YAML",
                    'remove it, or write it as an escape in a double-quoted string ("\\u0000")',
                )
            )

    def _span(self, event: Any) -> Span:
        return Span(self._base + event.start_mark.index, self._base + event.end_mark.index)

    def _problem(self, kind: ProblemKind, span: Span, message: str, help: str, other: Span | None = None) -> None:
        self.problems.append(Problem(kind, span, message, help, other=other))

    def _count(self, span: Span) -> None:
        self._nodes += 1
        if self._nodes > self._limits.nodes_max:
            raise _UnreadableError(_too_large(span, f"the document has more than {self._limits.nodes_max:,} nodes"))

    def _scalar(self, event: Any) -> None:
        span = self._span(event)
        style = event.style or ""
        if style in "|>" and style:
            span = Span(span.start, span.start + len(self.text[span.start : span.end].rstrip(_WHITE)))
        text: str = event.value
        for stand_in, written in self._written.items():
            text = text.replace(stand_in, written)
        scalar = Scalar(span, self._scalar_value(event, span, text), text, style)
        self.scalar_spans.append(span)
        self._count(span)
        self._place(scalar, 1, event.anchor)

    def _scalar_value(self, event: Any, span: Span, text: str) -> ScalarValue:
        tag = event.tag
        if tag is None or tag == "!":
            return plain_value(text) if event.implicit[0] and not event.style and tag is None else text
        if tag not in CORE_TAGS:
            self._tag_problem(tag, span)
            return text
        try:
            return tagged_value(tag, text)
        except ValueError as error:
            self._problem(ProblemKind.TAG, span, str(error), f"write a value of that type, or remove the tag `{tag}`")
            return text

    def _tag_problem(self, tag: str, span: Span) -> None:
        self._problem(
            ProblemKind.TAG,
            span,
            f"the tag `{tag}` has no meaning in a playbook",
            "remove it: strings, numbers, booleans, null, lists and mappings need no tag",
        )

    def _begin(self, event: Any, is_mapping: bool) -> None:
        span = self._span(event)
        if event.tag and event.tag != "!" and event.tag not in CORE_TAGS:
            self._tag_problem(event.tag, span)
        if len(self._open) >= self._limits.depth_max:
            message = f"more than {self._limits.depth_max} levels of nesting"
            raise _UnreadableError(_too_large(Span(span.start, span.start + 1), message))
        self._count(span)
        if event.anchor:
            self._open_anchors.add(event.anchor)
        self._open.append(_Open(span.start, bool(event.flow_style), event.anchor, is_mapping))

    def _end(self, event: Any) -> None:
        opened = self._open.pop()
        end = self._base + event.end_mark.index
        span = Span(opened.start, end if opened.flow else self._block_end(opened))
        node: Node
        if opened.has_complex_key and (template := self._unquoted_template(span)):
            node = template
        elif opened.is_mapping:
            node = Mapping(span, tuple(self._merged(opened)))
        else:
            node = Sequence(span, tuple(opened.items))
        if opened.anchor:
            self._open_anchors.discard(opened.anchor)
        self._place(node, opened.weight, opened.anchor)

    @staticmethod
    def _block_end(opened: _Open) -> int:
        """A block collection ends with its last child; libyaml's mark is past the comments that follow."""
        if opened.entries:
            last = opened.entries[-1]
            return max(opened.start, last.value.span.end, last.key.span.end + 1)
        return max(opened.start, opened.items[-1].span.end) if opened.items else opened.start

    def _unquoted_template(self, span: Span) -> Scalar | None:
        """Read `{{ x }}` without quotes as the template that it was meant to be, so that its inside is checked too."""
        text = self.text[span.start : span.end]
        if not (text.startswith("{{") and text.endswith("}}")):
            return None
        self.scalar_spans.append(span)
        return Scalar(span, text, text, "")

    def _alias(self, event: Any) -> None:
        span = self._span(event)
        found = self._anchors.get(event.anchor)
        if found is None:
            inside = event.anchor in self._open_anchors
            message = f"`*{event.anchor}` stands inside its own anchor" if inside else f"no anchor `&{event.anchor}`"
            known = ", ".join(f"`&{name}`" for name in sorted(self._anchors)) or "none"
            self._problem(ProblemKind.ALIAS, span, message, f"anchors defined before this line: {known}")
            self._place(Scalar(span, None, "", ""), 1, None)
            return
        node, weight = found
        self._repeat(weight, span)
        self._place(node, weight, None)

    def _repeat(self, weight: int, span: Span) -> None:
        self._repeated += weight
        if self._repeated > self._limits.alias_nodes_max:
            limit = self._limits.alias_nodes_max
            raise _UnreadableError(_too_large(span, f"aliases and merge keys repeat more than {limit:,} nodes"))

    def _place(self, node: Node, weight: int, anchor: str | None) -> None:
        """Put a finished node where it belongs: a key, a value, an item, or the root."""
        if anchor:
            self._anchors[anchor] = (node, weight)
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        parent.weight += weight
        if not parent.is_mapping:
            parent.items.append(node)
        elif parent.skip_value:
            parent.skip_value = False
        elif parent.key is None:
            self._place_key(parent, node)
        else:
            parent.entries.append(MappingEntry(parent.key, node))
            parent.key = None

    def _place_key(self, parent: _Open, node: Node) -> None:
        if isinstance(node, Scalar):
            parent.key = node
            if not isinstance(node.value, str):
                self._problem(
                    ProblemKind.NON_STRING_KEY,
                    node.span,
                    f"the key `{node.text}` is not a string; it is read as the text `{node.text}`",
                    f'quote it: "{node.text}"',
                )
            return
        parent.skip_value = True
        parent.has_complex_key = True
        self._problem(
            ProblemKind.COMPLEX_KEY,
            node.span,
            "a list or a mapping cannot be a key",
            'write a string key; for a template value, quote the whole value: "{{ … }}"',
        )

    def _merged(self, opened: _Open) -> Iterator[MappingEntry]:
        """Yield a mapping's own entries and what its merge keys bring, without duplicates; own keys win."""
        own: dict[str, MappingEntry] = {}
        for entry in opened.entries:
            if _is_merge(entry.key):
                continue
            first = own.setdefault(entry.key.text, entry)
            if first is not entry:
                self._problem(
                    ProblemKind.DUPLICATE_KEY,
                    entry.key.span,
                    f"the key `{entry.key.text}` is given twice",
                    "remove one of the two, or rename it",
                    first.key.span,
                )
        seen = set(own)
        for entry in opened.entries:
            if _is_merge(entry.key):
                yield from self._merge(entry, seen, opened)
            elif own[entry.key.text] is entry:
                yield entry

    def _merge(self, entry: MappingEntry, seen: set[str], opened: _Open) -> Iterator[MappingEntry]:
        sources = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
        for source in sources:
            if not isinstance(source, Mapping):
                self._problem(
                    ProblemKind.MERGE_VALUE,
                    entry.key.span,
                    "a merge key takes a mapping or a list of mappings",
                    "write `<<: *anchor` where the anchor is on a mapping",
                )
                continue
            self._repeat(len(source.entries), entry.key.span)
            opened.weight += len(source.entries)
            for merged in source.entries:
                if merged.key.text not in seen:
                    seen.add(merged.key.text)
                    yield merged


def _is_merge(key: Scalar) -> bool:
    return key.text == _MERGE and not key.style


_HELP_BY_PROBLEM = (
    ("cannot start any token", "quote the value; `@`, `` ` `` and `%` cannot begin an unquoted one"),
    ("mapping values are not allowed", 'quote the value if it contains `: `, or check the indentation: "a: b"'),
    ("did not find expected key", "check the indentation of this line and the quotes of the line above"),
    ("did not find expected '-' indicator", "align this line with the other items of the list"),
    ("unexpected end of stream", "close the quote or bracket that is opened here"),
    ("did not find expected ',' or", "close the bracket, or separate the items with commas"),
    ("did not find expected node content", "close the bracket that is opened here"),
    ("could not find expected ':'", "write `key: value`, or quote the text"),
    ("unknown escape", "use single quotes, or double the backslash"),
    ("block sequence entries are not allowed", "start the list on a line of its own"),
)


def _syntax_help(problem: str, text: str, at: int) -> str:
    if text[at : at + 1] == "\t":
        return _NO_TABS
    if text[at : at + 2] == "{{" or text[at - 1 : at + 1] == "{{":
        return 'quote a value that begins with a template: "{{ … }}"'
    for part, help in _HELP_BY_PROBLEM:
        if part in problem:
            return help
    return "check the indentation, quotes and brackets here and on the line above"
