"""Every malformed bundle of the set is refused, with its own code, a section and a place, and in bounded memory."""

from __future__ import annotations

import tracemalloc

import pytest

from noetlvm.bytecode.codec.container import SECTIONS
from noetlvm.bytecode.codec.decoder import decode
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.codec.malformed import MALFORMED, MalformedCode
from noetlvm.bytecode.limits import BUNDLE_BYTES_MAX
from noetlvm.bytecode.program import MalformedBundleError
from tests.noetlvm.bytecode.malformed import (
    code_cases,
    container_cases,
    debug_cases,
    hostile_cases,
    record_cases,
    value_cases,
)
from tests.noetlvm.bytecode.malformed.pieces import GOOD, HEADER, Case, Cases, sealed

TABLES: tuple[Cases, ...] = (
    container_cases.CASES,
    value_cases.CASES,
    record_cases.CASES,
    code_cases.CASES,
    debug_cases.CASES,
    hostile_cases.CASES,
)
CASES: Cases = {name: case for table in TABLES for name, case in table.items()}
HAND_WRITTEN_AT_LEAST = 200
MEMORY_BYTES_MAX = 64 * 1024 * 1024


def refusal(data: bytes) -> MalformedBundleError:
    with pytest.raises(MalformedBundleError) as caught:
        decode(data)
    return caught.value


def test_the_base_of_the_set_is_a_good_bundle() -> None:
    assert encode(decode(GOOD)) == sealed(GOOD)


def test_the_set_is_large_and_no_name_is_there_twice() -> None:
    assert len(CASES) == sum(map(len, TABLES)) >= HAND_WRITTEN_AT_LEAST


def test_every_code_has_a_title_and_a_case() -> None:
    assert set(MALFORMED) == set(MalformedCode) == {case.fault for case in CASES.values()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_malformed_bundle_is_refused_with_its_code(case: Case) -> None:
    data = case.bytes()
    error = refusal(data)
    assert error.code == case.fault
    assert error.section == (case.section or error.section)
    assert error.section in (*SECTIONS, "container")
    assert 0 <= error.offset <= len(data)
    assert error.reason


def test_a_checksum_changes_nothing_of_what_is_refused() -> None:
    for name, case in CASES.items():
        data = case.bytes()
        if data.startswith(HEADER) and case.fault is not MalformedCode.TOO_LARGE and len(data) < BUNDLE_BYTES_MAX - 32:
            assert (name, refusal(sealed(data)).code) == (name, case.fault)


def test_a_bundle_with_any_bit_changed_is_refused_before_it_is_decoded() -> None:
    good = sealed(GOOD)
    early = {MalformedCode.NOT_A_BUNDLE, MalformedCode.NEWER_FORMAT, MalformedCode.NEWER_INSTRUCTIONS}
    for bit in range(8 * len(good)):
        changed = bytearray(good)
        changed[bit // 8] ^= 1 << bit % 8
        code = refusal(bytes(changed)).code
        assert code is MalformedCode.CHECKSUM or (bit < 8 * len(HEADER) and code in {*early, MalformedCode.RESERVED})


@pytest.mark.parametrize("case", hostile_cases.CASES.values(), ids=hostile_cases.CASES.keys())
def test_a_hostile_bundle_takes_little_memory(case: Case) -> None:
    data = case.bytes()
    tracemalloc.start()
    try:
        refusal(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak + len(data) <= MEMORY_BYTES_MAX


def test_every_beginning_of_a_bundle_is_refused() -> None:
    for length in range(len(GOOD)):
        assert refusal(GOOD[:length]).code in (MalformedCode.NOT_A_BUNDLE, MalformedCode.TRUNCATED)
    for length in range(len(HEADER), len(sealed(GOOD))):
        assert refusal(sealed(GOOD)[:length]).code is MalformedCode.CHECKSUM
