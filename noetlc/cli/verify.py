"""`noetlc verify`: whether a bundle may run."""

from __future__ import annotations

import json as json_module
import sys
from typing import Annotated

from noetlc.bundle.files import verify_file
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import FAILURE, SUCCESS


def verify(
    bundles: Annotated[list[str], Argument(metavar="BUNDLES", help="Bundles; `-` is standard input.")],
    json: Annotated[bool, Option("--json", help="Print JSON: a list with one entry per bundle.")] = False,
) -> int:
    """Decode and verify bundles, as the virtual machine does before it runs one.

    \b
    Examples:
      noetlc verify etl.nbc
      noetlc verify build/*.nbc --json

    \b
    Exit codes: 0 all are valid, 1 one is malformed or invalid, 2 could not run.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    results = [verify_file(path) for path in bundles]
    if json:
        print(json_module.dumps([one.to_json() for one in results], indent=2))
    else:
        for one in results:
            print(str(one), file=sys.stderr if one.error is not None else sys.stdout)
    return FAILURE if any(one.error for one in results) else SUCCESS
