"""The layout of the sections of a bundle, on which encoder and decoder must agree.

Every section is a sequence of msgpack values, each in its shortest form. docs/bundle-format.md describes them all.

- metadata: for each playbook `[name, path, metadata, executor, entry step, final step, no next is an error]`; the name
  is null if it equals the last part of the path
- constants: the values
- expressions: the code of each expression as bytes: the number of slots, then the instructions
- net: for each playbook the list of its steps `[name, bits, admit, loops, arcs, settings]`. A loop is
  `[collection, iterator, bits, width, rate, [key, reducer, …]]`, and an arc is `[target, bits, guard, args]`
- pipelines: the code of each step that has a pipeline, as bytes: the number of counters, then the instructions
- keychain: for each playbook the list of its credentials `[name, kind, settings]`
- workload: for each playbook a mapping
- debug: the list of files, the list of constructs, and as bytes, for each address, the number of its construct and its
  marks

Names of steps and settings are indices of constants, and collections are indices of expressions. The final step, admit,
guard, args and rate are 0 for none, or the index plus 1. A width is twice the number; if an expression computes it, it
is twice the index of the expression plus 1. Numbers in code and in marks are LEB128. Constants and expressions are in
the order of their first use: expressions by the pipelines, then the net; constants by the expressions, then the
pipelines, the net and the metadata.

A mark is encoded as the difference from the previous mark; the first one starts from file 0, line 1, column 1. The low
bits of the number select the form. `…0`: a signed number of columns on the same line. `…01`: a signed number of lines,
then the column. `…11`: the file, then line and column. Signed numbers use zigzag encoding: 0, -1, 1, -2, 2 are 0, 1, 2,
3, 4.
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
