"""The command line as typer sees it. A new command is a function in a file of its own, and a line in `COMMANDS`."""

from __future__ import annotations

from collections.abc import Callable

import typer

from noetlc import __version__
from noetlc.cli.asm import asm
from noetlc.cli.canon import canon
from noetlc.cli.compile import compile  # noqa: A004 - a command goes by its function's name
from noetlc.cli.disasm import disasm
from noetlc.cli.explain import explain
from noetlc.cli.graph import graph
from noetlc.cli.inspect import inspect
from noetlc.cli.lint import lint
from noetlc.cli.parse import parse
from noetlc.cli.schema import schema
from noetlc.cli.strip import strip
from noetlc.cli.verify import verify
from noetlc.cli.where import where

COMMANDS: tuple[Callable[..., None], ...] = (
    lint,
    explain,
    parse,
    schema,
    canon,
    compile,
    graph,
    verify,
    inspect,
    where,
    disasm,
    asm,
    strip,
)
"""The commands, in the order in which `--help` lists them. Their files import no more than typer at the top."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"noetlc {__version__}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    """The compiler toolchain for NoETL playbooks."""


def build_app() -> typer.Typer:
    """Return the application with all its commands."""
    app = typer.Typer(
        name="noetlc",
        no_args_is_help=True,
        rich_markup_mode=None,  # rich would cost more start-up than all the rest
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for command in COMMANDS:
        app.command()(command)
    return app
