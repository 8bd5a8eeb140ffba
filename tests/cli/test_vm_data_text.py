"""Data as the commands print it: JSON that any program reads, and lines for people."""

from __future__ import annotations

import json
import math

from noetlvm.cli.data_text import as_json


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


def test_numbers_that_json_has_no_word_for_are_null() -> None:
    value = {"a": [math.nan, {"b": math.inf}], "c": (-math.inf, 1.5), "d": "NaN"}
    printed = as_json(value)
    assert json.loads(printed, parse_constant=refuse) == {"a": [None, {"b": None}], "c": [None, 1.5], "d": "NaN"}
