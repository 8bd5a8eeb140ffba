"""`noetlc parse`: the syntax tree as JSON, for other tools and for the conformance cases."""

from __future__ import annotations

from typing import Annotated

from noetlc.parse import parse_file
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import FAILURE, SUCCESS, CommandError


def parse(
    path: Annotated[str, Argument(metavar="PATH", help="A playbook; `-` is standard input.")],
    format: Annotated[str, Option(help="json: the tree and the problems; yaml: the playbook, formatted.")] = ("json"),
) -> int:
    """Parse a playbook and print its syntax tree and problems, without other checks.

    \b
    Examples:
      noetlc parse etl.yaml | jq .playbook.workflow
      noetlc parse etl.yaml --format yaml

    \b
    Exit codes: 0 it parses, 1 it has problems, 2 could not run.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    if format not in ("json", "yaml"):
        raise CommandError(f"there is no format `{format}`: use json or yaml")
    parsed = parse_file(path)
    print(parsed.as_json() if format == "json" else parsed.as_yaml(), end="")
    return FAILURE if parsed.problems else SUCCESS
