"""The code of the conformance cases, instruction by instruction, as a reviewer reads it.

After a change that is meant: `noetlc compile CASE.yaml --emit asm -o CASE.asm`, remove the line `.isa`, and look at the
difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from noetlc.assembly.assembler import assemble
from noetlc.assembly.disassembler import disassemble
from noetlc.compile import compile_playbooks
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.conformance.stages import without_version

CASES = sorted((Path(__file__).parents[3] / "conformance" / "compile").glob("*.yaml"))


def test_there_are_cases() -> None:
    assert len(CASES) > 5


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_the_code_is_as_written_down(case: Path) -> None:
    compiled = compile_playbooks([(case.name, case.read_bytes())])
    assert compiled.program is not None
    assert without_version(disassemble(compiled.program)) == case.with_suffix(".asm").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_its_text_makes_the_same_bundle_again(case: Path) -> None:
    compiled = compile_playbooks([(case.name, case.read_bytes())])
    assert encode(assemble(case.with_suffix(".asm").read_text(encoding="utf-8"))) == compiled.data
