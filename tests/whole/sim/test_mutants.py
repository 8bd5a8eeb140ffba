"""Deliberate bugs: each is caught by the case or the test that its row names, and most by a few seeds too."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

from noetlvm.conformance.verdict import complaints
from noetlvm.sim import loop
from noetlvm.sim.campaign import run_seed
from noetlvm.store.memory import MemoryStore
from tests.whole.conformance.suite import read_cases
from tests.whole.conformance.test_run_cases import reported
from tests.whole.sim.mutants import MUTANTS, Mutant, plant, source_of

CAUGHT, SURVIVED, NOT_PLANTED = 0, 1, 2
MORE_SEEDS = 25
TICKS_MAX = 30_000
"""A simulation with more callbacks breaks an invariant: it does not end."""
CPU_SECONDS_MAX = 4
SECONDS_MAX = 60
"""A process that computes or takes longer, or that its bug ends, is caught too; without one it needs half a second."""
UNSEEN = frozenset({
    "fence_lost", "unsorted_merge", "one_retry_too_many", "gate_never_tested_again", "lease_of_a_unit_shrinks",
    "assignment_of_a_failed_write_stays", "older_lease_goes_on", "leaving_worker_keeps_its_lease",
    "writes_of_a_failed_iteration_count", "ctx_patch_lost", "thread_does_not_see_its_write", "iter_writes_lost",
    "timer_forgotten", "withdrawn_work_stays", "long_wait_holds_the_worker", "doubled_command_runs_twice",
    "slot_never_free", "timers_of_others_not_looked_for", "stale_child_answers", "started_iterations_cancelled",
    "lost_lease_goes_on", "request_to_a_child_that_never_was_stays", "deferred_command_in_a_pool_of_nobody",
    "rate_ignored", "snapshot_forgets_a_lease", "handled_failure_is_retried", "retry_of_a_retry_repeats_the_first",
    "retry_without_its_key", "stopped_outer_iteration_has_no_end", "cancelled_run_is_routed",
    "cancelled_execution_accepts_reports", "cut_decision_has_no_timer", "child_of_a_stopped_task_goes_on",
    "timer_ignored",
})  # fmt: skip
"""Bugs that a few seeds do not find: they take more seeds, or a test that knows what to look for."""
FOUND_BY: dict[str, int] = json.loads((Path(__file__).parent / "corpus.json").read_text(encoding="utf-8"))["planted"]
"""One of those few for most of the others: it finds the bug at once, as long as it means the same playbooks."""
CASES = {case.id: case for case in read_cases("run")}


def test_there_are_fifty_bugs_and_each_has_a_name_of_its_own() -> None:
    assert len(MUTANTS) >= 50
    names = {mutant.name for mutant in MUTANTS}
    assert len(names) == len(MUTANTS)
    assert names >= UNSEEN | FOUND_BY.keys()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_bug_can_be_planted_and_what_catches_it_exists(mutant: Mutant) -> None:
    """Quick, so that a change of the source shows at once which rows no longer fit."""
    assert source_of(import_module(mutant.module)).count(mutant.old) == 1
    assert mutant.old != mutant.new
    assert callable(_catcher(mutant.caught_by, 0))


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_caught(mutant: Mutant) -> None:
    code = _exit_code(mutant)
    assert code != NOT_PLANTED, (
        f"`{mutant.name}` cannot be planted in {mutant.module}, or there is no {mutant.caught_by}"
    )
    assert code != SURVIVED, f"nothing notices `{mutant.name}`"


SEEN = [one for one in MUTANTS if one.name not in UNSEEN]


@pytest.mark.long
@pytest.mark.parametrize("mutant", SEEN, ids=lambda mutant: mutant.name)
def test_the_simulator_finds_a_planted_bug_by_itself(mutant: Mutant) -> None:
    first = FOUND_BY.get(mutant.name, 0)
    assert _exit_code(mutant._replace(caught_by=f"seed {first}"), MORE_SEEDS, SECONDS_MAX) == CAUGHT


@cache
def _import_everything() -> None:
    """Run what a forked process runs, so that each finds it imported."""
    run_seed(0)


def _exit_code(mutant: Mutant, more_seeds: int = 0, cpu_seconds: int = CPU_SECONDS_MAX) -> int:
    """Plant a bug and look for it in a forked process, and return how that process ended."""
    _import_everything()
    child = os.fork()
    if not child:
        code, loop.TICKS_MAX = CAUGHT, TICKS_MAX
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS_MAX)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
        try:
            code = _verdict(mutant, more_seeds)
        finally:  # whatever was raised, a forked process never returns to the test runner
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _verdict(mutant: Mutant, more_seeds: int) -> int:
    try:
        is_caught = _catcher(mutant.caught_by, more_seeds)  # first: a name that nothing has would pass for a catch
        plant(mutant)
    except Exception:  # a name without a test, a text that is gone, a syntax error: nothing of it is a caught bug
        return NOT_PLANTED
    try:
        return CAUGHT if is_caught() else SURVIVED
    except Exception:  # a test fails, and a bug that ends the run is noticed
        return CAUGHT


def _catcher(caught_by: str, more_seeds: int) -> Callable[[], bool]:
    """Return what looks for a bug. A test raises if it finds it."""
    kind, _, name = caught_by.partition(" ")
    if kind == "test":
        test = _test(name)
        return lambda: bool(test())
    if kind == "case":
        case = CASES[name]
        return lambda: bool(complaints(case.expect, reported(case)))
    seeds = [int(name), *range(more_seeds)]
    return lambda: any(run_seed(seed).violations for seed in seeds)


def _test(name: str) -> Callable[[], object]:
    module, _, function = name.partition(" ")
    found: Callable[..., object] = getattr(import_module(module), function)
    return partial(found, MemoryStore()) if "store" in signature(found).parameters else found


@pytest.mark.parametrize(
    "mutant", [one for one in MUTANTS if one.caught_by.startswith("test ")], ids=lambda one: one.name
)
def test_a_test_that_catches_a_bug_passes_without_it(mutant: Mutant) -> None:
    _test(mutant.caught_by.removeprefix("test "))()


@pytest.mark.parametrize(
    "wrong",
    [{"old": "no such text"}, {"new": "if ("}, {"caught_by": "case none"}, {"caught_by": "test tests.none none"}],
)
def test_a_row_that_names_nothing_is_no_catch(wrong: dict[str, str]) -> None:
    assert _exit_code(MUTANTS[0]._replace(**wrong)) == NOT_PLANTED


@pytest.mark.long
@pytest.mark.parametrize("module", sorted({mutant.module for mutant in MUTANTS}))
def test_planting_by_itself_breaks_nothing(module: str) -> None:
    unchanged = next(mutant for mutant in MUTANTS if mutant.module == module)
    same = unchanged._replace(new=unchanged.old, caught_by="seed 0")
    assert _exit_code(same, more_seeds=3, cpu_seconds=SECONDS_MAX) == SURVIVED
