"""How the sections of a bundle are laid out, as far as encoder and decoder must agree and the code does not show it.

- metadata: for each playbook `[name, path, metadata, executor, entry step, final step or null, no next is an error]`
- constants: the values
- expressions: for each a block of bytes: number of slots, then instructions
- net: for each playbook its steps `[name, bits, admit, loops, arcs, settings]`, a loop being
  `[collection, iterator, bits, width, [key, reducer, …]]` and an arc `[target, bits, guard, args]`
- pipelines: for each step that has one a block of bytes: number of counters, then instructions
- keychain: for each playbook its credentials `[name, kind, settings]`
- workload: for each playbook a mapping
- debug: `[files, constructs, block of bytes]`: for each address the number of its construct, then its marks

In the net, names and settings are numbers of constants; collections are numbers of expressions; admit, guard and args
are 0 for none or the number of an expression plus 1. An instruction is its opcode and its operands as LEB128 numbers.

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
