"""Runs many seeds, in several processes, and adds up what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from itertools import count, islice, takewhile
from multiprocessing import get_context
from signal import SIG_IGN, SIGINT, signal
from time import monotonic
from typing import Any, NamedTuple

from noetlvm.bridge import CompilationError, compile_texts
from noetlvm.data.encoding import encode
from noetlvm.sim.checker import INVARIANTS, check
from noetlvm.sim.faults import FAULTS
from noetlvm.sim.log_model import Violation
from noetlvm.sim.playbooks import text_of
from noetlvm.sim.shrink import shrink
from noetlvm.sim.world import History, Scenario, simulate, texts_of

_CHUNK = 8
"""Seeds that a process gets at once."""
_CHUNKS = 16
_DIGESTS = 1 << 256


class SeedResult(NamedTuple):
    seed: int
    digest: str
    """Of every byte of every log."""
    violations: list[Violation]
    happened: dict[str, int]
    """Faults that took effect, by kind."""
    events: int
    executions: int
    seconds: float
    """Virtual."""
    is_embedded: bool = False


def run_seed(seed: int, *, is_embedded: bool = False) -> SeedResult:
    """Simulate a seed and check its logs."""
    scenario = Scenario.of(seed, is_embedded=is_embedded)
    history = simulate(scenario)
    return SeedResult(
        seed,
        digest(history),
        check(scenario, history),
        dict(history.happened),
        sum(len(log.events) for log in history.logs.values()),
        len(history.logs),
        history.seconds,
        is_embedded,
    )


def digest(history: History) -> str:
    """Return a checksum over rows and events."""
    found = sha256()
    for log in history.logs.values():
        found.update(repr(log.row).encode())
        for recorded in log.events:
            found.update(encode([*recorded[:3], *recorded.event]))
    return found.hexdigest()


class ReportError(Exception):
    """A report cannot be continued so. The message gives the reason."""


class Campaign:
    """The sum over many seeds, in one go or in several."""

    def __init__(self, *, is_embedded: bool = False) -> None:
        self.is_embedded = is_embedded
        self.seeds = self.events = self.executions = 0
        self.first = self.last = 0
        self.seconds = 0
        """Virtual, each seed rounded: parts add up to the same."""
        self.struck: Counter[str] = Counter()
        """Seeds in which a kind of fault took effect."""
        self.times: Counter[str] = Counter()
        self.failing: list[SeedResult] = []
        """Those of this run, without those that a report brought."""
        self._broken: Counter[str] = Counter()
        """Seeds that break each invariant."""
        self._failures: list[dict[str, Any]] = []
        self._digest = 0
        """A sum, so that parts may be added up."""

    @classmethod
    def after(cls, report: dict[str, Any], first: int, *, is_embedded: bool = False) -> Campaign:
        """Return the campaign that a report is of, to be continued with a seed. Raises ReportError."""
        campaign = cls(is_embedded=is_embedded)
        if report["embedded"] != is_embedded:
            raise ReportError("it is " + ("" if report["embedded"] else "not ") + "of `--embedded`")
        campaign.first, campaign.last = map(int, report["seeds"].split(".."))
        if first != campaign.last + 1:
            raise ReportError(f"it has the seeds {report['seeds']}; continue with `--seeds {campaign.last + 1}..`")
        campaign.seeds, campaign.events = report["count"], report["events"]
        campaign.executions, campaign.seconds = report["executions"], report["virtual_seconds"]
        campaign.struck.update({kind: row["seeds"] for kind, row in report["faults"].items()})
        campaign.times.update({kind: row["times"] for kind, row in report["faults"].items()})
        campaign._broken.update(report["invariants"])
        campaign._failures += report["failing"]
        campaign._digest = int(report["digest"], 16)
        return campaign

    def add(self, result: SeedResult) -> None:
        if not self.seeds:
            self.first = result.seed
        self.last = result.seed
        self.seeds += 1
        self.events += result.events
        self.executions += result.executions
        self.seconds += round(result.seconds)
        self.struck.update(kind for kind in result.happened if kind in FAULTS)
        self.times.update({kind: times for kind, times in result.happened.items() if kind in FAULTS})
        self._digest = (self._digest + int(result.digest, 16)) % _DIGESTS
        if result.violations:
            self.failing.append(result)
            self._broken.update({violation.invariant for violation in result.violations})
            violations = list(map(str, result.violations))
            self._failures.append({"seed": result.seed, "reproduce": reproduction(result), "violations": violations})

    def share(self, kind: str) -> float:
        """Return in how many per cent of the seeds a kind took effect."""
        return round(100 * self.struck[kind] / max(1, self.seeds), 1)

    def report(self) -> dict[str, Any]:
        """Return everything as data: the same for the same seeds."""
        return {
            "seeds": f"{self.first}..{self.last}",
            "embedded": self.is_embedded,
            "count": self.seeds,
            "executions": self.executions,
            "events": self.events,
            "virtual_seconds": self.seconds,
            "faults": {
                kind: {"seeds": self.struck[kind], "share": self.share(kind), "times": self.times[kind]}
                for kind in FAULTS
            },
            "invariants": {name: self._broken[name] for name in INVARIANTS},
            "failing": self._failures,
            "digest": f"{self._digest:064x}",
        }


def run_seeds(
    first: int, last: int | None, jobs: int, seconds: float | None = None, *, is_embedded: bool = False
) -> Iterator[SeedResult]:
    """Yield the results of seeds in order: up to the last, or as long as time is left."""
    until = None if seconds is None else monotonic() + seconds
    wanted: Iterator[int] = count(first) if last is None else iter(range(first, last + 1))
    seeds = takewhile(lambda _seed: until is None or monotonic() < until, wanted)
    run = partial(run_seed, is_embedded=is_embedded)
    if jobs <= 1:
        yield from map(run, seeds)
        return
    with get_context("fork").Pool(jobs, signal, (SIGINT, SIG_IGN)) as pool:  # the one that waits ends the others
        # In portions: the pool would read an endless iterator to its end.
        while chunk := list(islice(seeds, jobs * _CHUNK * _CHUNKS)):
            yield from pool.imap(run, chunk, _CHUNK)


def reproduction(result: SeedResult) -> str:
    return f"noetlvm sim --seeds {result.seed}..{result.seed}" + (" --embedded" if result.is_embedded else "")


def shrunk(result: SeedResult) -> tuple[Scenario, list[Violation]]:
    """Return a small scenario that breaks an invariant which the seed breaks, and how."""
    names = {violation.invariant for violation in result.violations}

    def broken(scenario: Scenario) -> list[Violation]:
        try:
            compile_texts(texts_of(scenario))  # what shrinking leaves is not always valid
            return [one for one in check(scenario, simulate(scenario)) if one.invariant in names]
        except CompilationError:
            return []

    small = shrink(Scenario.of(result.seed, is_embedded=result.is_embedded), lambda scenario: bool(broken(scenario)))
    return small, broken(small)


def failure_text(result: SeedResult) -> str:
    """Return how a seed fails, the command that repeats it, and the small scenario that it shrinks to."""
    small, violations = shrunk(result)
    lines = [
        f"seed {result.seed} breaks {len(result.violations)} times; first: {result.violations[0]}",
        f"reproduce: {reproduction(result)}",
        "",
        f"smallest scenario found: {small.servers} servers, {small.workers} workers, starts at {small.starts}",
        *(f"  {at:>7.3f} s  {kind} (target {target}, amount {amount})" for at, kind, target, amount in small.faults),
        *(f"  breaks {violation}" for violation in violations[:3]),
        *(text_of(document) for document in small.playbooks),
    ]
    return "\n".join(lines)
