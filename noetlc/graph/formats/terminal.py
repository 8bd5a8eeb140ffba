"""The text report for a terminal: the same words, drawn by rich in colours and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from noetlc.graph.formats.text import FIRINGS_MAX, facts, headline, outcome
from noetlc.graph.report import GraphFinding, GraphReport, Witness
from noetlc.net.findings import NetFindingKind
from noetlvm.command_line.printed import visible_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

_BAD = "bold red"
_COLORS = {
    NetFindingKind.UNREACHABLE: "bold yellow",
    NetFindingKind.DEAD_ARC: "bold yellow",
    NetFindingKind.TRAP: _BAD,
    NetFindingKind.UNBOUNDED: _BAD,
    NetFindingKind.RACE: "bold magenta",
    NetFindingKind.UNHANDLED_FAILURE: "bold cyan",
}


def show(report: GraphReport, console: Console | None = None) -> None:
    """Print a report to a terminal; standard output by default."""
    # What a playbook holds is text to show, never markup to obey; highlighting would colour it by accident.
    console = console or Console(markup=False, highlight=False, emoji=False)
    console.print(Text(visible_line(headline(report)), "bold"))
    console.print(Padding(_facts(report), (0, 0, 0, 2)))
    for finding in report.findings:
        console.print()
        console.print(_finding(finding))
        console.print(Padding(_witness(finding.witness), (0, 0, 0, 2)))
    for kind, count in report.left_out.items():
        console.print(Text.assemble("\n", (kind.value, _COLORS[kind]), f": {count} more"))
    if not report.findings:
        console.print(Text("  no findings", "bold green"))


def _facts(report: GraphReport) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column()
    for fact in facts(report):
        grid.add_row(Text(fact.title), Text(visible_line(fact.value), _BAD if fact.is_bad else ""))
    return grid


def _finding(finding: GraphFinding) -> RenderableType:
    where = f"  {finding.where}" if finding.where else ""
    return Text.assemble(
        f"{finding.severity.value}: ",
        (finding.kind.value, _COLORS[finding.kind]),
        f": {visible_line(finding.message)}",
        (visible_line(where), "dim"),
    )


def _witness(witness: Witness) -> Table:
    table = Table(box=SIMPLE_HEAD, title="a run that shows it", title_justify="left", title_style="dim")
    table.add_column("", style="dim", justify="right")
    for column in ("step", "what happens", "line"):
        table.add_column(column)
    for number, firing in enumerate(witness[:FIRINGS_MAX], 1):
        line = str(firing.where.line) if firing.where else ""
        table.add_row(
            Text(str(number)), Text(visible_line(firing.step), "bold"), Text(visible_line(outcome(firing))), Text(line)
        )
    if len(witness) > FIRINGS_MAX:
        table.add_row("", "", Text(f"… and {len(witness) - FIRINGS_MAX} more", "dim"), "")
    return table
