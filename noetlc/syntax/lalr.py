"""A small LALR driver that runs the parse tables lark computes from the grammars in `grammar/`.

Lark reads the grammars and builds the tables; this module only runs them. Why a driver of our own:
the choice of a token depends on what the parser can shift (a key is a keyword only where the grammar has one), and
importing lark would double a linter's start-up time. It is independent of YAML and templates.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from noetlvm.atomic_file import write_atomically
from noetlvm.record import IdentityRecord, Record

END = "$END"


class Production(Record):
    """One rule of the grammar, with what its reduction keeps of its children."""

    name: str
    size: int
    positions: tuple[tuple[int, bool], ...]
    """Child positions that stay in the tree, each with whether its own children are spliced in place of it."""
    inlined: bool
    """The rule's name starts with an underscore: its children go to the parent."""
    collapses: bool
    """Marked `?` in the grammar: with a single child, that child stands for the rule."""
    label: str
    """The alternative's alias (`-> label`), or the rule's name."""
    builds: bool
    """Its children go to `reduce` as they are: all stay, none is spliced."""
    passes: bool
    """A lone child stands for the rule: the reduction moves to another state and leaves the value as it is."""


class Grammar(IdentityRecord, cached=True):
    """A grammar's parse tables. Actions: a shift is the next state, a reduction is -1 minus the production."""

    states: Sequence[Mapping[str, int]]
    productions: Sequence[Production]
    start: int
    final: int
    literals: Mapping[str, str]
    """Text of each string literal in the grammar to its terminal's name."""
    patterns: Mapping[str, str]
    """Name of each terminal that has a regular expression to that expression."""

    @cached_property
    def passages(self) -> dict[tuple[int, int, str], int]:
        """Where runs of reductions that only pass a value on have led, for a state, the one below it and a terminal."""
        return {}

    def pass_on(self, below: int, state: int, terminal: str) -> int:
        """Follow the reductions that leave the value alone, as an expression climbs the levels of precedence."""
        came = (below, state, terminal)
        while True:
            action = self.states[state].get(terminal, 0)
            if action >= 0 or not self.productions[-1 - action].passes:
                self.passages[came] = state
                return state
            state = self.states[below][self.productions[-1 - action].name]


Reduce = Callable[[Production, list[Any]], Any]


class Parser:
    """One parse. Feed it terminals that it accepts; it calls `reduce` for each production."""

    def __init__(self, grammar: Grammar, reduce: Reduce) -> None:
        self._grammar = grammar
        self._reduce = reduce
        self._states = [grammar.start]
        self._values: list[Any] = []

    def accepts(self, terminal: str) -> bool:
        """Return whether `terminal` would really be shifted.

        LALR tables merge look-aheads, so a reduction may be on offer that leads to a dead end: follow it.
        """
        states, productions = self._grammar.states, self._grammar.productions
        action = states[self._states[-1]].get(terminal)
        if action is None:
            return False
        if action >= 0:
            return True
        stack = list(self._states)
        while action is not None and action < 0:
            production = productions[-1 - action]
            if production.size:
                del stack[-production.size :]
            stack.append(states[stack[-1]][production.name])
            action = states[stack[-1]].get(terminal)
        return action is not None or (terminal == END and stack[-1] == self._grammar.final)

    def expected(self) -> list[str]:
        """Return the terminals that would be shifted now, sorted."""
        row = self._grammar.states[self._states[-1]]
        return sorted(name for name in row if name.isupper() and self.accepts(name))

    def would_reduce(self, terminal: str) -> str:
        """Return the rule that an accepted `terminal` would complete: the object that a closing bracket closes."""
        ahead = Parser(self._grammar, lambda production, children: None)
        ahead._states = list(self._states)
        ahead._values = [[] for _ in self._values]
        ahead.feed(terminal, None)
        action = next(iter(self._grammar.states[ahead._states[-1]].values()))
        return self._grammar.productions[-1 - action].name

    def feed(self, terminal: str, value: Any) -> None:
        """Shift an accepted terminal, after the reductions that it calls for."""
        if not self.try_feed(terminal, value):
            raise ValueError(f"{terminal} is not accepted here")

    def try_feed(self, terminal: str, value: Any) -> bool:
        """Shift a terminal if the grammar has one here; cheaper than `accepts` and `feed`.

        When the answer is no, reductions that the terminal seemed to call for may have been made. The parse can
        continue from a `mark` that was taken before.
        """
        table, productions, states = self._grammar.states, self._grammar.productions, self._states
        passages = self._grammar.passages
        while True:
            action = table[states[-1]].get(terminal)
            if action is None:
                return False
            if action >= 0:
                states.append(action)
                self._values.append(value)
                return True
            production = productions[-1 - action]
            if production.passes:
                below, state = states[-2], states[-1]
                states[-1] = passages.get((below, state, terminal)) or self._grammar.pass_on(below, state, terminal)
            else:
                self._apply(production)

    def finish(self) -> Any:
        """Reduce what is left at the end of the input and return the start rule's value."""
        while self._states[-1] != self._grammar.final:
            action = self._grammar.states[self._states[-1]][END]
            self._apply(self._grammar.productions[-1 - action])
        return self._values[-1]

    def mark(self) -> int:
        """Remember how much has been shifted, for `rewind`."""
        return len(self._states)

    def rewind(self, mark: int) -> None:
        """Forget what was shifted since `mark`."""
        del self._states[mark:]
        del self._values[mark - 1 :]

    def _apply(self, production: Production) -> None:
        size = production.size
        values = self._values[len(self._values) - size :] if size else []
        if size:
            del self._states[-size:]
            del self._values[-size:]
        self._values.append(self._reduce(production, values) if production.builds else self._shape(production, values))
        self._states.append(self._grammar.states[self._states[-1]][production.name])

    def _shape(self, production: Production, values: list[Any]) -> Any:
        rest = production.positions
        children: list[Any] = []
        if rest and rest[0][1]:
            children = values[rest[0][0]]  # nothing else refers to the spliced list: growing it keeps repeats linear
            rest = rest[1:]
        for index, spliced in rest:
            if spliced:
                children.extend(values[index])
            else:
                children.append(values[index])
        if production.inlined:
            return children
        if production.collapses and len(children) == 1:
            return children[0]
        return self._reduce(production, children)


_PACKAGE = Path(__file__).resolve().parent.parent
_SHIPPED = _PACKAGE / "_grammar"
_CHECKOUT = _PACKAGE.parent / "grammar"
_TABLE_FORMAT = 1

GRAMMARS = {"playbook": True, "expression": False, "assembly": False}
"""Each grammar, and whether its literals stay in the tree: a playbook's keys carry places, an operator needs none."""


@cache
def load_grammar(name: str) -> Grammar:
    """Return the tables of `grammar/<name>.lark`."""
    text = grammar_text(name)
    digest = hashlib.sha256(f"{_TABLE_FORMAT}\n{text}".encode()).hexdigest()[:16]
    file_name = f"{name}-{digest}.json"
    for folder in (_SHIPPED, cache_folder()):
        grammar = _read_tables(folder / file_name)
        if grammar is not None:
            return grammar
    tables = build_tables(name, text)
    _save_tables(cache_folder() / file_name, tables)
    return _decode(tables)


def grammar_text(name: str) -> str:
    """Return the text of a grammar: from the installed package, else from the checkout."""
    for folder in (_SHIPPED, _CHECKOUT):
        path = folder / f"{name}.lark"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise FileNotFoundError(f"grammar {name}.lark is neither in {_SHIPPED} nor in {_CHECKOUT}")


def cache_folder() -> Path:
    """Return the folder for things that can be made again: `NOETLC_CACHE`, else the user's cache folder."""
    chosen = os.environ.get("NOETLC_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "noetlc"


def write_shipped_tables(folder: Path) -> list[Path]:
    """Build every grammar's tables into `folder`, for a wheel."""
    written = []
    for name in GRAMMARS:
        text = grammar_text(name)
        digest = hashlib.sha256(f"{_TABLE_FORMAT}\n{text}".encode()).hexdigest()[:16]
        path = folder / f"{name}-{digest}.json"
        path.write_text(json.dumps(build_tables(name, text), sort_keys=True), encoding="utf-8")
        written.append(path)
    return written


def build_tables(name: str, text: str) -> dict[str, Any]:
    """Have lark compute the LALR tables of a grammar, as plain JSON data."""
    import lark

    parser = lark.Lark(text, parser="lalr", lexer="basic", keep_all_tokens=GRAMMARS[name], maybe_placeholders=False)
    table: Any = parser.parser.parser._parse_table
    numbers = {rule: index for index, rule in enumerate(parser.rules)}
    states: list[dict[str, int]] = [{} for _ in table.states]
    for state, row in table.states.items():
        for symbol, (action, argument) in row.items():
            states[state][symbol] = argument if str(action) == "Shift" else -1 - numbers[argument]
    return {
        "states": states,
        "productions": [_encode_rule(rule) for rule in parser.rules],
        "start": table.start_states["start"],
        "final": table.end_states["start"],
        "literals": {t.pattern.value: t.name for t in parser.terminals if t.pattern.type == "str"},
        "patterns": {t.name: t.pattern.to_regexp() for t in parser.terminals if t.pattern.type == "re"},
    }


def _encode_rule(rule: Any) -> list[Any]:
    positions = []
    for index, symbol in enumerate(rule.expansion):
        if symbol.is_term:
            if rule.options.keep_all_tokens or not symbol.filter_out:
                positions.append([index, False])
        else:
            positions.append([index, symbol.name.startswith("_")])
    name = str(rule.origin.name)
    collapses = bool(rule.options.expand1) and not rule.alias
    return [name, len(rule.expansion), positions, name.startswith("_"), collapses, rule.alias or name]


def _decode(tables: dict[str, Any]) -> Grammar:
    productions = [_decode_rule(*row) for row in tables["productions"]]
    return Grammar(
        tables["states"], productions, tables["start"], tables["final"], tables["literals"], tables["patterns"]
    )


def _decode_rule(
    name: str, size: int, positions: list[list[Any]], inlined: bool, collapses: bool, label: str
) -> Production:
    keeps_all = positions == [[index, False] for index in range(size)]
    passes = keeps_all and collapses and size == 1
    builds = keeps_all and not passes and not inlined
    spliced = tuple((index, splices) for index, splices in positions)
    return Production(name, size, spliced, inlined, collapses, label, builds, passes)


def _read_tables(path: Path) -> Grammar | None:
    try:
        return _decode(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):  # absent, or damaged: build it again
        return None


def _save_tables(path: Path, tables: dict[str, Any]) -> None:
    """Store tables for the next process. A cache that cannot be written is not an error."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(str(path), json.dumps(tables, sort_keys=True).encode())
