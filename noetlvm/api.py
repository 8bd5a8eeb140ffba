"""The virtual machine as a Python library: `run` a playbook to its end. docs/python-api.md has examples.

A playbook is a compiled bundle, its bytes, a text of YAML, or a `pathlib.Path` of either. Without a database nothing is
stored; with one, everything is recorded as `noetlvm run` does, and the commands show it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from noetlvm.bridge import CompilationError, compile_source
from noetlvm.bytecode.codec.container import MAGIC
from noetlvm.bytecode.program import BundleError
from noetlvm.engine.engine import MAX_PARALLEL, Engine, EngineOptions
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.payload import whole
from noetlvm.results.files import FileResults
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.active import Ending
from noetlvm.rounds.credentials import UnresolvedError, resolver
from noetlvm.rounds.requests import BadRequestError
from noetlvm.store.memory import MemoryStore
from noetlvm.store.sqlite import SqliteStore
from noetlvm.tools.runner import MissingPackageError, ToolRunner, require_packages

if TYPE_CHECKING:
    from noetlvm.engine.engine import Observer
    from noetlvm.results.interface import ResultStore
    from noetlvm.store.interface import Durability, Store

__all__ = [
    "BadRequestError",
    "BundleError",
    "CompilationError",
    "Ending",
    "MissingPackageError",
    "Playbook",
    "UnresolvedError",
    "run",
    "run_async",
]


class HasData(Protocol):
    """A compiled bundle."""

    @property
    def data(self) -> bytes:
        """The bytes of a bundle."""


Playbook: TypeAlias = str | bytes | PathLike[str] | HasData
"""YAML as text, the bytes of a bundle, the path of a file with either, or a compiled bundle."""

_Done = TypeVar("_Done")


def run(playbook: Playbook, payload: Mapping[str, Any] | None = None, **options: Any) -> Ending:
    """Run a playbook to its end, and return how it ended: `status`, `result`, `ctx`, `failures`.

    Options are those of `run_async`. A failed playbook is an ending, not an exception. Raises CompilationError for a
    playbook with errors, BundleError for bytes that are not a bundle, BadRequestError for a payload that cannot be
    recorded, UnresolvedError for a credential that nothing provides, and MissingPackageError for tool kinds whose
    packages are not installed.
    """
    return _finished(run_async(playbook, payload, **options))


async def run_async(
    playbook: Playbook,
    payload: Mapping[str, Any] | None = None,
    *,
    ctx: Mapping[str, Any] | None = None,
    db: str | PathLike[str] | None = None,
    keychain: Sequence[str] = (),
    max_parallel: int = MAX_PARALLEL,
    durability: Durability = "full",
    observers: Sequence[Observer] = (),
) -> Ending:
    """Run a playbook to its end in the running event loop.

    `payload` is merged over the workload, `ctx` is what `ctx` begins with. `db` is the file to record in; without one
    nothing stays. `keychain` has the values of `--keychain`, such as `file:secrets.yaml`. `observers` are called with
    an execution's row and its events once these are durable. Exceptions are those of `run`.
    """
    bundle = _bundle(playbook)
    resolve = resolver(tuple(keychain))
    resolve(bundle.program.main.keychain)  # raises UnresolvedError before anything is recorded
    require_packages(bundle.program.kinds())
    with _stores(db, durability) as (store, results):
        engine = Engine(
            store,
            results,
            ToolRunner(tuple(keychain)),
            EngineOptions(
                resolve=resolve,
                max_parallel=max_parallel,
                observers=tuple(observers),
                records_inputs=True,
                writer=ThreadPoolExecutor(1) if db is not None and durability == "full" else None,
            ),
        )
        execution_id = engine.start(bundle, dict(payload or {}), ctx=dict(ctx or {}))
        await engine.run()
        ending = engine.ending(execution_id)
        return ending._replace(ctx=whole(ending.ctx, results.get), result=whole(ending.result, results.get))


def _bundle(playbook: Playbook) -> Bundle:
    if isinstance(playbook, str):
        return Bundle.of(compile_source("playbook.yaml", playbook.encode())[0])
    if isinstance(playbook, PathLike):
        data = Path(playbook).read_bytes()
        if data.startswith(MAGIC):
            return Bundle.of(data)
        return Bundle.of(compile_source(str(playbook), data)[0])
    return Bundle.of(playbook if isinstance(playbook, bytes) else playbook.data)


@contextmanager
def _stores(db: str | PathLike[str] | None, durability: Durability) -> Iterator[tuple[Store, ResultStore]]:
    if db is None:
        yield MemoryStore(durability), MemoryResults()
        return
    path = Path(db)
    store = SqliteStore(path, durability)
    try:
        yield store, FileResults.of_database(path, durability)
    finally:
        store.close()


def _finished(run: Coroutine[Any, Any, _Done]) -> _Done:
    """Run a coroutine to its end, also where the caller is one itself: then in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, run).result()
