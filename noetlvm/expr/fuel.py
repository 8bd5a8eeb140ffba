"""What an evaluation may use up: steps bound its time, bytes bound what it makes.

Every operation pays before it works: a step for each instruction and each element it looks at, and for whatever it
makes an upper bound of the memory that this takes. So the outcome depends on the expression and its data alone, never
on the machine.
"""

from __future__ import annotations

from typing import NoReturn

from noetlvm.expr.errors import ErrorKind, ExpressionError

DEFAULT_STEPS = 200_000
"""Steps of one evaluation; it takes some tens of milliseconds to use them up."""

DEFAULT_BYTES = 4 << 20
"""Bytes that one evaluation may make, including those it drops again."""

JSON_BYTES = 11 << 20
"""Bytes of JSON text besides, which one evaluation may make of its data: whole tables are passed on as JSON. With the
bytes above it stays under 16 MB."""

MAX_DEPTH = 128
"""How deep data may be nested that is printed, compared or used as a key."""

MAX_INT_BITS = 4_096
"""How long a whole number may become."""

NODE_STEPS = 3
"""Steps for each value inside of nested data that is printed, compared or used as a key."""

CALL_STEPS = 10
"""Steps for each item that a filter hands to another filter or test, or writes by itself."""


class Fuel:
    """What is left. One object for each evaluation, or for several that share a budget."""

    __slots__ = ("bytes", "json", "steps")

    def __init__(self, steps: int = DEFAULT_STEPS, bytes: int = DEFAULT_BYTES) -> None:
        self.steps = steps
        self.bytes = bytes
        self.json = JSON_BYTES

    def spend(self, steps: int) -> None:
        """Pay for work."""
        self.steps -= steps
        if self.steps < 0:
            self.run_out()

    def make(self, size: int) -> None:
        """Pay for what is about to be made."""
        self.bytes -= size
        if self.bytes < 0:
            self.run_out()

    def write_json(self, size: int) -> None:
        """Pay for JSON text; it is written in C, so that its cost follows the bytes."""
        self.json -= size
        if self.json < 0:
            self.bytes = -1
            self.run_out()

    def run_out(self) -> NoReturn:
        """Say which of the two is used up."""
        if self.bytes < 0:
            raise ExpressionError(
                ErrorKind.SIZE, "the expression makes too much data; make less of it, or use a `python` task"
            )
        raise ExpressionError(ErrorKind.FUEL, "the expression takes too many steps; do this work in a `python` task")
