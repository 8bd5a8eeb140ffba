"""Data of executions as JSON, for programs: what `--json` prints and the API answers.

Stored results are shown as references and not loaded: looking at an execution must not cost what it produced.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from noetlvm.data.references import Reference


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON; a stored result is shown as what refers to it (S46), a number that JSON has no word for as null."""
    try:
        return json.dumps(value, default=_described, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), default=_described, ensure_ascii=False, indent=indent)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        # As it is stored: looking must not load results that are references.
        return {key: _finite(item) for key, item in dict.items(value)}
    if isinstance(value, list | tuple):
        items = list.__iter__(value) if isinstance(value, list) else iter(value)
        return [_finite(item) for item in items]
    return value


def _described(value: Any) -> Any:
    return value.to_data() if isinstance(value, Reference) else str(value)


def plain(value: Any) -> Any:
    """Return data that JSON can hold: what `as_json` says."""
    return json.loads(as_json(value))
