"""`--payload` and `--set`: whatever is in them is read exactly, or refused with its place and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetlvm.cli.request import request_payload as payload
from noetlvm.command_line.process import CommandError
from noetlvm.limits import PAYLOAD_FILE_BYTES_MAX

BAD = [
    ("list.json", b"[1]", "list.json must contain a mapping"),
    ("cut.json", b'{"n": 1,\n', "cut.json:2:1: not JSON: "),
    ("empty.json", b"", "empty.json is empty"),
    ("empty.yaml", b" \n", "empty.yaml is empty"),
    ("null.yaml", b"null\n", "null.yaml must contain a mapping"),
    ("text.txt", b"n: 1\n", "the name of a YAML file must end in .yaml or .yml"),
    ("cut.yaml", b"n: 1\nm: [1\n", "cut.yaml:2:4: "),
    ("twice.yaml", b"n: 1\nn: 2\n", "twice.yaml:2:1: "),
    ("twice.json", b'{"a": {"n": 1, "n": 2}}', "twice.json: the key `n` is given twice"),
    ("binary.yaml", b"\xff\xfe\x00", "binary.yaml:1:1: the file is not UTF-8 text"),
    ("binary.json", b'{"n": "\xff"}', "binary.json is not UTF-8 text"),
    ("deep.json", b'{"n": ' + b"[" * 100_000, "deep.json is nested too deeply"),
    ("deep.yaml", b"n: " + b"[" * 100 + b"]" * 100, "deep.yaml:1:"),
    ("nan.json", b'{"n": NaN}', "nan.json: `NaN` is not JSON"),
    ("digits.json", b'{"n": ' + b"1" * 5_000 + b"}", "digits.json has a number of too many digits"),
]


@pytest.mark.parametrize(("name", "data", "message"), BAD, ids=[name for name, *_ in BAD])
def test_a_bad_payload_is_refused_with_its_place(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(CommandError) as refused:
        payload(str(tmp_path / name), ())
    assert message in str(refused.value).replace(f"{tmp_path}/", "")
    assert "sys." not in str(refused.value)


def test_a_byte_order_mark_is_no_part_of_the_payload(tmp_path: Path) -> None:
    for name, data in (("bom.json", b'\xef\xbb\xbf{"n": 1}'), ("bom.yaml", b"\xef\xbb\xbfn: 1\n")):
        (tmp_path / name).write_bytes(data)
        assert payload(str(tmp_path / name), ()) == {"n": 1}


def test_a_payload_may_be_as_large_as_the_limit_and_no_larger(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    for size, is_allowed in ((PAYLOAD_FILE_BYTES_MAX, True), (PAYLOAD_FILE_BYTES_MAX + 1, False)):
        file.write_bytes(b'{"n": "' + b"x" * (size - 9) + b'"}')
        if is_allowed:
            assert len(payload(str(file), ())["n"]) == size - 9
            continue
        with pytest.raises(CommandError, match="pass the name of a file instead"):
            payload(str(file), ())


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1", 1),
        ("1.5", 1.5),
        ("true", True),
        ("null", None),
        ('"1"', "1"),
        ("[1, 2]", [1, 2]),
        ('{"b": 1}', {"b": 1}),
        ("", ""),
        ("2024-05-01", "2024-05-01"),
        ("a=b", "a=b"),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("{bad", "{bad"),
        ("[" * 100_000, "[" * 100_000),
        ("1" * 5_000, "1" * 5_000),
    ],
)
def test_what_set_gives_is_json_or_else_text(written: str, value: object) -> None:
    assert payload(None, [f"outer.inner={written}"]) == {"outer": {"inner": value}}
