"""The search for canaries finds them in files, databases and folders: it would prove nothing otherwise."""

from __future__ import annotations

import base64
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.canary import find_canaries

SECRET = 'cAnary/7f"3K+9zQ~w2'
HALVES = SECRET[:9], SECRET[9:]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("raw", SECRET),
        ("reversed", SECRET[::-1]),
        ("hex", SECRET.encode().hex()),
        ("hex", SECRET.encode().hex().upper()),
        ("url", quote(SECRET, safe="")),
        ("url", quote(SECRET, safe="").lower()),
        ("json", json.dumps({"a": SECRET})),
        ("json", json.dumps(json.dumps({"a": SECRET}))),
        ("base64", base64.b64encode(SECRET.encode()).decode()),
        ("base64", base64.b64encode(f"u:{SECRET}@h".encode()).decode()),
        ("base64", base64.urlsafe_b64encode(f"u{SECRET}@h".encode()).decode()),
        ("base64 in base64", base64.b64encode(b"y" + base64.b64encode(f"u:{SECRET}@h".encode())).decode()),
        ("hex in base64", base64.b64encode(SECRET.encode().hex().upper().encode()).decode()),
        ("base64 in hex", base64.b64encode(SECRET.encode()).hex()),
        ("url in url", quote(quote(SECRET, safe=""), safe="")),
        ("split", json.dumps({"a": HALVES[0], "something": "between", "b": HALVES[1]})),
        ("split", str(list(SECRET))),
    ],
)
def test_every_form_is_found(form: str, text: str) -> None:
    assert form in {hit.form for hit in find_canaries(f"before{text}after".encode(), SECRET)}


def test_nothing_is_found_where_nothing_is() -> None:
    assert find_canaries(b"cAnary and 7f and 3K" * 100, SECRET) == []
    assert find_canaries(b"", SECRET) == []


def test_files_of_a_folder_are_searched(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "log").write_text(f"x{SECRET}")
    assert [(hit.form, hit.where, hit.offset) for hit in find_canaries(tmp_path, SECRET)] == [
        ("raw", str(tmp_path / "deep" / "log"), 1)
    ]


def test_a_secret_across_pages_of_a_database_is_found(tmp_path: Path) -> None:
    def stored(before: int) -> Path:
        path = tmp_path / f"{before}.db"
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA page_size=512")
            database.execute("CREATE TABLE t (x)")
            database.execute("INSERT INTO t VALUES (?)", ("-" * before + SECRET + "-" * 2000,))
            database.commit()
        return path

    scattered = [path for path in map(stored, range(400, 920, 8)) if SECRET.encode() not in path.read_bytes()]
    assert scattered
    for path in scattered:
        assert any(hit.form == "raw" and "row 0 of t" in hit.where for hit in find_canaries(path, SECRET))


def test_the_write_ahead_log_is_searched(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE t (x)")
        database.execute("INSERT INTO t VALUES (?)", (SECRET,))
        database.commit()
        assert any(hit.where.endswith("-wal") for hit in find_canaries(tmp_path, SECRET))
