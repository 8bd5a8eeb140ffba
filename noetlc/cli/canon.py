"""`noetlc canon`: a playbook's canonical form, as YAML."""

from __future__ import annotations

from typing import Annotated

from noetlvm.command_line.declared import Argument, Option


def canon(
    path: Annotated[str, Argument(metavar="FILE", help="A playbook; `-` is standard input.")],
    output: Annotated[str | None, Option("--output", "-o", metavar="FILE", help="Write to a file.")] = None,
    config: Annotated[
        str | None,
        Option(metavar="FILE", help="Configuration; else the nearest noetlc.toml or [tool.noetlc] is used."),
    ] = None,
) -> int:
    """Print the canonical form: labels, effective specs, no sugar, no workbook.

    \b
    Examples:
      noetlc canon etl.yaml                 what the compiler sees
      noetlc canon etl.yaml -o canon.yaml   the same, into a file
      cat etl.yaml | noetlc canon -

    \b
    Exit codes: 0 printed, 1 the playbook has errors (they are shown as lint shows them), 2 could not run.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    from noetlc.bundle.canonical import canon as run_canon

    return run_canon(path, output, config)
