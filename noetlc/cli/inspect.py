"""`noetlc inspect`: what is in a bundle."""

from __future__ import annotations

from typing import Annotated

import typer


def inspect(
    bundle: Annotated[str, typer.Argument(metavar="BUNDLE", help="A bundle; `-` is standard input.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Sum up a bundle: steps, tasks, tools, the secrets it needs, sizes.

    \b
    Examples:
      noetlc inspect etl.nbc
      noetlc inspect etl.nbc --json | jq '.playbooks[].secrets'

    \b
    Exit codes: 0 printed, 2 could not run: no file, or no valid bundle.
    """  # noqa: D301 - typer reads \b as: keep the line breaks of this paragraph
    import json as json_module

    from noetlc.bundle.files import open_bundle
    from noetlc.bundle.inspection import inspect as summary_of
    from noetlc.bundle.inspection import table

    summary = summary_of(*open_bundle(bundle))
    typer.echo(json_module.dumps(summary, indent=2) + "\n" if json else table(summary), nl=False)
