"""How much a no-op step of one task leaves behind: its events, and the bytes by which the database grows."""

from __future__ import annotations

from typing import NamedTuple

from bench.measurement import Row, within
from bench.noop_playbooks import chain
from bench.run_once import DATABASE, run_once
from bench.workplace import Workplace
from noetlvm.bridge import compile_texts

_STEPS = 101
_EXECUTIONS = 11
_EVENTS_MAX, _BYTES_MAX = 7, 1_500


class Volume(NamedTuple):
    """What something leaves in the database."""

    events: float
    bytes: float

    def less(self, other: Volume, parts: int) -> Volume:
        """Return a part of what this is more than the other."""
        return Volume((self.events - other.events) / parts, (self.bytes - other.bytes) / parts)


def measure(workplace: Workplace) -> list[Row]:
    """Compare executions of many steps with those of one."""
    step = _of_an_execution(workplace, _STEPS).less(_of_an_execution(workplace, 1), _STEPS - 1)
    return [
        within("events of a no-op step", step.events, _EVENTS_MAX, "events"),
        within("log of a no-op step", step.bytes, _BYTES_MAX, "B"),
    ]


def _of_an_execution(workplace: Workplace, steps: int) -> Volume:
    """Compare many executions with one: the bundle and the empty tables are in both."""
    return _of_executions(workplace, steps, _EXECUTIONS).less(_of_executions(workplace, steps, 1), _EXECUTIONS - 1)


def _of_executions(workplace: Workplace, steps: int, executions: int) -> Volume:
    folder = workplace.folder / f"{steps}_{executions}"
    folder.mkdir()
    bundle = folder / "chain.nbc"
    bundle.write_bytes(compile_texts([chain(steps)]))
    cost = run_once(bundle, folder, executions, "relaxed")
    return Volume(cost.events, (folder / DATABASE).stat().st_size)
