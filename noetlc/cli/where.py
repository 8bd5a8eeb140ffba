"""`noetlc where`: from code to the source, and back."""

from __future__ import annotations

import json as json_module
import sys
from typing import Annotated

from noetlc.bundle.files import open_bundle
from noetlc.bundle.source_map import everything, find
from noetlvm.command_line.declared import Argument, Option
from noetlvm.command_line.process import FAILURE, SUCCESS, CommandError
from noetlvm.nearest import suggestion


def where(
    bundle: Annotated[str, Argument(metavar="BUNDLE", help="A bundle with its debug map.")],
    label: Annotated[
        str, Argument(metavar="LABEL", help="A step, a label, an address, or a line of the source (`etl.yaml:12`).")
    ],
    json: Annotated[bool, Option("--json", help="Print JSON: a list of positions.")] = False,
) -> int:
    """Show the source of code: file, line, column and construct.

    A generated label leads to its `choose`, `while`, `until` or workbook call.

    \b
    Examples:
      noetlc where etl.nbc fetch                    the step
      noetlc where etl.nbc fetch/choose_1.when_2    a generated label
      noetlc where etl.nbc start/arc.1/when         an arc's guard
      noetlc where etl.nbc etl.yaml:12              the code of a line

    \b
    Exit codes: 0 found, 1 not found, 2 could not run.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    program, _ = open_bundle(bundle)
    if program.debug is None:
        raise CommandError(f"{bundle} has been stripped of its debug map: compile the playbook without --strip")
    found = find(program, label)
    if json:
        print(json_module.dumps([one.to_json() for one in found], indent=2))
    for one in found if not json else ():
        print(str(one))
    if not found:
        known = [one.address for one in everything(program)]
        print(f"noetlc: nothing in {bundle} is called `{label}`.{suggestion(label, known)}", file=sys.stderr)
        return FAILURE
    return SUCCESS
