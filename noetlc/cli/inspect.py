"""`noetlc inspect`: what is in a bundle."""

from __future__ import annotations

import json as json_module
from typing import Annotated

from noetlc.bundle.files import open_bundle
from noetlc.bundle.inspection import inspect as summary_of
from noetlc.bundle.inspection import table
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import SUCCESS


def inspect(
    bundle: Annotated[str, Argument(metavar="BUNDLE", help="A bundle; `-` is standard input.")],
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> int:
    """Summarise a bundle: steps, tasks, tools, required secrets, sizes.

    \b
    Examples:
      noetlc inspect etl.nbc
      noetlc inspect etl.nbc --json | jq '.playbooks[].secrets'

    \b
    Exit codes: 0 printed, 2 the file cannot be read or is not a valid bundle.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    summary = summary_of(*open_bundle(bundle))
    print(json_module.dumps(summary, indent=2) + "\n" if json else table(summary), end="")
    return SUCCESS
