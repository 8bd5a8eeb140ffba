"""Files in every form, and programs within bounds; errors are reported without quoting a secret."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from noetlvm.keychain.command import MAX_BYTES, Command, open_command
from noetlvm.keychain.file import read_file
from noetlvm.keychain.source import ProviderError

DOTENV = """
# a comment
export A=plain # not this
B='single # quoted'
C="line\\nbreak \\"quoted\\"" # not this
D=with#hash
PG_USER=me
PG_PASSWORD = spaced
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["a.env", ".env", ".env.local"])
def test_a_dotenv_file_is_read_like_the_environment(tmp_path: Path, name: str) -> None:
    source = read_file(written(tmp_path, name, DOTENV))
    texts = [source.find(key, ()) for key in "abcd"]
    assert texts == ["plain", "single # quoted", 'line\nbreak "quoted"', "with#hash"]
    assert source.find("pg", ("user", "password", "host")) == {"user": "me", "password": "spaced"}
    assert str(tmp_path / name) in source.where("pg")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "pin: 0123\non: yes\nnested: {deep: 1e3}"),
        ("a.YML", "pin: '0123'\non: 'yes'\nnested: {deep: 1e3}"),
        ("a.json", '\ufeff{"pin": "0123", "on": "yes", "nested": {"deep": 1e3}}'),
    ],
)
def test_every_value_of_a_file_is_text(tmp_path: Path, name: str, text: str) -> None:
    source = read_file(written(tmp_path, name, text))
    assert [source.find(key, ()) for key in ("pin", "on", "nested.deep", "nested/deep")] == [
        "0123",
        "yes",
        "1e3",
        "1e3",
    ]
    assert source.find("nested.deep.deeper", ()) is None


@pytest.mark.parametrize(
    ("name", "text", "reported"),
    [
        ("a.yaml", "x: 1\ny: s3cr3t: s3cr3t", ":2"),
        ("a.yaml", "!!python/object/apply:os.system [s3cr3t]", "mapping"),
        ("a.yaml", "x: \x00s3cr3t", "YAML"),
        ("a.json", '{"x": 1,\n"y" s3cr3t}', ":2"),
        ("a.json", "[" * 100_000, "deep"),
        ("a.json", '["s3cr3t"]', "mapping"),
        ("a.env", "A=1\ns3cr3t", ":2"),
        ("a.env", "A='s3cr3t", ":1"),
        ("a.toml", "x = 's3cr3t'", ".yaml"),
        ("a.json", "x" * 2_000_000, "larger"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported_by_its_place(
    tmp_path: Path, name: str, text: str, reported: str
) -> None:
    with pytest.raises(ProviderError) as problem:
        read_file(written(tmp_path, name, text))
    assert reported in str(problem.value)
    assert str(tmp_path / name) in str(problem.value)
    assert "s3cr3t" not in str(problem.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match=r"none\.yaml"):
        read_file(tmp_path / "none.yaml")


def python(code: str, *arguments: str, timeout_s: float = 30) -> Command:
    return Command((sys.executable, "-c", code, *arguments), timeout_s)


def test_a_program_gets_the_name_and_no_shell_reads_it() -> None:
    source = python("import sys; print(sys.argv[1:])", "{name}", "$HOME; echo `x`")
    assert source.find("pg_main", ()) == "['pg_main', '$HOME; echo `x`']"


def test_a_program_may_print_an_object() -> None:
    assert python("""print('{"user": "me", "port": 1}')""").find("x", ()) == {"user": "me", "port": "1"}
    assert python("print('{not json')").find("x", ()) == "{not json"
    assert python("pass").find("x", ()) is None


@pytest.mark.parametrize(
    ("code", "reported"),
    [
        ("import sys; print('s3cr3t'); sys.exit('s3cr3t')", "ended with 1"),
        (f"print('s3cr3t' * {MAX_BYTES})", "more than"),
        ("import sys; sys.stdout.buffer.write(b's3cr3t\\xff')", "UTF-8"),
    ],
)
def test_a_program_that_misbehaves_is_reported_without_its_words(
    code: str, reported: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ProviderError, match=reported) as problem:
        python(code, "s3cr3t").find("x", ())
    assert "s3cr3t" not in str(problem.value) + "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "code",
    # Both last until the time limit ends them.
    ["import time; time.sleep(600)", "import os, time; os.close(1); time.sleep(600)"],
    ids=["silent", "closed its output"],
)
def test_a_program_that_does_not_end_is_ended(code: str) -> None:
    with pytest.raises(ProviderError, match="did not end within"):
        python(code, timeout_s=0.5).find("x", ())


@pytest.mark.parametrize("settings", [{}, {"command": "pass show x"}, {"command": []}, {"command": [1]}])
def test_a_command_must_be_a_list(settings: dict[str, object]) -> None:
    with pytest.raises(ProviderError, match="list"):
        open_command(settings)


@pytest.mark.parametrize("timeout", [0, -1, True, "1"])
def test_a_time_limit_must_be_a_number_of_seconds(timeout: object) -> None:
    with pytest.raises(ProviderError, match="`timeout`"):
        open_command({"command": ["x"], "timeout": timeout})


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(ProviderError, match="no-such-program"):
        Command(("no-such-program",)).find("x", ())
