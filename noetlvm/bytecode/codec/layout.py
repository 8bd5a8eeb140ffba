"""How the sections of a bundle are laid out, as far as encoder and decoder must agree and the code does not show it.

- metadata: for each playbook `[name, path, metadata, executor, entry step, final step, no next is an error]`, the name
  being null where it is the usual one
- constants: the values, those that every bundle knows by their numbers (`known_constants`)
- expressions: for each its length and as many bytes: number of slots, then instructions
- net: for each playbook the list of its steps `[name, bits, admit, loops, arcs, settings]`, a loop being
  `[collection, iterator, bits, width, [key, reducer, …]]` and an arc `[target, bits, guard, args]`
- pipelines: for each step that has one its length and as many bytes: number of counters, then instructions
- keychain: for each playbook the list of its credentials `[name, kind, settings]`
- workload: for each playbook a mapping
- debug: the list of files, the list of constructs, then for each address the number of its construct and its marks

A section ends where its last value does, so nothing says how many there are. Values and records are msgpack, each in
its shortest form; lengths and the numbers in code are LEB128. Names of steps and settings are numbers of constants;
collections are numbers of expressions; the final step, admit, guard and args are 0 for none or the number plus 1.

A mark is written as a move from the mark before it, the first from file 0, line 1, column 1. The number's low bits say
which: `…0` along the line by a signed number of columns; `…01` by a signed number of lines, then the column; `…11` to a
file, then line and column. Signed numbers are zigzag: 0, -1, 1, -2, 2 are 0, 1, 2, 3, 4.
"""

from __future__ import annotations

from typing import Final


def usual_name(path: str) -> str:
    """Return what a playbook of this path is called unless it says otherwise."""
    return path.rpartition("/")[2]


DROPS_DENIED: Final = 1
BEST_EFFORT: Final = 2
INCLUSIVE: Final = 4
HAS_PIPELINE: Final = 8
STEP_BITS: Final = 15

PARALLEL: Final = 1
DISTRIBUTED: Final = 2
LOOP_BITS: Final = 3

HANDLES_FAILURE: Final = 1
ARC_BITS: Final = 1

OTHER_LINE: Final = 0b01
OTHER_FILE: Final = 0b11

SPREAD_BITS: Final = 3
