"""Every case of the stage `verify`: a bundle is accepted, or refused with the code that the case names."""

from __future__ import annotations

import pytest

from noetlc.assembly.assembler import assemble
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.program import BundleError
from noetlvm.bytecode.verify.verifier import load
from tests.whole.conformance.suite import Case, read_cases


def bundle_of(case: Case) -> bytes:
    """Assemble a case and apply its mutation."""
    data = bytearray(encode(assemble(case.data.decode())))
    match str(case.expect.get("mutation", "none")).split():
        case ["cut", count]:
            del data[-int(count) :]
        case ["append", digits]:
            data += bytes.fromhex(digits)
        case ["set", offset, digits]:
            data[int(offset) : int(offset) + len(digits) // 2] = bytes.fromhex(digits)
        case mutation:
            assert mutation == ["none"]
    return bytes(data)


def code_of(data: bytes) -> str | None:
    try:
        load(data)
    except BundleError as error:
        return error.code
    return None


@pytest.mark.parametrize("case", read_cases("verify"), ids=lambda case: case.id)
def test_a_bundle_gets_the_answer_of_its_case(case: Case) -> None:
    assert code_of(bundle_of(case)) == case.expect["code"]
