"""Finds a grammar's parse tables, or has lark build them and caches them.

A wheel carries ready tables in `noetlc/_grammar/`. A source checkout has none, so the first run builds them and
saves them in the user's cache folder under a name that changes with the grammar. The tables are plain JSON: a
tampered cache can break a parse but run nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from noetlc.syntax.lalr import Grammar, Production

_PACKAGE = Path(__file__).resolve().parent.parent
_SHIPPED = _PACKAGE / "_grammar"
_CHECKOUT = _PACKAGE.parent / "grammar"
_TABLE_FORMAT = 1

GRAMMARS = {"playbook": True, "expression": False, "assembly": False}
"""Each grammar, and whether its literals stay in the tree: a playbook's keys carry places, an operator says it all."""


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
    """Write through a temporary file so that a reader never sees half of it; a read-only cache is no error."""
    import tempfile

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump(tables, file, sort_keys=True)
        Path(file.name).replace(path)
    except OSError:
        return
