"""Checks many files: in this process when there are few, in several when there are many. Order is kept.

This module starts processes and nothing else; what a process does with a file is `examine`'s business.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from noetlc.lint.discover import Target
from noetlc.lint.examine import Examined, examine_file
from noetlc.lint.terms import Terms
from noetlc.rules.catalogue import all_rules

PARALLEL_FROM = 20
"""Fewer files than this are checked sooner than a second process starts."""
_CHUNK_MAX = 16
_ROUNDS = 4
"""Chunks a process gets at least, so that one slow file does not leave the others idle."""


def examine_all(
    targets: Sequence[Target], terms: Terms, jobs: int | None, on_done: Callable[[int], None]
) -> list[Examined]:
    """Check every target; `on_done` hears how many are finished, now and then."""
    all_rules()  # a rule that cannot be loaded is no file's fault: it stops the run, once
    processes = min(jobs or available_cores(), len(targets))
    if processes < 2 or (jobs is None and len(targets) < PARALLEL_FROM):
        return _one_by_one(targets, terms, on_done)
    first = _one_by_one(targets[:1], terms, on_done)  # loads grammars and tables once, before the processes fork
    return first + _in_processes(targets[1:], terms, processes, on_done)


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _one_by_one(targets: Sequence[Target], terms: Terms, on_done: Callable[[int], None]) -> list[Examined]:
    examined = []
    for target in targets:
        examined.append(examine_file(target, terms))
        on_done(len(examined))
    return examined


def _in_processes(
    targets: Sequence[Target], terms: Terms, processes: int, on_done: Callable[[int], None]
) -> list[Examined]:
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed

    size = max(1, min(_CHUNK_MAX, len(targets) // (processes * _ROUNDS)))
    chunks = [targets[start : start + size] for start in range(0, len(targets), size)]
    pool = ProcessPoolExecutor(processes, initializer=_end_on_interrupt)
    try:
        futures = {pool.submit(_examine_chunk, chunk, terms): index for index, chunk in enumerate(chunks)}
        results: list[list[Examined]] = [[] for _ in chunks]
        done = 0
        for future in as_completed(futures):
            index = futures[future]
            died = isinstance(future.exception(), BrokenExecutor)
            results[index] = _lost(chunks[index]) if died else future.result()
            done += len(chunks[index])
            on_done(done)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return [examined for chunk in results for examined in chunk]


def _examine_chunk(chunk: Sequence[Target], terms: Terms) -> list[Examined]:
    return [examine_file(target, terms) for target in chunk]


def _lost(chunk: Sequence[Target]) -> list[Examined]:
    """A process died, from lack of memory perhaps, and took the results of its files along."""
    why = "not checked: the process that worked on it, or on a file beside it, died. Try again with `--jobs 1`"
    return [Examined(target, problem=f"{target.path}: {why}") for target in chunk]


def _end_on_interrupt() -> None:
    """Ctrl-C reaches every process; this one just ends, and leaves the words to its parent."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)
