"""Our driver of lark's tables accepts what lark's own parser accepts."""

from __future__ import annotations

from random import Random

import lark
import pytest
from lark.exceptions import UnexpectedToken

from noetlc.syntax.lalr import END, GRAMMARS, Parser, grammar_text, load_grammar

TOKENS = 40
WALKS = 4


@pytest.mark.parametrize("name", GRAMMARS)
def test_both_parsers_accept_the_same_terminals_along_random_walks(name: str) -> None:
    theirs = lark.Lark(grammar_text(name), parser="lalr", lexer="basic", maybe_placeholders=False)
    for seed in range(WALKS):
        random = Random(seed)
        ours = Parser(load_grammar(name), lambda production, _: production.label)
        beside = theirs.parse_interactive("")
        for _ in range(TOKENS):
            expected = ours.expected()
            assert {terminal for terminal in expected if terminal != END} == beside.accepts() - {END}
            assert ours.accepts(END) == (END in beside.accepts())
            going_on = [terminal for terminal in expected if terminal != END]
            if not going_on:
                break
            terminal = random.choice(going_on)
            ours.feed(terminal, terminal)
            beside.feed_token(lark.Token(terminal, ""))


def test_a_terminal_that_lark_refuses_is_refused() -> None:
    theirs = lark.Lark(grammar_text("expression"), parser="lalr", lexer="basic", maybe_placeholders=False)
    every = {terminal.name for terminal in theirs.terminals}
    ours = Parser(load_grammar("expression"), lambda *_: None)
    for terminal in every - set(ours.expected()):
        assert not ours.accepts(terminal)
        with pytest.raises(UnexpectedToken):
            theirs.parse_interactive("").feed_token(lark.Token(terminal, ""))
