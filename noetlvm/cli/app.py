"""All commands of `noetlvm` and their options. A command's body is imported when the command is called."""

from __future__ import annotations

from typing import Annotated

import typer

from noetlvm import __version__

app = typer.Typer(
    name="noetlvm",
    help="The virtual machine for NoETL playbooks.\n\nExample: noetlvm tools http",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"noetlvm {__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and leave.")
    ] = False,
) -> None:
    """Hold the options that stand before a command."""


@app.command(
    help="List the tool kinds, or show the inputs and settings of one.\n\n"
    "Examples: noetlvm tools, noetlvm tools http, noetlvm tools postgres --json"
)
def tools(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help="A tool kind, such as http.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the tool kinds, or show one."""
    from noetlvm.cli.tools import show_tools

    raise typer.Exit(show_tools(kind, as_json=as_json))
