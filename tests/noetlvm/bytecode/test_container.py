"""The container: header, sections, the bundle's id, and what `strip` leaves."""

from __future__ import annotations

import hashlib

import pytest

from noetlvm.bytecode.codec.container import FORMAT_MAJOR, REQUIRED, SECTIONS, bundle_id, checksum, sections, strip
from noetlvm.bytecode.codec.decoder import decode
from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.codec.malformed import MalformedCode
from noetlvm.bytecode.isa import ISA_VERSION
from noetlvm.bytecode.limits import BUNDLE_BYTES_MAX, SECTIONS_MAX
from noetlvm.bytecode.program import DebugMap, MalformedBundleError, Program
from tests.noetlvm.bytecode.malformed.pieces import GOOD, HEADER, NUMBERS, header, leb, of, sealed, section
from tests.noetlvm.bytecode.malformed.pieces import sections as good_sections
from tests.noetlvm.bytecode.programs import playbook, program, step, two_steps, with_debug

BODY = GOOD[len(HEADER) :]


def with_sections(*more: bytes) -> bytes:
    return of(*good_sections(), *more)


def refusal(data: bytes) -> MalformedBundleError:
    with pytest.raises(MalformedBundleError) as caught:
        sections(data)
    return caught.value


def test_a_bundle_begins_with_magic_and_versions() -> None:
    assert encode(two_steps())[:8] == b"\x7fNBC" + bytes((FORMAT_MAJOR, 0, ISA_VERSION, 32))


def test_sections_have_their_numbers_and_stand_in_their_order() -> None:
    assert list(SECTIONS.items()) == list(NUMBERS.items()) == sorted(NUMBERS.items(), key=lambda row: row[1])
    assert [section.id for section in sections(GOOD)] == list(SECTIONS)


def test_a_section_that_would_hold_nothing_is_left_out() -> None:
    assert [section.id for section in sections(encode(program(playbook(step("start")))))] == list(REQUIRED)


def test_a_section_is_where_it_says() -> None:
    data = encode(two_steps())
    for found in sections(data):
        start, end = found.frame
        payload = data[slice(*found.payload)]
        assert data[start:end] == section(SECTIONS[found.id], payload)


def test_a_newer_minor_version_is_read() -> None:
    data = header(minor=7) + BODY
    assert decode(data) == decode(sealed(data)) == decode(GOOD)


def test_a_bundle_without_a_checksum_is_read_and_has_the_same_id() -> None:
    assert decode(GOOD) == decode(sealed(GOOD))
    assert bundle_id(GOOD) == bundle_id(sealed(GOOD))
    assert strip(GOOD)[:8] == HEADER
    assert sealed(strip(GOOD)) == strip(sealed(GOOD))


def test_a_bundle_ends_with_the_hash_of_what_is_before() -> None:
    data = encode(two_steps())
    assert data[-32:] == hashlib.sha256(data[:-32]).digest()
    assert (checksum(data), checksum(GOOD)) == (data[-32:].hex(), None)


@pytest.mark.parametrize(
    ("data", "fault", "words"),
    [
        (header(major=FORMAT_MAJOR + 1) + BODY, MalformedCode.NEWER_FORMAT, "upgrade"),
        (header(instructions=ISA_VERSION + 1) + BODY, MalformedCode.NEWER_INSTRUCTIONS, "upgrade"),
        (header(major=3) + BODY, MalformedCode.NEWER_FORMAT, "reads 4 and 5: compile the playbook again"),
        (header(major=0) + BODY, MalformedCode.NEWER_FORMAT, "compile the playbook again"),
    ],
)
def test_another_version_is_refused_with_a_remedy(data: bytes, fault: MalformedCode, words: str) -> None:
    error = refusal(data)
    assert error.code == fault
    assert words in error.reason


def test_an_unknown_optional_section_is_skipped_and_counts_for_the_id() -> None:
    data = with_sections(section(17, b"\xc1 anything"))
    assert decode(data) == decode(GOOD)
    assert bundle_id(data) != bundle_id(GOOD)


def test_an_unknown_optional_section_survives_strip() -> None:
    stripped = strip(with_sections(section(17, b"x")))
    assert [found.id for found in sections(stripped)] == [*(id for id in SECTIONS if id != "debug"), "#17"]


def test_the_id_is_the_hash_of_everything_but_the_debug_section() -> None:
    expected = hashlib.sha256(HEADER + b"".join(good_sections()[:-1])).hexdigest()
    assert bundle_id(GOOD) == expected


def test_strip_removes_the_debug_section_and_keeps_the_id() -> None:
    program = with_debug(two_steps())
    data = encode(program)
    assert strip(data) == encode(program, debug=False) == encode(two_steps())
    assert bundle_id(strip(data)) == bundle_id(data)


def test_strip_leaves_a_stripped_bundle_as_it_is() -> None:
    data = encode(two_steps())
    assert strip(data) == data


def test_another_debug_map_does_not_change_the_id() -> None:
    program = with_debug(two_steps())
    assert program.debug is not None
    moved = Program(program.playbooks, DebugMap(("elsewhere.yaml",), program.debug.entries))
    assert encode(moved) != encode(program)
    assert bundle_id(encode(moved)) == bundle_id(encode(program))


def test_strip_and_id_need_no_more_than_the_container() -> None:
    data = of(*good_sections(net=b"\xc1", debug=b"\xc1"))
    assert bundle_id(strip(data)) == bundle_id(data)


@pytest.mark.parametrize("use", [bundle_id, strip])
def test_strip_and_id_refuse_what_is_no_bundle(use: object) -> None:
    assert callable(use)
    with pytest.raises(MalformedBundleError):
        use(b"apiVersion: noetl.io/v2")


def test_as_many_sections_as_the_limit_are_read_and_no_more() -> None:
    def sections_in_all(count: int) -> bytes:
        return with_sections(*(section(17 + 2 * number, b"") for number in range(count - len(SECTIONS))))

    assert len(sections(sections_in_all(SECTIONS_MAX))) == SECTIONS_MAX
    assert refusal(sections_in_all(SECTIONS_MAX + 1)).code == MalformedCode.TOO_MUCH


def test_a_bundle_as_large_as_the_limit_is_read_and_no_larger() -> None:
    def of_size(size: int) -> bytes:
        framing = len(GOOD) + len(leb(17)) + len(leb(BUNDLE_BYTES_MAX - 1_000))
        return with_sections(section(17, b"x" * (size - framing)))

    assert len(of_size(BUNDLE_BYTES_MAX)) == BUNDLE_BYTES_MAX
    assert decode(of_size(BUNDLE_BYTES_MAX)) == decode(GOOD)
    assert refusal(of_size(BUNDLE_BYTES_MAX + 1)).code == MalformedCode.TOO_LARGE
