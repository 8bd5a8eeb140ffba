"""From the text of one YAML scalar to a template's tree, along `grammar/expression.lark`. Never fails on any text.

A mistake costs its own `{{ … }}` or `{% … %}`: the parser goes back to just after the opening mark, puts an `Error`
there and continues after the closing mark. Blocks that nothing closes are closed where something else ends them. So
one run finds the mistakes of every mark, and there is always a tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from noetlc.syntax import template_mistakes as mistakes
from noetlc.syntax.document_cache import per_document
from noetlc.syntax.input import EXPRESSION_CHARS_MAX, EXPRESSION_DEPTH_MAX, EXPRESSION_TOKENS_MAX
from noetlc.syntax.lalr import Parser, load_grammar
from noetlc.syntax.span import Span
from noetlc.syntax.template_ast import Data, Error, Output, Template, TemplateProblem, Unsupported, without_final_break
from noetlc.syntax.template_builder import TreeBuilder, normalised
from noetlc.syntax.template_lexer import ENDS, OUTPUT_CLOSE, TAG_CLOSE, Opening, TemplateLexer, TemplateToken, Trouble

PROBLEMS_MAX = 100
"""Mistakes in one template after which reading it stops: nobody reads more, and hostile text is full of them."""

_TAKERS = {
    "TAG_ELIF": ("if",),
    "TAG_ELSE": ("if", "for"),
    "TAG_ENDIF": ("if",),
    "TAG_ENDFOR": ("for",),
    "TAG_ENDSET": ("set",),
}
"""Statements that belong to an open block, and the blocks that they may belong to."""

_BLOCKS = {"TAG_IF": "if", "TAG_FOR": "for", "TAG_SET_BLOCK": "set"}
_END_TAGS = {"if": "TAG_ENDIF", "for": "TAG_ENDFOR", "set": "TAG_ENDSET"}
_SPELLED_LIKE_ELIF = frozenset({"elseif", "elsif"})


@per_document
def parse_template(text: str) -> Template:
    """Return the tree of a template, with everything that is wrong with it."""
    whole = Span(0, len(text))
    if len(text) > EXPRESSION_CHARS_MAX:
        return Template(whole, text, _unread(whole), (mistakes.too_long(text, EXPRESSION_CHARS_MAX),))
    template = _Reading(text).template()
    go = mistakes.go_template(text) if template.problems else None
    return Template(whole, text, _unread(whole), (go,)) if go else template


def _unread(span: Span) -> tuple[Output]:
    return (Output(span, Error(span)),)


class _TooManyBlocksError(Exception):
    """Blocks nest too deep; the template is given up."""


class _Block(NamedTuple):
    keyword: str
    span: Span
    has_else: bool = False


class _Reading:
    """One parse of one text."""

    def __init__(self, text: str) -> None:
        self._whole = text
        self._text = without_final_break(text)
        self._lexer = TemplateLexer(self._text)
        self._builder = TreeBuilder(self._text)
        self._problems = self._builder.problems
        self._parser = Parser(load_grammar("expression"), self._builder.reduce)
        self._blocks: list[_Block] = []
        self._unsupported: set[str] = set()
        self._broken_set = False

    def template(self) -> Template:
        span = Span(0, len(self._whole))
        try:
            self._read_pieces()
            self._close_blocks(0, "")
            parts = self._parser.finish()
        except _TooManyBlocksError:
            parts = _unread(span)
        return Template(span, self._whole, parts, _in_order(self._problems))

    def _read_pieces(self) -> None:
        position = 0
        while position < len(self._text) and len(self._problems) < PROBLEMS_MAX:
            piece = self._lexer.piece(position)
            for span in piece.data:
                self._parser.feed("DATA", Data(span, normalised(self._text[span.start : span.end])))
            if piece.unclosed:
                self._problems.append(mistakes.unclosed_text(self._text, piece.unclosed))
            position = self._read_mark(piece.opening) if piece.opening else piece.resume

    def _read_mark(self, opening: Opening) -> int:
        """Read from an opening mark to its close; return where text continues."""
        if opening.keyword in _SPELLED_LIKE_ELIF:
            self._problems.append(mistakes.unknown_statement(opening))
            opening = opening._replace(terminal="TAG_ELIF")
        if not opening.terminal:
            return self._leave_out(opening, self._unsupported_problem(opening))
        takers = _TAKERS.get(opening.terminal)
        if takers and not self._find_block(opening, takers):
            return self._leave_out(opening, self._stray_problem(opening, takers))
        return self._read_stretch(opening)

    # ---- blocks

    def _find_block(self, opening: Opening, takers: tuple[str, ...]) -> bool:
        """Make the block that a statement belongs to the innermost one, closing those inside it."""
        is_end = opening.terminal in _END_TAGS.values()
        for index in reversed(range(len(self._blocks))):
            block = self._blocks[index]
            if block.keyword in takers and (is_end or not block.has_else):
                self._close_blocks(index + 1, opening.keyword)
                return True
        return False

    def _close_blocks(self, keep: int, before: str) -> None:
        """Close the blocks past the first `keep`, which nothing in the text closes."""
        here = Span(len(self._text), len(self._text))
        while len(self._blocks) > keep:
            block = self._blocks.pop()
            self._problems.append(mistakes.open_block(block.keyword, block.span, before))
            self._parser.feed(_END_TAGS[block.keyword], here)
            self._parser.feed(TAG_CLOSE, here)

    def _track_block(self, opening: Opening, read: bool) -> None:
        """Keep count of open blocks after a statement was read."""
        keyword = _BLOCKS.get(opening.terminal)
        if keyword == "set" and not read:
            self._broken_set = True  # it may have been either form: an `endset` is then no mistake of its own
        elif keyword:
            self._blocks.append(_Block(keyword, opening.span))
            if len(self._blocks) > EXPRESSION_DEPTH_MAX:
                self._problems.append(mistakes.too_deep(opening.span, "blocks", EXPRESSION_DEPTH_MAX))
                raise _TooManyBlocksError
        elif opening.terminal == "TAG_ELSE":
            self._blocks[-1] = self._blocks[-1]._replace(has_else=True)
        elif opening.terminal in _END_TAGS.values():
            self._blocks.pop()

    def _unsupported_problem(self, opening: Opening) -> TemplateProblem | None:
        if opening.keyword.removeprefix("end") in self._unsupported:
            return None  # its beginning was reported
        self._unsupported.add(opening.keyword)
        return mistakes.unknown_statement(opening)

    def _stray_problem(self, opening: Opening, takers: tuple[str, ...]) -> TemplateProblem | None:
        if opening.terminal == "TAG_ENDSET" and self._broken_set:
            return None
        return mistakes.stray_tag(opening, takers)

    def _leave_out(self, opening: Opening, problem: TemplateProblem | None) -> int:
        """Pass over a statement that has no place in the tree."""
        if problem:
            self._problems.append(problem)
        end = _last(self._lexer.tokens(opening.span.end))
        if end.terminal != TAG_CLOSE:
            self._problems.append(mistakes.unclosed_mark(self._text, opening, end))
        span = Span(opening.span.start, end.span.end)
        self._parser.feed("UNSUPPORTED", Unsupported(span, opening.keyword))
        return self._lexer.after_close(end.span)

    # ---- between marks

    def _read_stretch(self, opening: Opening) -> int:
        """Feed an opening mark, what stands in it and its close to the parser, whatever stands in it."""
        close = OUTPUT_CLOSE if opening.terminal == "OUTPUT_OPEN" else TAG_CLOSE
        self._parser.feed(opening.terminal, opening.span)
        mark = self._parser.mark()
        end, problem = self._feed_tokens(opening, close)
        if end.terminal != close:
            problem = mistakes.unclosed_mark(self._text, opening, end)
        read = problem is None or (end.terminal != close and self._parser.try_feed(close, end.span))
        if problem:
            self._problems.append(problem)
        if not read:
            self._recover(mark, opening, close, end)
        self._track_block(opening, read)
        return self._lexer.after_close(end.span) if end.terminal in (OUTPUT_CLOSE, TAG_CLOSE) else end.span.end

    def _feed_tokens(self, opening: Opening, close: str) -> tuple[TemplateToken, TemplateProblem | None]:
        """Feed tokens up to the close; at the first that does not fit, record the problem and skip the rest."""
        tokens = self._lexer.tokens(opening.span.end)
        previous: TemplateToken | None = None
        builder, try_feed = self._builder, self._parser.try_feed
        for count, token in enumerate(tokens):
            if count > EXPRESSION_TOKENS_MAX:
                return _last(tokens), mistakes.too_many_tokens(opening.span, EXPRESSION_TOKENS_MAX)
            terminal, span = token
            builder.next_terminal, builder.next_span = token
            if terminal in ENDS and terminal != close:
                return token, None
            if not try_feed(terminal, span):
                return self._stumble(opening, token, previous, tokens)
            if terminal == close:
                return token, None
            previous = token
        raise AssertionError("the lexer ends each stretch with a token of ENDS")

    def _stumble(
        self, opening: Opening, token: TemplateToken, previous: TemplateToken | None, rest: Iterator[TemplateToken]
    ) -> tuple[TemplateToken, TemplateProblem]:
        """Return the stretch's last token, and the problem that `token` makes."""
        string = next((near for near in (token, previous) if near and self._runs_away(near)), None)
        if string is not None:
            end = _last(self._lexer.tokens(string.span.start + 1))
            return end, mistakes.runaway_string(self._text, string)
        if token.terminal == Trouble.TOO_DEEP:
            problem = mistakes.too_deep(token.span, "brackets", EXPRESSION_DEPTH_MAX)
        else:
            expected = frozenset(self._parser.expected())
            problem = mistakes.explain(mistakes.Stumble(self._text, opening, token, previous, expected))
        return (token if token.terminal in ENDS else _last(rest)), problem

    def _runs_away(self, token: TemplateToken) -> bool:
        """Return whether a string holds the end of a mark, so that its opening quote may be a slip."""
        if token.terminal != "STRING":
            return False
        return any(self._text.find(mark, *token.span) >= 0 for mark in ("}}", "%}"))

    def _recover(self, mark: int, opening: Opening, close: str, end: TemplateToken) -> None:
        """Go back to just after the opening mark and put an error there."""
        self._parser.rewind(mark)
        if self._parser.accepts("ERROR"):
            self._parser.feed("ERROR", Error(Span(opening.span.end, end.span.start)))
        self._parser.feed(close, end.span)


def _last(tokens: Iterator[TemplateToken]) -> TemplateToken:
    last = None
    for token in tokens:
        last = token
    assert last is not None  # a stretch has at least its end
    return last


def _in_order(problems: list[TemplateProblem]) -> tuple[TemplateProblem, ...]:
    """Return problems by place, one for each place."""
    by_place: dict[Span, TemplateProblem] = {}
    for problem in sorted(problems, key=lambda problem: problem.span):
        by_place.setdefault(problem.span, problem)
    return tuple(by_place.values())
