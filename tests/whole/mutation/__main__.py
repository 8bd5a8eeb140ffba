"""Mutation testing of `noetlvm/machine`: `python -m tests.whole.mutation [--only FILE] [--sample N] [--json FILE]`.

It prints the mutants that nothing notices, those aside that `explained.json` says why of. The exit code is 1 if there
is one, or if a row of `explained.json` is stale: its mutant is gone, or something notices it now.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.whole.mutation.judging import MACHINE, Judge, Mutant, Verdict, all_mutants

EXPLAINED = Path(__file__).with_name("explained.json")
"""Reasons with the mutants that change nothing for that reason."""
_SCHEDULES = "tests/whole/conformance/test_run_cases.py::test_no_schedule_changes_how_it_ends"
_LONG = "tests/noetlvm/engine/test_resume.py::test_a_long_execution_is_restored_from_a_snapshot_as_from_its_events"
TESTS = (
    "tests/noetlvm/machine",
    "tests/noetlvm/replay",
    "tests/whole/conformance/test_run_cases.py",
    "tests/whole/conformance/test_replay_cases.py",
    "tests/noetlvm/engine/test_retry.py",
    "tests/noetlvm/engine/test_resume.py",
    "tests/noetlvm/service/test_placement.py",
    "tests/noetlvm/cli/test_masks.py",
    "tests/noetlvm/results/test_reachable.py",
    # Slow, above all where every line is traced:
    f"--deselect={_SCHEDULES}",
    "--ignore=tests/noetlvm/machine/control/test_memory.py",
    f"--deselect={_LONG}",
)


def explained() -> dict[tuple[str, ...], str]:
    """Return why nothing can notice a mutant, by its identity."""
    groups = json.loads(EXPLAINED.read_text(encoding="utf-8"))
    return {tuple(one): group["why"] for group in groups for one in group["mutants"]}


def stale(known: dict[tuple[str, ...], str], mutants: list[Mutant], verdicts: list[Verdict]) -> list[tuple[str, ...]]:
    """Return the explanations of mutants that no longer exist in modules that were looked at, or that are killed."""
    modules, there = {one.module for one in mutants}, {one.identity for one in mutants}
    # The same change of two equal lines of a function has one explanation.
    killed = {one.mutant.identity for one in verdicts if one.is_killed}
    killed -= {one.mutant.identity for one in verdicts if not one.is_killed}
    return [one for one in known if one in killed or (one[0] in modules and one not in there)]


def chosen(mutants: list[Mutant], options: argparse.Namespace) -> list[Mutant]:
    """Return the mutants that a run is for."""
    if options.again:
        before = json.loads(options.again.read_text(encoding="utf-8"))
        wanted = {
            (one["module"], one["function"], one["text"], one["old"], one["new"])
            for one in before
            if one["verdict"] == "survived"
        }
        mutants = [one for one in mutants if one.identity in wanted]
    if options.sample and options.sample < len(mutants):
        numbers = sorted(random.Random(options.seed).sample(range(len(mutants)), options.sample))
        mutants = [mutants[number] for number in numbers]
    return mutants


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.whole.mutation")
    parser.add_argument("--only", action="append", type=Path, help="a file of noetlvm/machine; default: all")
    parser.add_argument("--sample", type=int, help="so many mutants only")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=6.0, help="of tests for one mutant")
    parser.add_argument("--seeds", type=int, default=20, help="of the simulator for one mutant that passes the tests")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="instead of the usual ones")
    parser.add_argument("--again", type=Path, help="results of a run: only what survived it")
    parser.add_argument("--json", type=Path, help="file for the results")
    return parser.parse_args()


def main() -> int:
    """Run mutants and print the survivors."""
    options = parsed()
    modules = [one.stem for one in options.only or sorted(MACHINE.glob("*.py")) if one.stem != "__init__"]
    mutants = all_mutants(modules)
    wanted = chosen(mutants, options)
    known = explained()
    verdicts: list[Verdict] = []

    def note(verdict: Verdict) -> None:
        verdicts.append(verdict)
        data: dict[str, Any] = verdict.to_data()
        if options.json:
            options.json.write_text(json.dumps([one.to_data() for one in verdicts], indent=1) + "\n", encoding="utf-8")
        if not verdict.is_killed and verdict.mutant.identity not in known:
            print("survived", json.dumps(data), flush=True)
        if not len(verdicts) % 50:
            print(f"{len(verdicts)} of {len(wanted)}, {sum(one.seconds for one in verdicts):.0f} s of CPU", flush=True)

    judge = Judge(wanted, note, jobs=options.jobs, seconds=options.seconds, seeds=options.seeds)
    words = ["-q", "-s", "-p", "no:xdist", "-p", "no:cacheprovider", "--assert=plain", "--tb=native"]
    words += ["-W", "ignore", "-o", "timeout=0", "-o", "session_timeout=0"]
    if code := pytest.main([*words, *options.tests], plugins=[judge]):
        return int(code)
    counts = Counter(
        "killed" if one.is_killed else "explained" if one.mutant.identity in known else "survived" for one in verdicts
    )
    old = stale(known, mutants, verdicts)
    for identity in old:
        print("stale explanation", json.dumps(identity))
    seconds = sum(one.seconds for one in verdicts)
    print(f"{len(verdicts)} mutants: {dict(counts)}; {seconds / max(1, len(verdicts)):.2f} s of CPU each")
    return int(bool(counts["survived"] or old))


if __name__ == "__main__":
    sys.exit(main())
