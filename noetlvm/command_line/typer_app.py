"""A program's command line as a typer application: help, error messages, completion and unusual spellings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperArgument, TyperCommand

from noetlvm.command_line.declared import REQUIRED, Argument, Command, CommandProgram, Parameter, parameters


def run_with_typer(program: CommandProgram, words: Sequence[str]) -> int:
    """Run a command line and return the exit code."""
    try:
        typer_app(program)(list(words), prog_name=program.name)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def typer_app(program: CommandProgram) -> typer.Typer:
    app = typer.Typer(
        name=program.name,
        help=program.about,
        no_args_is_help=True,
        rich_markup_mode=None,  # importing rich takes longer than everything else
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"{program.name} {program.version}")
            raise typer.Exit

    def root(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Show the version."
        ),
    ) -> None:
        """Options before the command."""

    app.callback(help=program.about)(root)
    for name in program.commands:
        app.command(name, cls=_PlainCommand)(_typed(program.find(name)))
    return app


class _PlainCommand(TyperCommand):
    """Shows arguments as people write them: `FILE...`, where typer would show `{FILE...}... <list[str]>`."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument):
                vars(parameter).update(
                    _usage_display_name=partial(_usage_name, parameter), display_type_rich=lambda **_: ""
                )


def _usage_name(argument: TyperArgument) -> str:
    name = argument.metavar or (argument.name or "").upper()
    several = "..." if argument.nargs != 1 and "..." not in name else ""
    return f"{name}{several}" if argument.required or name.startswith("[") else f"[{name}{several}]"


def _typed(command: Command) -> Callable[..., NoReturn]:
    """Wrap a command in a function with typer's declarations."""

    def call(**given: Any) -> NoReturn:
        raise typer.Exit(command(**given))

    declared = [_declared(parameter) for parameter in parameters(command)]
    call.__doc__ = command.__doc__
    call.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in declared}
    return call


def _declared(parameter: Parameter) -> inspect.Parameter:
    declared = parameter.declared
    if isinstance(declared, Argument):
        info = typer.Argument(metavar=declared.metavar, help=declared.help)
    else:
        info = typer.Option(*parameter.flags, metavar=declared.metavar, help=declared.help, min=declared.min)
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if parameter.default is REQUIRED else parameter.default,
        annotation=Annotated[parameter.hint, info],
    )
