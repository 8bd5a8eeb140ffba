"""Our driver of lark's tables accepts what lark's own parser accepts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import lark
import pytest
from lark.exceptions import UnexpectedToken

from noetlc.syntax.lalr import END, GRAMMARS, Parser, grammar_text, load_grammar

ROOT = Path(__file__).parents[3]
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


DISK_FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
from noetlc.syntax.lalr import load_grammar
assert load_grammar("expression").states
"""
"""No file can become larger than 1,000 bytes: a write fails in the middle, as on a full disk."""


def test_a_full_disk_leaves_no_part_of_a_table_in_the_cache(tmp_path: Path) -> None:
    environment = {**os.environ, "NOETLC_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", DISK_FULL], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "cache").iterdir()) == []
