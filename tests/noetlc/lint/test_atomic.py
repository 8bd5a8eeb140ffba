from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from noetlvm.atomic_file import write_atomically

if TYPE_CHECKING:
    from pathlib import Path


def test_permissions_stay(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("old")
    file.chmod(0o640)
    write_atomically(str(file), b"new")
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text("old")
    link = tmp_path / "link.yaml"
    link.symlink_to("real.yaml")
    write_atomically(str(link), b"new")
    assert link.is_symlink()
    assert (tmp_path / "real.yaml").read_text() == "new"


def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("old")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomically(str(file), b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]
    assert file.read_text() == "old"
