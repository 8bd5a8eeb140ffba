"""Valid programs to begin with: the compiler's golden assembly, the samples, and what random templates become."""

from __future__ import annotations

from pathlib import Path
from random import Random

from noetlc.assembly.assembler import assemble
from noetlc.codegen.expressions import lower_template
from noetlc.syntax.template_parser import parse_template
from noetlvm.bytecode.program import ExpressionCode, LoopHeader, Program
from noetlvm.record import changed
from tests.noetlvm.bytecode.programs import SAMPLES, chain, playbook, program, step
from tests.whole.fuzz.fitted import fitted
from tests.whole.oracle.generator import Generator

GOLDEN = Path(__file__).resolve().parents[3] / "conformance" / "compile"

FOR_BLOCKS = (
    "{% for a in ctx.rows if a %}{{ loop.index }}{{ a.id }}{% else %}none{% endfor %}",
    "{% for a in ctx.nested if a %}{% for b in a if b %}{{ loop.index }}{{ b }}{% endfor %}{% endfor %}",
    "{% for k, v in args.map.items() if v %}{{ k }}={{ v }}{{ loop.last }}{% endfor %}",
    "{% set x = [ctx.numbers] %}{% for a in x if a %}{% set x = [a] %}{{ x }}{% endfor %}{{ x }}",
    "{% set x %}{% for a in ctx.words %}{{ a }}{% endfor %}{% endset %}{{ x | upper }}",
)
_SERVER_NAMES = frozenset({"workload", "ctx", "args", "execution_id"})


def seeds() -> list[Program]:
    """Return the fixed part of the set."""
    golden = [assemble(path.read_text(encoding="utf-8")) for path in sorted(GOLDEN.glob("*.asm"))]
    samples = [fitted(make()) for make in SAMPLES.values()]
    return [*golden, *samples, chain(3), *(_looping(_lowered(template)) for template in FOR_BLOCKS)]


def generated(random: Random) -> Program:
    """Return a program around some random templates."""
    generator = Generator(random.getrandbits(32))
    return _looping(*(_lowered(generator.template()) for _ in range(random.randint(1, 3))))


def _lowered(template: str) -> ExpressionCode:
    return lower_template(parse_template(template), visible=_SERVER_NAMES).expression


def _looping(*expressions: ExpressionCode) -> Program:
    """Return a program that has these as the collections of its loops, where any value may be."""
    header = LoopHeader(expressions[0], "item", parallel=False, width=1, distributed=False, reducers=())
    loops = tuple(
        changed(header, collection=expression, iterator=f"item_{level}") for level, expression in enumerate(expressions)
    )
    return program(playbook(step("start", loops=loops)))
