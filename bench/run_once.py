"""Runs a bundle in a fresh process, as often at once as asked for, and prints what that cost as JSON.

The clock runs from asking for the first execution until everything has ended and is durable. What a user pays before
that, to start the process and to load the bundle, is another benchmark.

With `--warm` it runs the bundle once before, so that what its tools import is imported, as in a bare client.

Usage: python -m bench.run_once BUNDLE FOLDER [EXECUTIONS] [full|relaxed] [--warm]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.measurement import Cost
from noetlvm.command_line.process import begin, settle
from noetlvm.engine.engine import Engine, EngineOptions
from noetlvm.machine.loaded import Bundle
from noetlvm.results.files import FileResults
from noetlvm.store.interface import Append, Durability
from noetlvm.store.sqlite import SqliteStore
from noetlvm.tools.runner import ToolRunner

DATABASE = "noetlvm.db"
_STATUS = Path("/proc/self/status")


class CountingStore(SqliteStore):
    """Counts transactions: with `synchronous=FULL` each is one sync."""

    commits = 0

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        self.commits += 1
        return super().write(batch, bundles)


def run_once(
    bundle: Path, folder: Path, executions: int = 1, durability: Durability = "full", *, warm: bool = False
) -> Cost:
    """Run it to its end. Raises RuntimeError if that is not a success: a run that fails early would look fast."""
    if warm:
        with TemporaryDirectory(dir=folder) as other:
            run_once(bundle, Path(other), executions, durability)
    begin()
    loaded = Bundle.of(bundle.read_bytes())
    settle()
    store = CountingStore(folder / DATABASE, durability)
    try:
        return asyncio.run(_measured(loaded, store, FileResults(folder / "results", durability), executions))
    finally:
        store.close()


async def _measured(bundle: Bundle, store: CountingStore, results: FileResults, executions: int) -> Cost:
    # As `noetlvm run` does.
    writer = ThreadPoolExecutor(1) if store.durability == "full" else None
    engine = Engine(store, results, ToolRunner(), EngineOptions(writer=writer, records_inputs=True))
    memory, began, cpu = _memory("VmRSS"), time.perf_counter(), time.process_time()
    started = [engine.start(bundle, {}) for _ in range(executions)]
    await engine.run()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    endings = [engine.ending(execution_id) for execution_id in started]
    if failed := [ending for ending in endings if ending.status != "success"]:
        raise RuntimeError(f"{len(failed)} of {executions} executions did not succeed: {failed[0]}")
    events = sum(ending.event_count for ending in endings)
    return Cost(seconds, cpu, store.commits, events, _memory("VmHWM") - memory)


def _memory(figure: str) -> int:
    """Return the memory of this process in bytes: `VmRSS` for what it holds now, `VmHWM` for the most it ever held.

    `getrusage` is for systems without /proc: it counts what the parent held when it started this process as well.
    """
    if not _STATUS.exists():
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    lines = dict(line.split(":", 1) for line in _STATUS.read_text(encoding="utf-8").splitlines())
    return int(lines[figure].split()[0]) * 1024


def _main() -> None:
    parser = argparse.ArgumentParser(description="Run a bundle and print what it cost.")
    parser.add_argument("bundle", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("executions", type=int, nargs="?", default=1)
    parser.add_argument("durability", choices=("full", "relaxed"), nargs="?", default="full")
    parser.add_argument("--warm", action="store_true")
    print(json.dumps(run_once(**vars(parser.parse_args()))._asdict()))


if __name__ == "__main__":
    _main()
