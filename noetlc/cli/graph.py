"""`noetlc graph`: the options, as the user writes them."""

from __future__ import annotations

from typing import Annotated

from noetlc.cli import ConfigOption
from noetlc.graph.run import GraphFormat, Order
from noetlc.graph.run import graph as run_graph
from noetlvm.command_line.declared import Argument, Option


def graph(
    files: Annotated[
        list[str], Argument(metavar="FILE", help="A playbook or a bundle; two with --diff. `-` is standard input.")
    ],
    format: Annotated[GraphFormat, Option(help="Format of the output.")] = GraphFormat.TEXT,
    output: Annotated[str | None, Option("--output", "-o", metavar="FILE", help="Write to a file.")] = None,
    fail_on: Annotated[
        list[str] | None,
        Option(metavar="KINDS", help="Findings that make the exit code 1, or `all`. Repeat, or use commas."),
    ] = None,
    path: Annotated[
        tuple[str, str] | None, Option(metavar="A B", help="Print the shortest run from one step to another.")
    ] = None,
    start: Annotated[str | None, Option("--from", metavar="STEP", help="Print a run that starts at this step.")] = None,
    end: Annotated[str | None, Option("--to", metavar="STEP", help="Print a run to this step.")] = None,
    diff: Annotated[bool, Option("--diff", help="Compare two files, OLD and NEW.")] = False,
    unfold: Annotated[bool, Option("--unfold", help="Also draw the pipelines inside the steps.")] = False,
    playbook: Annotated[
        str | None, Option(metavar="PATH", help="Playbook of the bundle. [default: the main one]")
    ] = None,
    config: ConfigOption = None,
) -> int:
    """Analyse the net of a playbook: reachable steps, whether it can end, the number of tokens. Draw it.

    A guard may be true or false unless its value is known before the run. Every finding comes with an example run.

    \b
    Examples:
      noetlc graph etl.yaml
      noetlc graph etl.nbc --fail-on unreachable,trap,unbounded
      noetlc graph etl.yaml --path fetch report      the shortest run
      noetlc graph etl.yaml --format html -o etl.html
      noetlc graph --diff old.nbc new.nbc            what appeared and what went

    Findings: unreachable, dead-arc, trap, unbounded, race; with --fail-on also unhandled-failure, which is a fact
    of the summary otherwise.

    Exit codes: 0 no finding that --fail-on selects, 1 such a finding, an error in the playbook or no such run, 2 could
    not run.
    """  # noqa: D301 - the help reads \b as: keep the line breaks of this paragraph
    words = tuple(word.strip() for given in fail_on or () for word in given.split(",") if word.strip())
    way = path if path is not None else (start, end) if start is not None or end is not None else None
    return run_graph(Order(tuple(files), format, output, words, way, diff, unfold, playbook, config))
