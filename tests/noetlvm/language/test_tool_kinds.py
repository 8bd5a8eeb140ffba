"""Kinds are found by name; a plugin's trouble stays the plugin's."""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from noetlvm.language import tool_kinds
from noetlvm.language.plugins import entry_points_of

ROOT = Path(tool_kinds.__file__).parents[2]

MODULE = """
from noetlvm.language.tool_kinds import ToolKind
QUANTUM = ToolKind(name="quantum", summary="Submits a job.", example="kind: quantum", result="a job id")
TEXT = "not a kind"
"""

ENTRY_POINTS = """
[noetlvm.tools]
quantum = some_plugin:QUANTUM
misnamed = some_plugin:QUANTUM
text = some_plugin:TEXT
absent = some_plugin_that_is_not_there:KIND
leaving = some_leaving_plugin:KIND
double = some_plugin:QUANTUM
double = some_plugin:TEXT
http = some_plugin:QUANTUM
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    info = tmp_path / "some_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "some_plugin.py").write_text(MODULE)
    (tmp_path / "some_leaving_plugin.py").write_text("raise SystemExit('goodbye')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    yield
    forget()
    for name in ("some_plugin", "some_leaving_plugin"):
        sys.modules.pop(name, None)


def forget() -> None:
    tool_kinds._plugin.cache_clear()
    entry_points_of.cache_clear()


def test_a_builtin_kind_is_found() -> None:
    assert tool_kinds.find_kind("http") is tool_kinds.builtin_kinds()["http"]
    assert tool_kinds.why_unusable("http") is None


def test_a_kind_that_nobody_offers_is_unknown_without_a_reason() -> None:
    assert tool_kinds.find_kind("no_such_kind") is None
    assert tool_kinds.why_unusable("no_such_kind") is None


@pytest.mark.usefixtures("plugins")
def test_a_plugins_kind_is_found() -> None:
    kind = tool_kinds.find_kind("quantum")
    assert kind is not None
    assert kind.summary == "Submits a job."
    assert tool_kinds.why_unusable("quantum") is None


@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("misnamed", "its plugin `some_plugin:QUANTUM` calls itself `quantum`"),
        ("text", "its plugin `some_plugin:TEXT` is not a `ToolKind` but a `str`"),
        ("absent", "cannot be loaded: ModuleNotFoundError"),
        ("leaving", "cannot be loaded: SystemExit: goodbye"),
        ("double", "several plugins offer it: some_plugin:QUANTUM, some_plugin:TEXT"),
    ],
)
def test_a_plugin_that_cannot_be_used_makes_its_kind_unknown_with_a_reason(name: str, reason: str) -> None:
    assert tool_kinds.find_kind(name) is None
    assert reason in str(tool_kinds.why_unusable(name))


@pytest.mark.usefixtures("plugins")
def test_a_plugin_does_not_replace_a_builtin_kind() -> None:
    kind = tool_kinds.find_kind("http")
    assert kind is tool_kinds.builtin_kinds()["http"]


@pytest.mark.usefixtures("plugins")
def test_names_are_listed_without_loading_plugins() -> None:
    names = tool_kinds.kind_names()
    assert names[: len(tool_kinds.builtin_kinds())] == list(tool_kinds.builtin_kinds())
    assert {"quantum", "absent", "leaving"} <= set(names)
    assert len(set(names)) == len(names)
    assert "some_plugin" not in sys.modules


def test_builtin_kinds_are_found_without_looking_at_what_is_installed() -> None:
    program = "import sys; from noetlvm.language.tool_kinds import find_kind; find_kind('http'); print(*sys.modules)"
    output = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "importlib.metadata" not in output.stdout.split()


def test_an_unknown_kind_costs_no_import_where_no_package_has_plugins() -> None:
    program = "import sys; from noetlvm.language.tool_kinds import find_kind; find_kind('x'); print(*sys.modules)"
    output = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "importlib.metadata" not in output.stdout.split()


def test_a_plugin_in_an_archive_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("packed-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: packed\nVersion: 1.0\n")
        archive.writestr("packed-1.0.dist-info/entry_points.txt", "[noetlvm.tools]\npacked = packed:KIND\n")
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    entry_points_of.cache_clear()
    names = tool_kinds.kind_names()
    entry_points_of.cache_clear()
    assert "packed" in names


def test_a_builtin_kind_goes_by_the_name_of_its_file() -> None:
    assert all(kind.name == name for name, kind in tool_kinds.builtin_kinds().items())


def test_a_kind_is_loaded_without_the_others() -> None:
    program = "import sys; from noetlvm.language.tool_kinds import find_kind; find_kind('http'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "noetlvm.tools.http" in loaded
    assert "noetlvm.tools.postgres" not in loaded
