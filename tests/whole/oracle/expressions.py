"""Compares our evaluation of generated expressions with Jinja2's.

`python -m tests.whole.oracle.expressions --count 100000`

Each is lowered by the compiler and run twice, translated and interpreted. All three must give the same value, or all
must fail.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from noetlc.codegen.expressions import lower_template
from noetlc.syntax.template_parser import parse_template
from noetlvm.expr.errors import ErrorKind, ExpressionError, Fuel
from noetlvm.expr.interpret import compile_expression
from noetlvm.expr.values import Undefined
from tests.whole.oracle.generator import CONTEXT, Generator
from tests.whole.oracle.jinja import DataEnvironment, plain

FAILED = ("failed",)
SEEN_BY_JINJA = {
    **CONTEXT["steps"],
    **CONTEXT["workload"],
    **CONTEXT["iter"],
    **CONTEXT["ctx"],
    **CONTEXT["args"],
    **{name: value for name, value in CONTEXT.items() if name != "steps"},
}


@dataclass
class Comparison:
    """What a run found."""

    different: list[tuple[str, Any, Any]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def of_jinja(environment: DataEnvironment, template: str) -> Any:
    """Return the value that Jinja2 gives, or FAILED."""
    try:
        if parse_template(template).is_single:
            value = environment.compile_expression(template[2:-2], undefined_to_none=False)(**SEEN_BY_JINJA)
        else:
            value = environment.from_string(template).render(**SEEN_BY_JINJA)
    except Exception:  # whatever Jinja2 or Python raises on it, it has no value
        return FAILED
    return plain(value)


def of_ours(template: str, *, checked: bool) -> Any:
    """Return the value that we give, or FAILED; None if it is over the limits, of which Jinja2 has none."""
    evaluate = compile_expression(lower_template(parse_template(template)).expression, checked=checked)
    try:
        value = evaluate(CONTEXT, Fuel())
    except ExpressionError as error:
        return None if error.kind in (ErrorKind.FUEL, ErrorKind.SIZE) else FAILED
    return ("undefined",) if isinstance(value, Undefined) else our_plain(value)


def our_plain(value: Any) -> Any:
    """Return `plain` of a value that may hold our own undefined."""
    if isinstance(value, Undefined):
        return ("undefined",)
    if isinstance(value, dict):
        return ("dict", [(our_plain(key), our_plain(item)) for key, item in value.items()])
    if isinstance(value, (list, tuple)):
        return ("tuple" if isinstance(value, tuple) else "list", [our_plain(item) for item in value])
    return plain(value)


def compare(count: int, seed: int) -> Comparison:
    """Compare so many templates."""
    generator, environment, found = Generator(seed), DataEnvironment(), Comparison()
    for _ in range(count):
        template = generator.template()
        expected = of_jinja(environment, template)
        translated, interpreted = of_ours(template, checked=False), of_ours(template, checked=True)
        if translated != interpreted:
            found.different.append((template, translated, interpreted))
        elif translated is None:
            found.counts["over a limit"] += 1
        elif translated != expected:
            found.different.append((template, translated, expected))
        else:
            found.counts["both fail" if expected == FAILED else "same value"] += 1
    return found


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = compare(options.count, options.seed)
    for template, ours, expected in found.different[:20]:
        print(f"{template}\n  ours     {ours}\n  expected {expected}")
    print(dict(found.counts), f"different: {len(found.different)}")
    return 1 if found.different else 0


if __name__ == "__main__":
    sys.exit(main())
