"""How the invalid programs are written down: assembly, with `!` before the instruction that is to be refused.

Most cases need only one expression or one pipeline. `SHORT` has names for expressions that occur in many pipelines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from noetlc.assembly.assembler import assemble
from noetlvm.bytecode.program import Program

Row = tuple[str, str, str]
"""Expected code, what is wrong in words, and the text."""


@dataclass(frozen=True, slots=True)
class Case:
    """An invalid program and how it is refused."""

    code: str
    name: str
    section: str
    make: Callable[[], Program]
    offset: int | None = None
    """None where the text does not say."""


def retry_text(attempts: str = "2", backoff: str = "none", delay: str = "none") -> str:
    """Return a RETRY as assembly, without its label: the only place that has the order of its operands."""
    return f"RETRY {attempts} {backoff} {delay}"


SHORT = {
    "<{}>": "( CONST {}; RETURN )",
    "<true>": "( CONST true; TRUTH; RETURN )",
    "<ok>": '( NAME outcome; ATTR "status"; CONST "ok"; COMPARE ==; TRUTH; RETURN )',
    "<more>": '( NAME ctx; ATTR "more"; TRUTH; RETURN )',
    "<1>": "( CONST 1; RETURN )",
    "<retry>": retry_text(),
    "<patch>": '( CONST 1; RECORD ["n"]; RETURN )',
}

_STEP = '.playbook "main" "main"\n.entry "start"\n.step "start"\n'
_LOOP = '.loop "item" width 1; .in ( CONST []; RETURN )\n'

PLACES = {
    "admit": _STEP + ".admit (HERE)",
    "loop": _STEP + '.loop "item" width 1; .in (HERE)',
    "inner loop": _STEP + _LOOP + '.loop "inner" width 1; .in (HERE)',
    "arc when": _STEP + '.arc "start"; .when (HERE)',
    "arc args": _STEP + '.arc "start"; .args (HERE)',
    "inputs": _STEP + '.tool ( ENTER "a"; CALL "noop" (HERE) <{}>; BREAK )',
    "inputs in loop": _STEP + _LOOP + '.tool ( ENTER "a"; CALL "noop" (HERE) <{}>; BREAK )',
    "spec": _STEP + '.tool ( ENTER "a"; CALL "noop" <{}> (HERE); BREAK )',
    "before call": _STEP
    + '.tool ( ENTER "a"; UNLESS (HERE) go; SKIP end; go: CALL "noop" <{}> <{}>; BREAK; end: END )',
    "sugar": _STEP + '.tool ( MARK "choose_1.when_1"; UNLESS (HERE) end; MARK "choose_1.end"; end: END )',
    "rule": _STEP + '.tool ( ENTER "a"; CALL "noop" <{}> <{}>; UNLESS (HERE) stop; BREAK; stop: FAIL )',
    "patch before call": _STEP + '.tool ( ENTER "a"; PATCH none (HERE); SKIP end; end: END )',
    "patch ctx": _STEP + '.tool ( ENTER "a"; CALL "noop" <{}> <{}>; PATCH none (HERE); BREAK )',
    "patch iter": _STEP + _LOOP + '.tool ( ENTER "a"; CALL "noop" <{}> <{}>; PATCH (HERE) none; BREAK )',
    "attempts": _STEP + f'.tool ( ENTER "a"; go: CALL "noop" <{{}}> <{{}}>; {retry_text("(HERE)")} go; FAIL )',
    "rounds": _STEP + ".tool ( .slots 1; ROUND 0 (HERE); END )",
    "width": _STEP + '.loop "item" parallel; .in ( CONST []; RETURN ); .width (HERE)',
    "rate": _STEP + _LOOP + ".rate (HERE)",
    "delay": _STEP + f'.tool ( ENTER "a"; go: CALL "noop" <{{}}> <{{}}>; {retry_text(delay="(HERE)")} go; FAIL )',
}
"""Where an expression may stand, with `HERE` for its code. Every one of these is valid but for it."""


def in_place(place: str, text: str) -> Program:
    """Return a program with an expression in that place."""
    return assemble(_long(PLACES[place]).replace("HERE", unmarked(text)))


def with_pipeline(text: str, *, in_loop: bool = False) -> Program:
    """Return a program of one step with this pipeline."""
    return assemble(_STEP + (_LOOP if in_loop else "") + f".tool ({_long(unmarked(text))})")


def expressions(place: str, *rows: Row) -> list[Case]:
    """Return cases of expressions in a place."""
    return [Case(code, name, "expressions", partial(in_place, place, text), marked(text)) for code, name, text in rows]


def pipelines(*rows: Row, in_loop: bool = False) -> list[Case]:
    """Return cases of pipelines."""
    return [
        Case(code, name, "pipelines", partial(with_pipeline, text, in_loop=in_loop), marked(text))
        for code, name, text in rows
    ]


def programs(section: str, *rows: Row) -> list[Case]:
    """Return cases of whole programs."""
    return [Case(code, name, section, partial(assemble, _long(text))) for code, name, text in rows]


_MARK = re.compile(r"(^|[;:]) *!")


def marked(text: str) -> int | None:
    """Return which instruction is marked."""
    mark = _MARK.search(text)
    return text.count(";", 0, mark.end()) - text.startswith(".slots") if mark else None


def unmarked(text: str) -> str:
    """Return the text as the assembler reads it."""
    return _MARK.sub(r"\1 ", text)


def _long(text: str) -> str:
    for short, long in SHORT.items():
        text = text.replace(short, long)
    return text
