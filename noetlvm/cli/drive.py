"""Runs an engine for a command: opens the store, shows progress, handles signals, and prints the ending."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from noetlvm.bytecode.program import BundleError
from noetlvm.cli.database import database_path, options_given, results_of, writing
from noetlvm.cli.request import DurabilityLevel
from noetlvm.cli.view import Quiet, first_failure, summary, view_for
from noetlvm.command_line.printed import counted
from noetlvm.command_line.process import CANNOT_RUN, FAILURE, INTERRUPTED, SUCCESS, CommandError, settle
from noetlvm.data import references
from noetlvm.data.references import Reference
from noetlvm.engine.engine import MAX_PARALLEL, Engine, EngineOptions
from noetlvm.expr.errors import ExpressionError
from noetlvm.record import Record
from noetlvm.rounds.credentials import UnresolvedError, resolver
from noetlvm.rounds.library import NotFoundError
from noetlvm.rounds.requests import BadRequestError, RefusedRetryError
from noetlvm.rounds.tracing import TracingError, tracing_of
from noetlvm.tools.runner import MissingPackageError, ToolRunner, require_packages

if TYPE_CHECKING:
    from noetlvm.engine.engine import Engine
    from noetlvm.rounds.active import Ending
    from noetlvm.rounds.spans import TraceWriter
    from noetlvm.store.interface import Durability, Store, StoreReader


INPUTS_VARIABLE = "NOETLVM_INPUTS"
"""`off`: the log does not record what tools were given."""

Begin: TypeAlias = "Callable[[Engine], Sequence[str]]"
"""Starts executions and returns their ids."""


class RunOptions(Record):
    database: Path
    durability: Durability = "full"
    max_parallel: int | None = None
    keychain: tuple[str, ...] = ()
    as_json: bool = False
    quiet: bool = False
    given: str = ""
    """Options that a suggested command repeats."""

    @classmethod
    def of(
        cls,
        db: str | None,
        durability: DurabilityLevel,
        max_parallel: int | None,
        keychain: list[str] | None,
        *,
        as_json: bool,
        quiet: bool,
    ) -> RunOptions:
        level: Durability = "relaxed" if durability is DurabilityLevel.RELAXED else "full"
        return cls(database_path(db), level, max_parallel, tuple(keychain or ()), as_json, quiet, options_given(db))


def records_inputs() -> bool:
    """Return whether the log records what tools were given."""
    return os.environ.get(INPUTS_VARIABLE, "") not in ("0", "off", "no", "false")


def drive(options: RunOptions, begin: Begin, folder: Path | None = None) -> int:
    """Run what `begin` starts until it ends or is stopped, print the ending, and return the exit code.

    `folder` is where the playbook's files are, if that is known.
    """
    with writing(options.database, options.durability) as store:
        with view_for(shows=not (options.quiet or options.as_json)) as view:
            endings = _endings(options, store, begin, view)
        for ending in endings:
            print_ending(store, ending, folder, options.given, as_json=options.as_json, quiet=options.quiet)
    return exit_code(endings)


def _endings(options: RunOptions, store: Store, begin: Begin, view: Quiet) -> list[Ending]:
    settle()
    try:
        return asyncio.run(_run(options, store, begin, view))
    except (BadRequestError, MissingPackageError, NotFoundError, RefusedRetryError, UnresolvedError) as problem:
        raise CommandError(str(problem)) from None
    except (BundleError, ExpressionError) as problem:  # a stored bundle or result that is missing or damaged
        raise CommandError(f"the stored data cannot be read: {problem}") from None


async def _run(options: RunOptions, store: Store, begin: Begin, view: Quiet) -> list[Ending]:
    writer = ThreadPoolExecutor(1) if options.durability == "full" else None  # its thread begins when it is needed
    tracing = _tracing(store)
    engine = Engine(
        store,
        results_of(options.database, options.durability),
        ToolRunner(options.keychain),
        EngineOptions(
            resolve=resolver(options.keychain),
            max_parallel=options.max_parallel or MAX_PARALLEL,
            observers=(view.observe, *([tracing.observe] if tracing else [])),
            records_inputs=records_inputs(),
            writer=writer,
        ),
    )
    begun = begin(engine)
    # Nothing is decided yet, so nothing of what a missing package refuses is recorded.
    require_packages(kind for active in engine.rounds.active.values() for kind in active.program.kinds())
    if not options.quiet:
        view.recall(store, begun)
    _handle_signals(engine, view)
    try:
        await engine.run(listens=True)
    finally:
        if tracing is not None:
            tracing.close()
    return [engine.ending(execution_id) for execution_id in begun]


def _tracing(store: Store) -> TraceWriter | None:
    if not any(name.startswith("OTEL_") for name in os.environ):
        return None
    try:
        return tracing_of(store)
    except TracingError as problem:
        raise CommandError(str(problem)) from None


def _handle_signals(engine: Engine, view: Quiet) -> None:
    """Stop gracefully on the first signal, immediately on the second."""
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        engine.stop(now=len(received) > 1)
        if len(received) == 1 and engine.busy:
            view.say(f"stopping: {counted(engine.busy, 'task')} may still end; send the signal again to stop them")

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` leaves it
            loop.add_signal_handler(number, stop, number)


# ---- the end


def print_ending(
    reader: StoreReader, ending: Ending, folder: Path | None, options: str, *, as_json: bool, quiet: bool
) -> None:
    """Print how an execution ended: as one JSON object, as text, or nothing for a success with `--quiet`."""
    if type(ending.result) is Reference and not quiet:
        print(f"the result is stored: `noetlvm result {ending.execution_id}{options}` prints it", file=sys.stderr)
    if as_json:
        data = ending._asdict()
        del data["failure_count"]
        print(references.as_json(data), flush=True)
        return
    row = reader.execution(ending.execution_id)
    if row is None or (quiet and ending.status == "success"):
        return
    stream = sys.stderr if quiet else sys.stdout
    for line in summary(row, ending, first_failure(reader, ending), folder, options):
        print(line, file=stream)


def exit_code(endings: Sequence[Ending]) -> int:
    """Return the exit code of a command that ran executions."""
    if any(_was_refused(ending) for ending in endings):
        return CANNOT_RUN
    if any(ending.status in ("failed", "cancelled") for ending in endings):
        return FAILURE
    return SUCCESS if all(ending.status == "success" for ending in endings) else INTERRUPTED


def _was_refused(ending: Ending) -> bool:
    """Return whether it did not begin because a credential is missing."""
    return any("step" not in failed and failed["error"]["kind"] == "keychain" for failed in ending.failures[:1])
