"""`auth: <name>` as tools get it."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.keychain.auth import http_headers, postgres_parts
from noetlvm.keychain.shapes import SHAPES, shaped
from noetlvm.language.keychain import ShapeError


@pytest.mark.parametrize(
    ("entry", "headers"),
    [
        ("abc", {"Authorization": "Bearer abc"}),
        ({"token": "abc"}, {"Authorization": "Bearer abc"}),
        ({"username": "me", "password": "pw"}, {"Authorization": "Basic bWU6cHc="}),
        ({"user": "me", "password": ""}, {"Authorization": "Basic bWU6"}),
        ({"header": "X-Key", "value": "abc"}, {"X-Key": "abc"}),
        (shaped("abc", SHAPES["api_key"]), {"X-API-Key": "abc"}),
        (shaped("abc", SHAPES["bearer_token"]), {"Authorization": "Bearer abc"}),
    ],
)
def test_an_entry_becomes_a_header(entry: Any, headers: dict[str, str]) -> None:
    assert http_headers(entry) == headers


@pytest.mark.parametrize("entry", [{}, None, 7, {"password": "s3cr3t"}])
def test_what_proves_nothing_is_refused(entry: Any) -> None:
    with pytest.raises(ShapeError, match="`token`") as problem:
        http_headers(entry)
    assert "s3cr3t" not in str(problem.value)


@pytest.mark.parametrize(
    "entry",
    [
        "postgres://me:p%2Fw@db:5433/shop",
        {"dsn": "postgresql://me:p%2Fw@db:5433/shop"},
        {"host": "db", "port": "5433", "dbname": "shop", "username": "me", "password": "p/w"},
    ],
)
def test_an_entry_becomes_the_parts_of_a_connection(entry: Any) -> None:
    expected = {"host": "db", "port": 5433, "database": "shop", "user": "me", "password": "p/w"}
    assert postgres_parts(entry) == expected


@pytest.mark.parametrize("entry", [None, 7, ["s3cr3t"], "s3cr3t"])
def test_what_is_no_connection_is_refused(entry: Any) -> None:
    with pytest.raises(ShapeError) as problem:
        postgres_parts(entry)
    assert "s3cr3t" not in str(problem.value)
