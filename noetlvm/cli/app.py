"""All commands of `noetlvm` and their options. A command's body is imported when the command is called."""

from __future__ import annotations

from typing import Annotated, Literal

from noetlvm import __version__
from noetlvm.command_line.declared import Argument, Command, Option, Program

Database = Annotated[
    str | None,
    Option("--db", metavar="FILE", help="Database. [default: $NOETLVM_DB, else one in your state folder]"),
]
AnExecution = Annotated[
    str | None,
    Argument(metavar="[EXECUTION]", help="Identifier, or enough of its beginning or end. [default: the latest]"),
]
Json = Annotated[bool, Option("--json", help="Print JSON.")]
Keychain = Annotated[
    list[str] | None,
    Option(
        metavar="SOURCE", help="Where secrets come from: env, file:PATH, cmd:COMMAND, or NAME=SOURCE for one entry."
    ),
]
MaxParallel = Annotated[int | None, Option(min=1, metavar="N", help="Tools that run at once. [default: 32]")]
Durability = Annotated[
    str,
    Option(
        metavar="full|relaxed",
        help="full: every decision is recorded before the next, and survives a power cut. relaxed: faster; a power cut "
        "may lose the latest moments, a crash only decisions of the last milliseconds, which are made again.",
    ),
]
Ending = Annotated[bool, Option("--json", help="Print nothing but one JSON object at the end.")]
Hush = Annotated[bool, Option("--quiet", "-q", help="Say nothing unless something fails.")]


def _durability(word: str) -> Literal["full", "relaxed"]:
    from noetlvm.cli.refused import Refused

    if word == "full":
        return "full"
    if word == "relaxed":
        return "relaxed"
    raise Refused(f"--durability takes full or relaxed, not `{word}`")


def run(
    files: Annotated[
        list[str], Argument(metavar="FILE...", help="A .nbc; or a playbook, and then those that it runs.")
    ],
    set: Annotated[
        list[str] | None, Option("--set", metavar="KEY=VALUE", help="Set a value of the workload; repeatable.")
    ] = None,
    payload: Annotated[
        str | None, Option(metavar="FILE", help="JSON or YAML that is merged over the workload.")
    ] = None,
    ctx: Annotated[
        str | None, Option(metavar="FILE", help="JSON or YAML that ctx begins with, instead of empty.")
    ] = None,
    keychain: Keychain = None,
    db: Database = None,
    max_parallel: MaxParallel = None,
    durability: Durability = "full",
    as_json: Ending = False,
    quiet: Hush = False,
) -> int:
    """Run a bundle, or a playbook straight from YAML, to its end.

    Ctrl-C once stops it in good order; `noetlvm resume` goes on. Exit codes: 0 success, 1 failed, 2 refused.

    Examples: noetlvm run etl.nbc, noetlvm run etl.yaml --set day=2024-05-01, noetlvm run main.yaml child.yaml
    --json
    """
    from noetlvm.cli.database import database_path
    from noetlvm.cli.drive import Manner
    from noetlvm.cli.request import first_ctx
    from noetlvm.cli.request import payload as asked
    from noetlvm.cli.run import run_files

    manner = Manner(
        database_path(db), _durability(durability), max_parallel, tuple(keychain or ()), as_json=as_json, quiet=quiet
    )
    return run_files(files, asked(payload, set or ()), manner, first_ctx(ctx))


def resume(
    execution: Annotated[
        str | None,
        Argument(metavar="[EXECUTION]", help="Identifier, or enough of it. [default: all that are unfinished]"),
    ] = None,
    keychain: Keychain = None,
    db: Database = None,
    max_parallel: MaxParallel = None,
    durability: Durability = "full",
    as_json: Ending = False,
    quiet: Hush = False,
) -> int:
    """Go on with an execution after a crash, Ctrl-C or a pause; without one, with all that are unfinished.

    Examples: noetlvm resume, noetlvm resume 0190f3c2 --json
    """
    from noetlvm.cli.database import database_path
    from noetlvm.cli.drive import Manner
    from noetlvm.cli.resume import resume_executions

    manner = Manner(
        database_path(db), _durability(durability), max_parallel, tuple(keychain or ()), as_json=as_json, quiet=quiet
    )
    return resume_executions(execution, manner)


def list_(
    db: Database = None,
    limit: Annotated[int, Option(min=1, metavar="N", help="How many.")] = 20,
    as_json: Json = False,
) -> int:
    """List executions, the latest first.

    Example: noetlvm list --limit 5
    """
    from noetlvm.cli.list import list_executions

    return list_executions(db, limit, as_json_lines=as_json)


def show(execution: AnExecution = None, db: Database = None, as_json: Json = False) -> int:
    """Show one execution: its steps, its result, its first failure.

    Example: noetlvm show 0190f3c2
    """
    from noetlvm.cli.show import show_execution

    return show_execution(execution, db, as_json_text=as_json)


def events(
    execution: AnExecution = None,
    follow: Annotated[bool, Option("--follow", "-f", help="Go on until the execution ends.")] = False,
    db: Database = None,
    as_json: Json = False,
) -> int:
    """Print the events of an execution.

    Examples: noetlvm events, noetlvm events 0190f3c2 --follow --json
    """
    from noetlvm.cli.events import show_events

    return show_events(execution, db, follow=follow, as_json_lines=as_json)


def ctx(
    execution: AnExecution = None,
    at: Annotated[int | None, Option(min=0, metavar="SEQ", help="After the event of this number.")] = None,
    db: Database = None,
) -> int:
    """Print the ctx of an execution as JSON, now or after one of its events.

    Example: noetlvm ctx --at 12
    """
    from noetlvm.cli.show import show_ctx

    return show_ctx(execution, at, db)


def replay(
    execution: AnExecution = None,
    bundle: Annotated[
        str | None, Option(metavar="FILE", help="A .nbc or a playbook, instead of the database's own copy.")
    ] = None,
    db: Database = None,
    as_json: Json = False,
) -> int:
    """Fold the log of an execution, decide it again, and tell the first place where the outcome differs.

    With another bundle it shows where an edit would have changed what happened: what came from outside stays as it was
    recorded. Exit codes: 0 the same, 1 it differs, 2 refused.

    Examples: noetlvm replay 0190f3c2, noetlvm replay --bundle edited.yaml --json
    """
    from noetlvm.cli.replay import replay_execution

    return replay_execution(execution, bundle, db, as_json_object=as_json)


def clean(db: Database = None, as_json: Json = False) -> int:
    """Remove stored results that no event refers to.

    Example: noetlvm clean --db executions.db
    """
    from noetlvm.cli.clean import clean_results

    return clean_results(db, as_json_object=as_json)


def cancel(
    execution: Annotated[str, Argument(metavar="EXECUTION", help="Identifier, or enough of it.")],
    db: Database = None,
) -> int:
    """Cancel an execution, whether or not a process runs it.

    Example: noetlvm cancel 0190f3c2
    """
    from noetlvm.cli.control import control_execution

    return control_execution(execution, "cancel", db)


def pause(
    execution: Annotated[str, Argument(metavar="EXECUTION", help="Identifier, or enough of it.")],
    db: Database = None,
) -> int:
    """Pause an execution: nothing new is begun until `noetlvm resume`.

    Example: noetlvm pause 0190f3c2
    """
    from noetlvm.cli.control import control_execution

    return control_execution(execution, "pause", db)


def tools(
    kind: Annotated[str | None, Argument(metavar="[KIND]", help="A tool kind, such as http.")] = None,
    as_json: Json = False,
) -> int:
    """List the tool kinds, or show the inputs and settings of one.

    Examples: noetlvm tools, noetlvm tools http, noetlvm tools postgres --json
    """
    from noetlvm.cli.tools import show_tools

    return show_tools(kind, as_json=as_json)


_COMMANDS: dict[str, Command] = {
    "run": run,
    "resume": resume,
    "list": list_,
    "show": show,
    "events": events,
    "ctx": ctx,
    "replay": replay,
    "clean": clean,
    "cancel": cancel,
    "pause": pause,
    "tools": tools,
}

PROGRAM = Program(
    name="noetlvm",
    version=__version__,
    about="The virtual machine for NoETL playbooks.\n\nExample: noetlvm run playbook.yaml",
    commands=tuple(_COMMANDS),
    find=_COMMANDS.__getitem__,
)
