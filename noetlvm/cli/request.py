"""What an execution is asked with: a file, and single values over it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from noetlvm.cli.refused import Refused


def payload(file: str | None, settings: Sequence[str]) -> dict[str, Any]:
    """Return the request's payload: the file's mapping, with each `key=value` written over it."""
    asked = _read(file, "it is merged over the workload") if file else {}
    for setting in settings:
        _set(asked, setting)
    return asked


def first_ctx(file: str | None) -> dict[str, Any]:
    """Return what `ctx` begins with: the file's mapping."""
    return _read(file, "`ctx` is one") if file else {}


def _read(file: str, why: str) -> dict[str, Any]:
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise Refused(f"cannot read {file}: {error.strerror}") from None
    found = _parsed(file, data)
    if not isinstance(found, dict):
        raise Refused(f"{file} must hold a mapping, for {why}")
    return found


def _parsed(file: str, data: bytes) -> Any:
    if file.endswith((".yaml", ".yml")):
        from noetlvm.bridge import NotCompiled, read_yaml

        try:
            return read_yaml(file, data)
        except (NotCompiled, UnicodeDecodeError) as error:
            raise Refused(str(error)) from None
    try:
        return json.loads(data)
    except ValueError as error:
        raise Refused(f"{file} is no JSON: {error}; a YAML file must end in .yaml") from None


def _set(asked: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    if not equals or not all(key.split(".")):
        raise Refused(f"--set takes key=value, or outer.inner=value, not `{setting}`")
    *around, name = key.split(".")
    place = asked
    for outer in around:
        inner = place.setdefault(outer, {})
        if not isinstance(inner, dict):
            raise Refused(f"--set {setting}: `{outer}` is no mapping, so nothing can be set in it")
        place = inner
    place[name] = _value(text)


def _value(text: str) -> Any:
    """Read what looks like JSON as such: numbers, true, null, lists, mappings, quoted text. The rest is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
