"""Options that several commands share, and the payload of a request: from a file, and from single values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from noetlvm.bridge import CompilationError, read_yaml
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import CommandError
from noetlvm.limits import PAYLOAD_FILE_BYTES_MAX


class DurabilityLevel(StrEnum):
    """When a decision is on the disk."""

    FULL = "full"
    RELAXED = "relaxed"


Database = Annotated[
    str | None, Option("--db", metavar="FILE", help="Database. [default: $NOETLVM_DB, else one in your state folder]")
]
LatestExecution = Annotated[
    str | None,
    Argument(metavar="[EXECUTION]", help="Identifier, or a unique beginning or end. [default: the latest]"),
]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
SetValues = Annotated[
    list[str] | None, Option("--set", metavar="KEY=VALUE", help="Set a value of the workload; repeatable.")
]
PayloadFile = Annotated[str | None, Option(metavar="FILE", help="JSON or YAML file that is merged over the workload.")]
CtxFile = Annotated[str | None, Option(metavar="FILE", help="JSON or YAML file with the initial ctx.")]
Keychain = Annotated[
    list[str] | None,
    Option(
        metavar="SOURCE", help="Where secrets come from: env, file:PATH, cmd:COMMAND, or NAME=SOURCE for one entry."
    ),
]
MaxParallel = Annotated[int | None, Option(min=1, metavar="N", help="Number of tools that run at once. [default: 32]")]
Durability = Annotated[
    DurabilityLevel,
    Option(
        help="full: every decision is on disk before the next. relaxed: faster; a power cut may lose the latest "
        "events, and a crash the decisions of the last milliseconds, which are repeated."
    ),
]
EndingJson = Annotated[bool, Option("--json", help="Print only one JSON object, at the end.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print only failures.")]
OneExecution = Annotated[str, Argument(metavar="EXECUTION", help="Identifier, or a unique part of it.")]
ServerUrl = Annotated[str | None, Option("--server", metavar="URL", help="Server to use. [default: $NOETLVM_SERVER]")]
TokenFile = Annotated[
    str | None, Option("--token-file", metavar="FILE", help="File with the token. [default: $NOETLVM_TOKEN]")
]


def request_payload(file: str | None, settings: Sequence[str]) -> dict[str, Any]:
    """Return the request's payload: the file's mapping, with each `key=value` written over it."""
    payload = _read(file, "it is merged over the workload") if file else {}
    for setting in settings:
        _set(payload, setting)
    return payload


def first_ctx(file: str | None) -> dict[str, Any]:
    """Return what `ctx` begins with: the file's mapping."""
    return _read(file, "`ctx` is one") if file else {}


def _read(file: str, why: str) -> dict[str, Any]:
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(PAYLOAD_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise CommandError(f"cannot read {file}: {error.strerror}") from None
    if len(data) > PAYLOAD_FILE_BYTES_MAX:
        raise CommandError(f"{file} is larger than {PAYLOAD_FILE_BYTES_MAX} bytes; pass the name of a file instead")
    if not data.strip():
        raise CommandError(f"{file} is empty; it must contain a mapping, because it is merged over the workload")
    found = (_yaml if file.endswith((".yaml", ".yml")) else _json)(file, data)
    if not isinstance(found, dict):
        raise CommandError(f"{file} must contain a mapping, because {why}")
    return found


def _yaml(file: str, data: bytes) -> Any:
    try:
        return read_yaml(file, data)
    except CompilationError as problem:
        raise CommandError(str(problem)) from None


def _json(file: str, data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_no_number, object_pairs_hook=_mapping)
    except UnicodeDecodeError:
        raise CommandError(f"{file} is not UTF-8 text; save it as UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"{file}:{error.lineno}:{error.colno}"
        raise CommandError(
            f"{place}: not JSON: {error.msg}; the name of a YAML file must end in .yaml or .yml"
        ) from None
    except _DataError as problem:
        raise CommandError(f"{file}: {problem}") from None
    except ValueError:  # Python's limit of digits
        raise CommandError(f"{file} has a number of too many digits; write it as text") from None
    except RecursionError:
        raise CommandError(f"{file} is nested too deeply") from None


class _DataError(Exception):
    """Data that Python's JSON reader accepts and that must be a mistake."""


def _no_number(word: str) -> Any:
    raise _DataError(f"`{word}` is not JSON; write null, or a text")


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _DataError(f"the key `{key}` is given twice; remove one of them")
        found[key] = value
    return found


def _set(payload: dict[str, Any], setting: str) -> None:
    key, equals, text = setting.partition("=")
    if not equals or not all(key.split(".")):
        raise CommandError(f"--set takes key=value, or outer.inner=value, not `{setting}`")
    *around, name = key.split(".")
    place = payload
    for outer in around:
        inner = place.setdefault(outer, {})
        if not isinstance(inner, dict):
            raise CommandError(f"--set {setting}: `{outer}` is not a mapping, so nothing can be set in it")
        place = inner
    place[name] = _value(text)


def _value(text: str) -> Any:
    """Read what looks like JSON as such: numbers, true, null, lists, mappings, quoted text. The rest is text."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError, _DataError):
        return text
