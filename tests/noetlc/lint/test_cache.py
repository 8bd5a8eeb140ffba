from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from noetlc.lint.cache import Result, content_digest, no_cache, open_cache, stamp_of
from noetlc.settings import Settings
from tests.noetlc.lint.rows import row

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = 1000
SETTINGS = Settings()


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose result has been remembered and saved."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOETLC_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "a.yaml"
    file.write_text("kind: Playbook\n")
    long_ago = time.time_ns() - 10**12
    os.utime(file, ns=(long_ago, long_ago))
    cache = open_cache(SETTINGS)
    cache.store("a.yaml", stamp_of("a.yaml"), Result(content_digest(file.read_bytes()), True, (row(),)))
    cache.save()
    return file


def recall(path: str = "a.yaml", settings: Settings = SETTINGS, *, named: bool = True) -> Result | None:
    return open_cache(settings).recall(path, named=named, limit=LIMIT)


def test_an_unchanged_file_is_recalled(cached: Path) -> None:
    result = recall()
    assert result is not None
    assert result.rows == (row(),)


def test_rows_carry_the_path_as_it_is_written_now(cached: Path) -> None:
    result = recall(str(cached))
    assert result is not None
    assert result.rows == (row(path=str(cached)),)


def test_a_touched_file_is_recognised_by_its_content(cached: Path) -> None:
    os.utime(cached)
    assert recall() is not None


def test_a_change_of_the_same_size_in_the_same_tick_is_noticed(cached: Path) -> None:
    before = cached.stat()
    cached.write_text("kind: playbook\n")
    os.utime(cached, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert recall() is None


def test_other_limits_and_other_tool_kinds_are_other_results(cached: Path) -> None:
    assert recall(settings=Settings(max_document_bytes=3)) is None
    assert recall(settings=Settings(tool_kinds=("ours",))) is None


def test_a_change_of_the_compiler_forgets_everything(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetlc.lint.cache._FORMAT", 99)
    assert recall() is None


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff", b"null", b'{"key": 1}'])
def test_a_damaged_cache_is_no_cache(cached: Path, damage: bytes) -> None:
    for file in (cached.parent / "cache").iterdir():
        file.write_bytes(damage)
    assert recall() is None


def test_an_entry_that_a_user_changed_is_not_used(cached: Path) -> None:
    for file in (cached.parent / "cache").iterdir():
        file.write_text(file.read_text().replace('"severity":"error"', '"severity":"terrible"'))
    assert recall() is None


def test_a_file_found_to_be_no_playbook_is_checked_when_it_is_named(cached: Path) -> None:
    cache = open_cache(SETTINGS)
    cache.store("a.yaml", stamp_of("a.yaml"), Result(content_digest(cached.read_bytes()), False, None))
    cache.save()
    assert recall(named=True) is None
    found = recall(named=False)
    assert found is not None
    assert found.rows is None


def test_a_file_that_was_named_but_is_no_playbook_is_left_alone_when_found(cached: Path) -> None:
    cache = open_cache(SETTINGS)
    cache.store("a.yaml", stamp_of("a.yaml"), Result(content_digest(cached.read_bytes()), False, (row(),)))
    cache.save()
    found = recall(named=False)
    assert found is not None
    assert found.rows is None


def test_a_deleted_file_is_forgotten(cached: Path) -> None:
    cached.unlink()
    assert recall() is None


def test_a_cache_that_cannot_be_written_is_no_error(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOETLC_CACHE", str(cached))  # a file, so no folder can be made of it
    cache = open_cache(SETTINGS)
    cache.store("a.yaml", stamp_of("a.yaml"), Result("digest", True, ()))
    cache.save()
    assert cached.read_text() == "kind: Playbook\n"


def test_no_cache_writes_nothing(cached: Path) -> None:
    before = {file: file.read_bytes() for file in (cached.parent / "cache").iterdir()}
    cache = no_cache()
    cache.store("a.yaml", stamp_of("a.yaml"), Result("digest", True, ()))
    cache.save()
    assert {file: file.read_bytes() for file in (cached.parent / "cache").iterdir()} == before


def test_a_changed_plugin_forgets_everything(cached: Path) -> None:
    plugin = cached.with_name("plugin.py")
    plugin.write_text("KIND = 1\n")
    cache = open_cache(SETTINGS)
    cache.store("a.yaml", stamp_of("a.yaml"), Result(content_digest(cached.read_bytes()), True, (), (str(plugin),)))
    cache.save()
    assert recall() is not None
    plugin.write_text("KIND = 12\n")
    assert recall() is None


def test_a_plugin_that_is_installed_on_any_import_path_forgets_everything(
    cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = cached.parent / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    cache = open_cache(SETTINGS)
    cache.store("a.yaml", stamp_of("a.yaml"), Result(content_digest(cached.read_bytes()), True, ()))
    cache.save()
    assert recall() is not None
    (folder / "plugin.dist-info").mkdir()
    assert recall() is None
