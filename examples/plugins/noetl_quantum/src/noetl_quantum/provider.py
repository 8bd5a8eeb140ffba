"""A provider of quantum computers, simulated: jobs wait in a queue, run, cost credits, and give counts of outcomes.

It stands where a vendor's client library would. Circuits are lists of gates on a few qubits, and are really computed;
the same circuit, shots and seed give the same counts.
"""

from __future__ import annotations

import cmath
import math
import random
from dataclasses import dataclass, field
from typing import Any

QUBITS_MAX = 12
SHOTS_MAX = 100_000
CREDITS_PER_SHOT = 0.001
QUEUE_SECONDS = {"simulator": 0.0, "small": 0.05, "large": 0.2}
"""The backends, and how long a job waits for each."""

_SQRT_HALF = math.sqrt(0.5)


class ProviderError(Exception):
    """The provider refuses a request. `is_transient`: the same request may work later."""

    def __init__(self, message: str, *, is_transient: bool = False) -> None:
        super().__init__(message)
        self.is_transient = is_transient


@dataclass
class Job:
    """One job, from its submission on."""

    id: str
    backend: str
    circuit: list[Any]
    shots: int
    seed: int
    submitted: float
    counts: dict[str, int] | None = field(default=None)


class Provider:
    """The provider's service. Jobs are found by their id, and a repeated submission is the same job."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def submit(self, key: str, backend: str, circuit: list[Any], shots: int, seed: int, now: float) -> Job:
        """Put a job into the queue. `key` makes it idempotent. Raises ProviderError."""
        if backend not in QUEUE_SECONDS:
            raise ProviderError(f"there is no backend `{backend}`; there are {', '.join(QUEUE_SECONDS)}")
        if not 0 < shots <= SHOTS_MAX:
            raise ProviderError(f"`shots` must be from 1 to {SHOTS_MAX}")
        check(circuit)
        return self._jobs.setdefault(key, Job(key, backend, circuit, shots, seed, now))

    def status(self, id: str, now: float) -> str:
        """Return `queued` or `done`. Raises ProviderError."""
        job = self._job(id)
        return "done" if now >= job.submitted + QUEUE_SECONDS[job.backend] else "queued"

    def result(self, id: str, now: float) -> dict[str, Any]:
        """Return counts, cost and queue time of a job that is done. Raises ProviderError."""
        if self.status(id, now) != "done":
            raise ProviderError(f"the job {id} is still queued", is_transient=True)
        job = self._job(id)
        job.counts = job.counts or measured(job.circuit, job.shots, job.seed)
        queued = QUEUE_SECONDS[job.backend]
        cost = round(job.shots * CREDITS_PER_SHOT, 6)
        known = {"backend": job.backend, "shots": job.shots}
        return {**known, "counts": job.counts, "cost": cost, "queue_time_s": queued}

    def cancel(self, id: str) -> None:
        """Take a job out of the queue."""
        self._jobs.pop(id, None)

    def _job(self, id: str) -> Job:
        if id not in self._jobs:
            raise ProviderError(f"there is no job {id}")
        return self._jobs[id]


def check(circuit: list[Any]) -> int:
    """Return the number of qubits of a circuit. Raises ProviderError."""
    qubits = 0
    for at, gate in enumerate(circuit):
        name, *operands = gate if isinstance(gate, list) and gate else [None]
        count, angles = _GATES.get(name, (0, 0)) if isinstance(name, str) else (0, 0)
        wires = operands[:count]
        is_known = count and len(operands) == count + angles and all(type(wire) is int for wire in wires)
        if not is_known or len(set(wires)) != count or not all(0 <= wire < QUBITS_MAX for wire in wires):
            raise ProviderError(f"gate {at} is no gate: write [h, 0], [x, 0], [ry, 0, angle] or [cx, 0, 1]")
        qubits = max(qubits, *(wire + 1 for wire in wires))
    if not qubits:
        raise ProviderError("the circuit has no gates")
    return qubits


_GATES = {"h": (1, 0), "x": (1, 0), "ry": (1, 1), "cx": (2, 0)}
"""The gates: how many qubits each acts on, and how many angles it takes."""


def measured(circuit: list[Any], shots: int, seed: int) -> dict[str, int]:
    """Compute the circuit's state and draw outcomes from it."""
    qubits = check(circuit)
    state = [0j] * (1 << qubits)
    state[0] = 1 + 0j
    for name, *operands in circuit:
        state = _applied(state, name, operands)
    weights = [abs(amplitude) ** 2 for amplitude in state]
    drawn = random.Random(seed).choices(range(len(state)), weights, k=shots)
    counts: dict[str, int] = {}
    for outcome in drawn:
        bits = format(outcome, f"0{qubits}b")
        counts[bits] = counts.get(bits, 0) + 1
    return dict(sorted(counts.items()))


def _applied(state: list[complex], name: str, operands: list[Any]) -> list[complex]:
    if name == "cx":
        control, target = operands
        return [state[index ^ (1 << target)] if index >> control & 1 else state[index] for index in range(len(state))]
    qubit, *angles = operands
    (a, b), (c, d) = _matrix(name, angles)
    bit = 1 << qubit
    return [
        c * state[index ^ bit] + d * state[index] if index & bit else a * state[index] + b * state[index ^ bit]
        for index in range(len(state))
    ]


def _matrix(name: str, angles: list[float]) -> tuple[tuple[complex, complex], tuple[complex, complex]]:
    if name == "h":
        return (_SQRT_HALF, _SQRT_HALF), (_SQRT_HALF, -_SQRT_HALF)
    if name == "x":
        return (0, 1), (1, 0)
    half = float(angles[0]) / 2
    turn = cmath.exp(0j)
    return (turn * math.cos(half), -math.sin(half)), (math.sin(half), turn * math.cos(half))
