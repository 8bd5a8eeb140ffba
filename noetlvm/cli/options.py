"""Options and arguments that several commands of `noetlvm` share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from noetlvm.command_line.declared import Argument, Option


class DurabilityLevel(StrEnum):
    """When a decision is on the disk."""

    FULL = "full"
    RELAXED = "relaxed"


Database = Annotated[
    str | None,
    Option("--db", metavar="FILE", help="Database. [default: $NOETLVM_DB, else one in your state folder]"),
]
LatestExecution = Annotated[
    str | None,
    Argument(metavar="[EXECUTION]", help="Identifier, or enough of its beginning or end. [default: the latest]"),
]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
Keychain = Annotated[
    list[str] | None,
    Option(
        metavar="SOURCE", help="Where secrets come from: env, file:PATH, cmd:COMMAND, or NAME=SOURCE for one entry."
    ),
]
MaxParallel = Annotated[int | None, Option(min=1, metavar="N", help="Tools that run at once. [default: 32]")]
Durability = Annotated[
    DurabilityLevel,
    Option(
        help="full: every decision is recorded before the next, and survives a power cut. relaxed: faster; a power cut "
        "may lose the latest moments, a crash only decisions of the last milliseconds, which are made again.",
    ),
]
EndingJson = Annotated[bool, Option("--json", help="Print nothing but one JSON object at the end.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Say nothing unless something fails.")]
OneExecution = Annotated[str, Argument(metavar="EXECUTION", help="Identifier, or enough of it.")]
ServerUrl = Annotated[str | None, Option("--server", metavar="URL", help="Server to use. [default: $NOETLVM_SERVER]")]
TokenFile = Annotated[
    str | None, Option("--token-file", metavar="FILE", help="File with the token. [default: $NOETLVM_TOKEN]")
]
