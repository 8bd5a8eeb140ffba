"""What only results in files have: damage, half-written files, names that outlive a crash."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from noetlvm.results.files import FileResults
from noetlvm.results.interface import Collected, ResultDamagedError
from tests.noetlvm.results.test_result_contract import blob

ROOT = Path(__file__).resolve().parents[3]
DIES_BEFORE_THE_NAME = """
import os, pathlib, sys
from hashlib import sha256
from noetlvm.results.files import FileResults
data = b"a" * 1_000_000
pathlib.Path.replace = lambda *_: os.kill(os.getpid(), 9)
FileResults(pathlib.Path(sys.argv[1])).put([(sha256(data).hexdigest(), data)])
"""


@pytest.mark.parametrize("damage", [b"onE", b"on", b"", b"one more"])
def test_a_damaged_file_is_never_taken_for_the_result(tmp_path: Path, damage: bytes) -> None:
    key, data = blob(b"one")
    results = FileResults(tmp_path)
    results.put([(key, data)])
    (tmp_path / key).write_bytes(damage)
    with pytest.raises(ResultDamagedError, match="checksum differs"):
        results.get(key)


def test_a_file_cut_short_is_written_again(tmp_path: Path) -> None:
    key, data = blob(b"one")
    results = FileResults(tmp_path)
    (tmp_path / key).write_bytes(b"on")
    results.put([(key, data)])
    assert results.get(key) == data


def test_a_key_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="is not the key"):
        FileResults(tmp_path / "results").put([("../outside", b"data")])
    assert not (tmp_path / "outside").exists()


def test_a_writer_that_dies_leaves_no_half_result_and_its_remains_are_collected(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DIES_BEFORE_THE_NAME, str(tmp_path)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    results = FileResults(tmp_path)
    assert list(results.keys()) == []
    assert results.collect_garbage(set()) == Collected(1, 1_000_000)
    assert list(tmp_path.iterdir()) == []


def test_garbage_collection_leaves_files_of_others_alone(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("mine")
    assert FileResults(tmp_path).collect_garbage(set()) == Collected(0, 0)
    assert (tmp_path / "README").exists()


@pytest.mark.parametrize(("durability", "is_synced"), [("full", True), ("relaxed", False)])
def test_bytes_are_synced_before_the_name_and_the_name_before_put_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str, is_synced: bool
) -> None:
    key, data = blob(b"one")
    folder = tmp_path / "results"
    folder.mkdir()
    named_at_sync: list[bool] = []
    sync = os.fsync

    def watched(file: int) -> None:
        named_at_sync.append((folder / key).exists())
        sync(file)

    monkeypatch.setattr(os, "fsync", watched)
    FileResults(folder, durability).put([(key, data)])  # type: ignore[arg-type]
    assert named_at_sync == ([False, True] if is_synced else [])


def test_only_the_owner_can_read_results(tmp_path: Path) -> None:
    key, data = blob(b"one")
    folder = tmp_path / "results"
    before = os.umask(0)
    try:
        FileResults(folder).put([(key, data)])
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / key)] == [0o700, 0o600]
