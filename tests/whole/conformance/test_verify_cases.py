"""Every case of the stage `verify`: a bundle is accepted, or refused with the code that the case names."""

from __future__ import annotations

import pytest

from noetlvm.bytecode.errors import BundleError
from noetlvm.bytecode.load import load
from tests.whole.conformance.suite import Case, read_cases


def code_of(data: bytes) -> str | None:
    try:
        load(data)
    except BundleError as error:
        return error.code
    return None


@pytest.mark.parametrize("case", read_cases("verify"), ids=lambda case: case.id)
def test_a_bundle_gets_the_answer_of_its_case(case: Case) -> None:
    assert code_of(bytes.fromhex(case.data.decode())) == case.expect["code"]
