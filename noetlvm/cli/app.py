"""All commands of `noetlvm` and their options. A command's body is imported when the command is called."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from noetlvm import __version__

app = typer.Typer(
    name="noetlvm",
    help="The virtual machine for NoETL playbooks.\n\nExample: noetlvm run playbook.yaml",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Database = Annotated[
    str | None,
    typer.Option("--db", metavar="FILE", help="Database. [default: $NOETLVM_DB, else one in your state folder]"),
]
AnExecution = Annotated[
    str | None,
    typer.Argument(metavar="[EXECUTION]", help="Identifier, or enough of its beginning or end. [default: the latest]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Keychain = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SOURCE", help="Where secrets come from: env, file:PATH, cmd:COMMAND, or NAME=SOURCE for one entry."
    ),
]
MaxParallel = Annotated[int | None, typer.Option(min=1, metavar="N", help="Tools that run at once. [default: 32]")]
Durability = Annotated[
    str,
    typer.Option(
        metavar="full|relaxed",
        help="full: every decision is recorded before the next, and survives a power cut. relaxed: faster; a power cut "
        "may lose the latest moments, a crash only decisions of the last milliseconds, which are made again.",
    ),
]
Ending = Annotated[bool, typer.Option("--json", help="Print nothing but one JSON object at the end.")]
Hush = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something fails.")]


def _print_version(asked: bool) -> None:
    if asked:
        print(f"noetlvm {__version__}")
        raise typer.Exit


def _durability(word: str) -> Literal["full", "relaxed"]:
    from noetlvm.cli.refused import Refused

    if word == "full":
        return "full"
    if word == "relaxed":
        return "relaxed"
    raise Refused(f"--durability takes full or relaxed, not `{word}`")


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and leave.")
    ] = False,
) -> None:
    """Hold the options that stand before a command."""


@app.command(
    help="Run a bundle, or a playbook straight from YAML, to its end.\n\n"
    "Ctrl-C once stops it in good order; `noetlvm resume` goes on. Exit codes: 0 success, 1 failed, 2 refused.\n\n"
    "Examples: noetlvm run etl.nbc, noetlvm run etl.yaml --set day=2024-05-01, noetlvm run main.yaml child.yaml --json"
)
def run(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="A .nbc; or a playbook, and then those that it runs.")
    ],
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a value of the workload; repeatable.")
    ] = None,
    payload: Annotated[
        str | None, typer.Option(metavar="FILE", help="JSON or YAML that is merged over the workload.")
    ] = None,
    ctx: Annotated[
        str | None, typer.Option(metavar="FILE", help="JSON or YAML that ctx begins with, instead of empty.")
    ] = None,
    keychain: Keychain = None,
    db: Database = None,
    max_parallel: MaxParallel = None,
    durability: Durability = "full",
    as_json: Ending = False,
    quiet: Hush = False,
) -> None:
    """Run a bundle or a playbook."""
    from noetlvm.cli.database import database_path
    from noetlvm.cli.drive import Manner
    from noetlvm.cli.request import first_ctx
    from noetlvm.cli.request import payload as asked
    from noetlvm.cli.run import run_files

    manner = Manner(
        database_path(db), _durability(durability), max_parallel, tuple(keychain or ()), as_json=as_json, quiet=quiet
    )
    raise typer.Exit(run_files(files, asked(payload, set or ()), manner, first_ctx(ctx)))


@app.command(
    help="Go on with an execution after a crash, Ctrl-C or a pause; without one, with all that are unfinished.\n\n"
    "Examples: noetlvm resume, noetlvm resume 0190f3c2 --json"
)
def resume(
    execution: Annotated[
        str | None,
        typer.Argument(metavar="[EXECUTION]", help="Identifier, or enough of it. [default: all that are unfinished]"),
    ] = None,
    keychain: Keychain = None,
    db: Database = None,
    max_parallel: MaxParallel = None,
    durability: Durability = "full",
    as_json: Ending = False,
    quiet: Hush = False,
) -> None:
    """Go on with executions."""
    from noetlvm.cli.database import database_path
    from noetlvm.cli.drive import Manner
    from noetlvm.cli.resume import resume_executions

    manner = Manner(
        database_path(db), _durability(durability), max_parallel, tuple(keychain or ()), as_json=as_json, quiet=quiet
    )
    raise typer.Exit(resume_executions(execution, manner))


@app.command(name="list", help="List executions, the latest first.\n\nExample: noetlvm list --limit 5")
def list_(
    db: Database = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many.")] = 20,
    as_json: Json = False,
) -> None:
    """List executions."""
    from noetlvm.cli.list import list_executions

    raise typer.Exit(list_executions(db, limit, as_json_lines=as_json))


@app.command(help="Show one execution: its steps, its result, its first failure.\n\nExample: noetlvm show 0190f3c2")
def show(execution: AnExecution = None, db: Database = None, as_json: Json = False) -> None:
    """Show one execution."""
    from noetlvm.cli.show import show_execution

    raise typer.Exit(show_execution(execution, db, as_json_text=as_json))


@app.command(
    help="Print the events of an execution.\n\nExamples: noetlvm events, noetlvm events 0190f3c2 --follow --json"
)
def events(
    execution: AnExecution = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the execution ends.")] = False,
    db: Database = None,
    as_json: Json = False,
) -> None:
    """Print the events of an execution."""
    from noetlvm.cli.events import show_events

    raise typer.Exit(show_events(execution, db, follow=follow, as_json_lines=as_json))


@app.command(
    help="Print the ctx of an execution as JSON, now or after one of its events.\n\nExample: noetlvm ctx --at 12"
)
def ctx(
    execution: AnExecution = None,
    at: Annotated[int | None, typer.Option(min=0, metavar="SEQ", help="After the event of this number.")] = None,
    db: Database = None,
) -> None:
    """Print the ctx of an execution."""
    from noetlvm.cli.show import show_ctx

    raise typer.Exit(show_ctx(execution, at, db))


@app.command(
    help="Fold the log of an execution, decide it again, and tell the first place where the outcome differs.\n\n"
    "With another bundle it shows where an edit would have changed what happened: what came from outside stays as it "
    "was recorded. Exit codes: 0 the same, 1 it differs, 2 refused.\n\n"
    "Examples: noetlvm replay 0190f3c2, noetlvm replay --bundle edited.yaml --json"
)
def replay(
    execution: AnExecution = None,
    bundle: Annotated[
        str | None, typer.Option(metavar="FILE", help="A .nbc or a playbook, instead of the database's own copy.")
    ] = None,
    db: Database = None,
    as_json: Json = False,
) -> None:
    """Fold a log, decide it again and compare."""
    from noetlvm.cli.replay import replay_execution

    raise typer.Exit(replay_execution(execution, bundle, db, as_json_object=as_json))


@app.command(help="Remove stored results that no event refers to.\n\nExample: noetlvm clean --db executions.db")
def clean(db: Database = None, as_json: Json = False) -> None:
    """Remove orphaned results."""
    from noetlvm.cli.clean import clean_results

    raise typer.Exit(clean_results(db, as_json_object=as_json))


@app.command(help="Cancel an execution, whether or not a process runs it.\n\nExample: noetlvm cancel 0190f3c2")
def cancel(
    execution: Annotated[str, typer.Argument(metavar="EXECUTION", help="Identifier, or enough of it.")],
    db: Database = None,
) -> None:
    """Cancel an execution."""
    from noetlvm.cli.control import control_execution

    raise typer.Exit(control_execution(execution, "cancel", db))


@app.command(help="Pause an execution: nothing new is begun until `noetlvm resume`.\n\nExample: noetlvm pause 0190f3c2")
def pause(
    execution: Annotated[str, typer.Argument(metavar="EXECUTION", help="Identifier, or enough of it.")],
    db: Database = None,
) -> None:
    """Pause an execution."""
    from noetlvm.cli.control import control_execution

    raise typer.Exit(control_execution(execution, "pause", db))


@app.command(
    help="List the tool kinds, or show the inputs and settings of one.\n\n"
    "Examples: noetlvm tools, noetlvm tools http, noetlvm tools postgres --json"
)
def tools(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help="A tool kind, such as http.")] = None,
    as_json: Json = False,
) -> None:
    """List the tool kinds, or show one."""
    from noetlvm.cli.tools import show_tools

    raise typer.Exit(show_tools(kind, as_json=as_json))
