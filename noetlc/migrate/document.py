"""A YAML document that can be edited and written back: what nobody edits stays byte for byte.

Nodes retain the text they were read from. A node that did not change is written as it was, moved to its new column
if its parent moved; a changed block is written entry by entry, so comments and layout of the other entries stay.
Aliases are leaves: their content is edited once, at the anchor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from noetlc.syntax import nodes
from noetlc.syntax.span import Span, lines_of

_TO_LINE_END = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_BLANK_OR_COMMENT = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*")
_PLAIN = re.compile(r"[A-Za-z_][\w./-]*(?: [\w./-]+)*")
_NOT_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_ALIAS = re.compile(r"\*[^\s,\]}]+")
_COMMENT = re.compile(r"(?:^|\s)(#[^\r\n]*)")
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
"""An anchor and a tag before a node."""
_INDENT = 2

ScalarValue: TypeAlias = str | int | float | bool | None


class Leaf:
    """A scalar or an alias. `raw` is its YAML text."""

    def __init__(
        self, raw: str, value: ScalarValue = None, source: nodes.Scalar | None = None, column: int = 0
    ) -> None:
        self.raw = raw
        self.value = value
        self.source = source
        self.column = column
        """Column of the entry that it was read in: further lines of `raw` are indented from there."""
        self._original = raw if source is not None else None

    @property
    def text(self) -> str:
        return self.source.text if self.source is not None and not self.changed else str(self.value)

    @property
    def is_alias(self) -> bool:
        return self.source is not None and self.source.style == "*"

    @property
    def value_text(self) -> str:
        """The value as text, after edits."""
        return self.value if isinstance(self.value, str) else self.text

    @property
    def span(self) -> Span | None:
        return self.source.span if self.source is not None else None

    @property
    def is_template(self) -> bool:
        return isinstance(self.value, str) and "{{" in self.value

    @property
    def style(self) -> str:
        return self.raw[:1] if self.raw[:1] in ("'", '"', "|", ">") else ""

    @property
    def changed(self) -> bool:
        return self.raw != self._original


class MapEntry:
    """One entry of a mapping. `key` may be changed."""

    def __init__(self, key: str, value: Draft, layout: EntryLayout | None = None) -> None:
        self.key = key
        self.value = value
        self.layout = layout

    @property
    def renamed(self) -> bool:
        return self.layout is None or self.layout.key != self.key

    @property
    def span(self) -> Span | None:
        return self.layout.span if self.layout else self.value.span


class SeqItem:
    def __init__(self, value: Draft, layout: EntryLayout | None = None) -> None:
        self.value = value
        self.layout = layout


class EntryLayout(NamedTuple):
    """The text around a value: comment lines before it, its key or dash, and the rest of its last line."""

    span: Span
    value: Draft
    key: str
    before: str
    head: str
    after: str
    column: int
    flow: bool
    written_key: str = ""


def split_layout(layout: EntryLayout | None) -> tuple[EntryLayout | None, EntryLayout | None]:
    """Return the layouts of an entry whose value goes one key deeper: of the outer entry and of the inner one.

    Comments before the entry stay before the outer one; those beside and below its key stay with the value.
    """
    if layout is None:
        return None, None
    outer = layout._replace(value=Map([]), head=":", after="")
    inner = layout._replace(before="", written_key="")
    return outer, inner


class Map:
    def __init__(self, pairs: list[MapEntry], *, flow: bool = False, frame: BlockLayout | None = None) -> None:
        self.pairs = pairs
        self.flow = flow
        self.frame = frame
        self.merged: dict[str, nodes.Node] = {}
        """What merge keys (`<<`) add: it stands elsewhere."""
        self._original = tuple(pairs) if frame else None

    @property
    def span(self) -> Span | None:
        return self.frame.span if self.frame else next((pair.span for pair in self.pairs if pair.span), None)

    @property
    def changed(self) -> bool:
        if self._original is None or len(self._original) != len(self.pairs):
            return True
        if any(a is not b for a, b in zip(self._original, self.pairs, strict=True)):
            return True
        return any(pair.renamed or _replaced(pair) or pair.value.changed for pair in self.pairs)

    @property
    def parts(self) -> list[MapEntry | SeqItem]:
        return list(self.pairs)

    def keys(self) -> list[str]:
        return [pair.key for pair in self.pairs]

    def pair(self, key: str) -> MapEntry | None:
        return next((pair for pair in self.pairs if pair.key == key), None)

    def get(self, key: str) -> Draft | None:
        found = self.pair(key)
        return found.value if found else None

    def map(self, key: str) -> Map | None:
        found = self.get(key)
        return found if isinstance(found, Map) else None

    def seq(self, key: str) -> Seq | None:
        found = self.get(key)
        return found if isinstance(found, Seq) else None

    def leaf(self, key: str) -> Leaf | None:
        found = self.get(key)
        return found if isinstance(found, Leaf) else None

    def text(self, key: str) -> str:
        """Return the text of a scalar, or an empty text."""
        found = self.get(key)
        if found is None and isinstance(merged := self.merged.get(key), nodes.Scalar):
            return merged.text
        return found.text if isinstance(found, Leaf) and found.value is not None else ""

    def remove(self, key: str) -> MapEntry | None:
        found = self.pair(key)
        if found:
            self.pairs.remove(found)
        return found

    def put(self, key: str, value: Draft, after: str | None = None) -> MapEntry:
        """Set an entry; a new one stands after another, or at the end."""
        found = self.pair(key)
        if found:
            found.value = value
            return found
        made = MapEntry(key, value)
        self.insert(made, after)
        return made

    def insert(self, pair: MapEntry, after: str | None = None) -> None:
        names = self.keys()
        at = names.index(after) + 1 if after in names else len(names)
        self.pairs.insert(at, pair)

    def nested(self, *keys: str) -> Map:
        """Return the mapping under a path of keys, made where it is absent or no mapping."""
        node = self
        for key in keys:
            below = node.get(key)
            if not isinstance(below, Map):
                below = Map([], flow=node.flow)
                node.put(key, below)
            node = below
        return node


class Seq:
    def __init__(self, items: list[SeqItem], *, flow: bool = False, frame: BlockLayout | None = None) -> None:
        self.items = items
        self.flow = flow
        self.frame = frame
        self._original = tuple(items) if frame else None

    @property
    def span(self) -> Span | None:
        return (
            self.frame.span if self.frame else next((item.value.span for item in self.items if item.value.span), None)
        )

    @property
    def parts(self) -> list[MapEntry | SeqItem]:
        return list(self.items)

    @property
    def values(self) -> list[Draft]:
        return [item.value for item in self.items]

    @property
    def changed(self) -> bool:
        if self._original is None or len(self._original) != len(self.items):
            return True
        if any(a is not b for a, b in zip(self._original, self.items, strict=True)):
            return True
        return any(_replaced(item) or item.value.changed for item in self.items)


Draft: TypeAlias = Leaf | Map | Seq


class BlockLayout(NamedTuple):
    """Where a collection stood, what opens it (`{`, an anchor) and what closes it."""

    span: Span
    extent: Span
    column: int
    opening: str
    closing: str


def _replaced(part: MapEntry | SeqItem) -> bool:
    return part.layout is None or part.layout.value is not part.value


# ---- making nodes


def mapping(*pairs: tuple[str, Draft | str | int | bool] | MapEntry, flow: bool = False) -> Map:
    """Return a new mapping; plain values become scalars."""
    made = [pair if isinstance(pair, MapEntry) else MapEntry(pair[0], as_draft(pair[1])) for pair in pairs]
    return Map(made, flow=flow)


def sequence(*values: Draft | str, flow: bool = False) -> Seq:
    return Seq([SeqItem(as_draft(value)) for value in values], flow=flow)


def as_draft(value: Draft | ScalarValue) -> Draft:
    """Return a node as it is, and a plain value as a scalar."""
    return value if isinstance(value, Leaf | Map | Seq) else scalar(value)


def scalar(value: ScalarValue) -> Leaf:
    """Return a new scalar, quoted where it must be."""
    if isinstance(value, str):
        if "\n" in value:
            return Leaf(_block_scalar(value), value)
        plain = _PLAIN.fullmatch(value) is not None and value.lower() not in _NOT_TEXT
        return Leaf(value if plain else quoted(value), value)
    return Leaf(json.dumps(value), value)


def quoted(text: str) -> str:
    """Return text between double quotes, or single ones where those save escapes."""
    if '"' in text and "'" not in text and "\\" not in text:
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False)


def template(expression: str) -> Leaf:
    """Return `"{{ expression }}"`."""
    return scalar(f"{{{{ {expression} }}}}")


def _block_scalar(text: str) -> str:
    sign = "" if text.endswith("\n") else "-"
    return f"|{sign}\n" + "".join(f"  {line}" if line.strip() else line for line in _LINES.findall(text)).rstrip("\n")


def plain_data(node: Draft) -> object:
    if isinstance(node, Map):
        return {pair.key: plain_data(pair.value) for pair in node.pairs}
    if isinstance(node, Seq):
        return [plain_data(value) for value in node.values]
    return node.value


def inherited(node: Map, key: str) -> Map | None:
    """Return a copy of the mapping that a merge key adds, for a node that gets an entry of its own under the key."""
    found = node.merged.get(key)
    return _copied_map(found) if isinstance(found, nodes.Mapping) else None


def _copied_map(node: nodes.Mapping) -> Map:
    return Map([MapEntry(entry.key.text, _copied(entry.value)) for entry in node.entries])


def _copied(node: nodes.Node) -> Draft:
    if isinstance(node, nodes.Mapping):
        return _copied_map(node)
    if isinstance(node, nodes.Sequence):
        return Seq([SeqItem(_copied(item)) for item in node.items])
    return scalar(node.value)


def is_empty(node: Draft) -> bool:
    """Return whether a node holds nothing: `{}`, `[]`, `null` or no text."""
    return isinstance(node, Leaf) and not node.is_alias and node.raw.strip() in ("", "~", "null", "{}", "[]")


def leaves(node: Draft) -> Iterator[Leaf]:
    """Yield the scalars under a node, in order."""
    if isinstance(node, Leaf):
        yield node
    else:
        for part in node.parts:
            yield from leaves(part.value)


# ---- reading


class DocumentReader:
    """Makes the editable form of a text that was read into nodes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._seen: set[int] = set()

    def read(self, node: nodes.Node, column: int = 0) -> Draft:
        if isinstance(node, nodes.Scalar):
            return Leaf(self._text[node.span.start : node.span.end], node.value, node, column)
        self._seen.add(id(node))
        return self._mapping(node, column) if isinstance(node, nodes.Mapping) else self._sequence(node, column)

    def _mapping(self, node: nodes.Mapping, outer: int) -> Draft:
        start, end = node.span
        own: list[nodes.MappingEntry] = []
        merged: dict[str, nodes.Node] = {}
        position = start
        for entry in node.entries:  # a merged entry stands elsewhere
            if position <= entry.key.span.start and entry.key.span.end <= end:
                own.append(entry)
                position = entry.key.span.end
            else:
                merged[entry.key.text] = entry.value
        if not own:
            return self._opaque(node, outer)
        cursor = own[0].key.span.start
        opening = self._text[start:cursor]
        flow = opening.rstrip().endswith("{")
        column = self._column(cursor)
        pairs: list[MapEntry] = []
        for number, entry in enumerate(own):
            following = own[number + 1].key.span.start if number + 1 < len(own) else end
            first, last, value = self._placed(entry.value, entry.key.span.end, following, column)
            stop = self._stop(value, last, flow)
            before, head = self._text[cursor : entry.key.span.start], self._text[entry.key.span.end : first]
            key, span = entry.key.text, Span(entry.key.span.start, last)
            written, after = self._text[slice(*entry.key.span)], self._text[last:stop]
            layout = EntryLayout(span, value, key, _before(before, flow), head, after, column, flow, written)
            pairs.append(MapEntry(key, value, layout))
            cursor = stop
        made = Map(pairs, flow=flow, frame=self._frame(node.span, cursor, column, opening, flow))
        made.merged = merged
        return made

    def _sequence(self, node: nodes.Sequence, outer: int) -> Draft:
        properties = _PROPERTIES.match(self._text, node.span.start)
        start = properties.end() if properties else node.span.start
        flow = self._text.startswith("[", start)
        if not node.items or (not flow and not self._text.startswith("-", start)):
            return self._opaque(node, outer)
        items: list[SeqItem] = []
        cursor = start + 1 if flow else start
        column = self._column(start)
        opening = "" if flow else self._text[node.span.start : start]
        bounds = self._item_bounds(node)
        for item, bound in zip(node.items, bounds, strict=True):
            dash = cursor if flow else self._next_dash(cursor)
            if dash < 0:
                return self._opaque(node, outer)
            first, last, value = self._placed(item, dash if flow else dash + 1, bound, column)
            stop = self._stop(value, last, flow)
            before, head = self._text[cursor:dash], self._text[dash:first]
            if flow:
                before, head = head, ""
                opening = opening or self._text[node.span.start : first]
            span = Span(first, last)
            layout = EntryLayout(span, value, "", _before(before, flow), head, self._text[last:stop], column, flow)
            items.append(SeqItem(value, layout))
            cursor = stop
        return Seq(items, flow=flow, frame=self._frame(node.span, cursor, column, opening, flow))

    def _placed(self, node: nodes.Node, start: int, following: int, column: int) -> tuple[int, int, Draft]:
        """Return where a value stands, and the value; an alias stands where its node does not."""
        inside = start <= node.span.start and node.span.end <= max(following, start)
        if not inside or id(node) in self._seen:
            found = _ALIAS.search(self._text, start)
            if found:
                span = Span(*found.span())
                return found.start(), found.end(), Leaf(found[0], None, nodes.Scalar(span, None, found[0], "*"), column)
        value = self.read(node, column)
        end = value.frame.extent.end if not isinstance(value, Leaf) and value.frame else node.span.end
        return node.span.start, end, value

    def _frame(self, span: Span, cursor: int, column: int, opening: str, flow: bool) -> BlockLayout:
        end = span.end if flow else max(cursor, self._line_end(span.end) if cursor < span.end else cursor)
        return BlockLayout(span, Span(span.start, end), column, opening, self._text[cursor:end])

    def _stop(self, value: Draft, end: int, flow: bool) -> int:
        """Return where an entry's text ends: in a block, with its line."""
        return end if flow or _is_block(value) else self._line_end(end)

    def _item_bounds(self, node: nodes.Sequence) -> list[int]:
        """Return, for each item, a bound on where it ends: the next item that is not an alias, or the list's end."""
        bounds, bound = [], node.span.end
        for item in reversed(node.items):
            bounds.append(bound)
            if node.span.start <= item.span.start < bound:
                bound = item.span.start
        return bounds[::-1]

    def _next_dash(self, cursor: int) -> int:
        found = _BLANK_OR_COMMENT.match(self._text, cursor)
        at = found.end() if found else cursor
        while self._text[at : at + 1] in (" ", "\t"):
            at += 1
        return at if self._text.startswith("-", at) else -1

    def _opaque(self, node: nodes.Node, column: int) -> Leaf:
        """A node that cannot be split into entries: empty, or in an unusual form."""
        raw = self._text[node.span.start : node.span.end]
        return Leaf(raw, None, nodes.Scalar(node.span, None, raw, "?"), column)

    def _column(self, offset: int) -> int:
        return offset - max(self._text.rfind("\n", 0, offset), self._text.rfind("\r", 0, offset)) - 1

    def _line_end(self, offset: int) -> int:
        found = _TO_LINE_END.match(self._text, offset)
        return found.end() if found else offset


def _before(text: str, flow: bool) -> str:
    """Return the text before an entry: in a block its comment lines, without the entry's own indentation."""
    return text if flow else text[: max(text.rfind("\n"), text.rfind("\r")) + 1]


# ---- writing


class DocumentWriter:
    """Writes a changed document over the text it was read from."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_json = text.lstrip().startswith("{")

    def write(self, root: Map) -> str:
        if not root.changed or root.frame is None:
            return self._text
        start, end = root.frame.extent
        return self._text[:start] + self._node(root, root.frame.column) + self._text[end:]

    def _node(self, node: Draft, column: int) -> str:
        if isinstance(node, Leaf):
            return shifted(node.raw, column - node.column)
        if node.frame and not node.changed:
            start, end = node.frame.extent
            return shifted(self._text[start:end], column - node.frame.column)
        return self._flow(node, column) if node.flow else self._block(node, column)

    def _block(self, node: Map | Seq, column: int) -> str:
        frame = node.frame
        parts = [shifted_up_to(frame.opening, column - frame.column)] if frame else []
        comments_of_first = ""
        for number, part in enumerate(node.parts):
            comments = self._comments(part, column)
            if number:
                parts.append(comments + " " * column)
            parts.append(self._entry(part, column))
            if not number:
                comments_of_first = comments.lstrip("\r\n")
                parts.append(comments_of_first)
        if frame:
            parts.append(shifted(frame.closing, column - frame.column))
        return "".join(parts)

    @staticmethod
    def _comments(part: MapEntry | SeqItem, column: int) -> str:
        layout = part.layout
        return shifted_lines(layout.before, column - layout.column) if layout and not layout.flow else ""

    def _entry(self, part: MapEntry | SeqItem, column: int) -> str:
        layout, value = part.layout, part.value
        key = _key_text(part) if isinstance(part, MapEntry) else ""
        head, inner = self._head(part, column)
        after = layout.after if layout and not _is_block(value) and not layout.flow else ""
        if not after and layout and not _is_block(value) and (comment := _comment_in(layout.head)):
            after = f"  {comment}"
        text = f"{key}{head}{self._node(value, inner)}{after}"
        return text if text.endswith(("\n", "\r")) else text + "\n"

    @staticmethod
    def _head(part: MapEntry | SeqItem, column: int) -> tuple[str, int]:
        """Return what stands between a key and its value, and the value's column."""
        layout, value = part.layout, part.value
        moved = column - layout.column if layout else 0
        inner = column
        if layout and layout.value is value and not layout.flow:
            framed = not isinstance(value, Leaf) and value.frame
            return shifted_up_to(layout.head, moved), (framed.column + moved if framed else column)
        if _is_block(value):
            inner = column + _INDENT
            if isinstance(part, SeqItem):
                return "- ", inner
            return f":{_comments_around(layout, inner)}" + " " * inner, inner
        if not isinstance(value, Leaf) and value.frame:
            inner = value.frame.column + moved
        if layout and layout.head and "\n" not in layout.head:
            head = layout.head if layout.head.endswith(" ") or not _written(value) else f"{layout.head} "
            return head, inner
        return ("- " if isinstance(part, SeqItem) else ": " if _written(value) else ":"), inner

    def _flow(self, node: Map | Seq, column: int) -> str:
        opening, closing = ("{ ", " }") if isinstance(node, Map) else ("[", "]")
        if node.frame:
            opening, closing = node.frame.opening, node.frame.closing
        texts = []
        for number, part in enumerate(node.parts):
            layout = part.layout if part.layout and part.layout.flow else None
            if number:
                texts.append(layout.before if layout and "," in layout.before else ", ")
            if isinstance(part, MapEntry):
                texts.append(self._flow_key(part) + (layout.head if layout and layout.head.endswith(" ") else ": "))
            texts.append(self._inline(part.value, column))
        return opening + "".join(texts) + closing

    def _flow_key(self, pair: MapEntry) -> str:
        return _key_text(pair, json_style=self._is_json)

    def _inline(self, node: Draft, column: int) -> str:
        """Return a node on one line, or as its own brackets have it."""
        if isinstance(node, Leaf):
            block = node.style in ("|", ">") and isinstance(node.value, str)
            made = self._is_json and node.changed and isinstance(node.value, str) and node.style != '"'
            return json.dumps(node.value, ensure_ascii=False) if block or made else node.raw
        if node.flow:
            return self._node(node, column if node.frame is None else node.frame.column)
        if isinstance(node, Map):
            texts = [f"{self._flow_key(pair)}: {self._inline(pair.value, column)}" for pair in node.pairs]
            return "{ " + ", ".join(texts) + " }"
        return "[" + ", ".join(self._inline(value, column) for value in node.values) + "]"


def _is_block(value: Draft) -> bool:
    return not isinstance(value, Leaf) and not value.flow


def _written(value: Draft) -> bool:
    return not isinstance(value, Leaf) or bool(value.raw)


def _comments_around(layout: EntryLayout | None, column: int) -> str:
    """Return the comments that stood between a key and its value, or after it: one in its line, the rest below."""
    if layout is None:
        return "\n"
    first, _, rest = (layout.after.rstrip("\r\n") or layout.head).partition("\n")
    comment = _comment_in(first)
    below = [found.strip() for line in lines_of(rest) if (found := _comment_in(line))]
    return (f"  {comment}" if comment else "") + "\n" + "".join(" " * column + f"{line}\n" for line in below)


def _comment_in(text: str) -> str:
    found = _COMMENT.search(text)
    return found[1] if found else ""


def _key_text(pair: MapEntry, *, json_style: bool = False) -> str:
    written = pair.layout.written_key if pair.layout else ""
    if written and not pair.renamed:
        return written
    if json_style or written.startswith('"'):
        return json.dumps(pair.key, ensure_ascii=False)
    return pair.key if _PLAIN.fullmatch(pair.key) else quoted(pair.key)


def shifted(text: str, columns: int) -> str:
    """Move every line but the first by some columns; blank lines stay."""
    if not columns or "\n" not in text:
        return text
    first, _, rest = text.partition("\n")
    return f"{first}\n{shifted_lines(rest, columns)}"


def shifted_up_to(text: str, columns: int) -> str:
    """Move every line but the first, the indentation that ends the text included."""
    lines, line_break, last = text.rpartition("\n")
    return shifted(lines, columns) + line_break + (" " * max(0, len(last) + columns) if line_break else last)


def shifted_lines(text: str, columns: int) -> str:
    """Move every line by some columns; blank lines stay."""
    return "".join(_moved(line, columns) for line in lines_of(text)) if columns else text


def _moved(line: str, columns: int) -> str:
    if not line.strip():
        return line
    if columns > 0:
        return " " * columns + line
    return line[min(-columns, len(line) - len(line.lstrip(" "))) :]
