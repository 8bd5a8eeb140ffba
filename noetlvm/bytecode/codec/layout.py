"""How the sections of a bundle are laid out, as far as encoder and decoder must agree and the code does not show it.

Every section is a sequence of msgpack values, each in its shortest form. docs/bundle-format.md describes them all.

- metadata: for each playbook `[name, path, metadata, executor, entry step, final step, no next is an error]`; the name
  is null where it is the last part of the path
- constants: the values
- expressions: for each its code as bytes: number of slots, then instructions
- net: for each playbook the list of its steps `[name, bits, admit, loops, arcs, settings]`, a loop being
  `[collection, iterator, bits, width, rate, [key, reducer, …]]` and an arc `[target, bits, guard, args]`
- pipelines: for each step that has one its code as bytes: number of counters, then instructions
- keychain: for each playbook the list of its credentials `[name, kind, settings]`
- workload: for each playbook a mapping
- debug: the list of files, the list of constructs, and as bytes for each address the number of its construct and its
  marks

Names of steps and settings are indices of constants, collections are indices of expressions; the final step, admit,
guard, args and rate are 0 for none or the index plus 1; a width is twice a number, or twice the index of the
expression that gives it plus 1. Numbers in code and in marks are LEB128. Constants and expressions
are in the order of their first use: expressions by the pipelines, then the net; constants by the expressions, then the
pipelines, the net and the metadata.

A mark is written as a move from the mark before it, the first from file 0, line 1, column 1. The number's low bits say
which: `…0` along the line by a signed number of columns; `…01` by a signed number of lines, then the column; `…11` to a
file, then line and column. Signed numbers are zigzag: 0, -1, 1, -2, 2 are 0, 1, 2, 3, 4.
"""

from __future__ import annotations

from typing import Final

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
