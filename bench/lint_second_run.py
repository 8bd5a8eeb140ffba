"""A second run over 500 unchanged files, beside the first."""

from __future__ import annotations

import time

from bench.generate_playbooks import write_playbooks
from bench.measurement import Contestant, Goal, Row, best_of
from bench.workplace import Workplace, noetlc

_LINES = 100
_COUNT, _QUICK_COUNT = 500, 40
_SETTLED_S = 2.5
"""A file younger than this is read again by every run, because its time stamp proves nothing yet."""


def measure(workplace: Workplace) -> list[Row]:
    """Time both runs."""
    count = _QUICK_COUNT if workplace.quick else _COUNT
    folder = workplace.folder / "playbooks"
    write_playbooks(folder, count, _LINES)
    time.sleep(_SETTLED_S)
    command = noetlc("lint", folder)
    workplace.run(command)
    workplace.require_results()
    first = Contestant("first", lambda: workplace.run(command), workplace.forget_results)
    second = Contestant("second", lambda: workplace.run(command))  # it finds what the first has just kept
    times = best_of([first, second], workplace.rounds)
    job = f"lint {count} files again"
    return [Row(job, times["second"], "the first run", times["first"], Goal("under 10 % of it", 0.1))]
