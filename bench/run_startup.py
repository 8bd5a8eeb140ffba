"""From the start of the process to the end of the first step of a bundle, beside `python -c pass`."""

from __future__ import annotations

import sys
from uuid import uuid4

from bench.measurement import Contestant, Row, at_most, best_of
from bench.noop_playbooks import chain
from bench.peers import PYTHON
from bench.workplace import Workplace
from noetlvm.bridge import compile_texts

_GOAL = at_most(12)
_NEW, _KNOWN = "noetlvm run one_step.nbc, new database", "noetlvm run one_step.nbc"


def measure(workplace: Workplace) -> list[Row]:
    """Time whole processes, with a database that is there and with one that has to be made."""
    bundle = workplace.folder / "one_step.nbc"
    bundle.write_bytes(compile_texts([chain(1)]))

    def run(database: str) -> object:
        return workplace.run([sys.executable, "-m", "noetlvm", "run", "--quiet", "--db", database, bundle])

    contestants = [
        Contestant(PYTHON.title, lambda: workplace.run(PYTHON.command)),
        Contestant(_KNOWN, lambda: run("known.db")),
        Contestant(_NEW, lambda: run(f"{uuid4().hex}.db")),
    ]
    for contestant in contestants:
        contestant.run()
    times = best_of(contestants, workplace.rounds * 4)
    floor = times.pop(PYTHON.title)
    return [Row(name, seconds, PYTHON.title, floor, _GOAL) for name, seconds in times.items()]
