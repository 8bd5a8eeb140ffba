"""A program's command line as a typer application: help, error messages, completion and unusual spellings."""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperArgument, TyperCommand

from noetlvm.command_line.declared import REQUIRED, Argument, Command, CommandProgram, Parameter, parameters


def run_with_typer(program: CommandProgram, words: Sequence[str]) -> int:
    """Run a command line and return the exit code."""
    try:
        app = typer_app(program, program.commands if _completes(program) else words)
        app(list(words), prog_name=program.name)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def _completes(program: CommandProgram) -> bool:
    """Return whether a shell requests completions: its words are in the environment then."""
    return f"_{program.name.upper()}_COMPLETE" in os.environ


def typer_app(program: CommandProgram, needed: Sequence[str]) -> typer.Typer:
    """Return the application.

    Of a command that is not needed it has the documentation only: neither its module nor the packages that the module
    imports are loaded, and they may be absent.
    """
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
        if name in needed:
            app.command(name, cls=_PlainCommand)(_typed(program.find(name)))
        else:
            app.command(name, help=_documentation(program.package, name))(lambda: None)
    return app


def _documentation(package: str, name: str) -> str:
    """Return the docstring of a command whose module is not imported."""
    source = files(package).joinpath(f"{name}.py").read_text(encoding="utf-8")
    functions = (node for node in ast.parse(source).body if type(node) is ast.FunctionDef)
    return next(ast.get_docstring(node) or "" for node in functions if node.name == name)


class _PlainCommand(TyperCommand):
    """Shows arguments as people write them: `FILE...`, where typer would show `{FILE...}... <list[str]>`."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument):
                vars(parameter).update(
                    get_usage_pieces=partial(_usage_pieces, parameter), get_help_record=partial(_help_record, parameter)
                )


def _usage_pieces(argument: TyperArgument, _context: Any) -> list[str]:
    name = _name(argument)
    several = "..." if argument.nargs != 1 and "..." not in name else ""
    return [f"{name}{several}" if argument.required or name.startswith("[") else f"[{name}{several}]"]


def _help_record(argument: TyperArgument, context: Any) -> tuple[str, str] | None:
    record = TyperArgument.get_help_record(argument, context)
    return record and (_name(argument), record[1])


def _name(argument: TyperArgument) -> str:
    return argument.metavar or (argument.name or "").upper()


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
