"""Kill -9 at any moment, then `resume`: the same end as without it, no token twice, what was reported stays done."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from noetlc.compile import compile_playbooks
from noetlvm.cli.replay import replay
from noetlvm.data.event import Event
from noetlvm.rounds.recovery import folded
from noetlvm.store.interface import StoreError
from noetlvm.store.sqlite import SqliteReader

ROOT = Path(__file__).parents[3]
SEEDS, FEW_SEEDS = int(os.environ.get("KILL_SEEDS", "20")), 2
"""All, and those that are not among the long tests: one for each durability."""
KILLS = 10
"""Of one seed, over as many executions as it takes: 200 in CI, more with `make kill`."""
DURABILITIES = ("full", "relaxed")
"""In turns: with neither does the death of a process undo what was reported."""
PATIENCE_SECONDS = 120

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: killed, path: killed }
workload: { file: "", items: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }
workflow:
  - step: start
    tool:
      - first: { kind: shell, command: [sh, -c, 'echo first >> "$0"', "{{ workload.file }}"] }
      - flaky:
          kind: shell
          command: [sh, -c, 'test -e "$0.once" || { touch "$0.once"; exit 1; }', "{{ workload.file }}"]
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: retry, attempts: 50, backoff: linear, delay: 0.01 }
      - large: { kind: shell, command: [sh, -c, "head -c 100000 /dev/zero | tr '\\\\0' x"] }
      - second:
          kind: shell
          command:
            [sh, -c, 'echo second >> "$0"; echo "$1"', "{{ workload.file }}", "{{ _prev.stdout | length | string }}"]
          spec:
            policy:
              rules:
                - else: { then: { do: continue, set_ctx: { size: "{{ outcome.result.stdout | trim }}" } } }
    next: { arcs: [{ step: many }] }
  - step: many
    loop:
      in: "{{ workload.items }}"
      iterator: item
      spec: { mode: parallel, max_in_flight: 3, policy: { reducers: { total: sum, seen: append } } }
    tool:
      - note:
          kind: shell
          command: [sh, -c, 'echo "item $1" >> "$0"; echo "$1"', "{{ workload.file }}", "{{ iter.item | string }}"]
      - keep:
          kind: noop
          spec:
            policy:
              rules:
                - else:
                    then: { do: continue, set_ctx: { total: "{{ iter.item }}", seen: "{{ _prev.stdout | trim }}" } }
    next:
      spec: { mode: inclusive }
      arcs:
        - step: left
          when: "{{ event.name == 'loop.done' }}"
        - step: right
          when: "{{ event.name == 'loop.done' }}"
  - step: left
    loop: { in: [1, 2, 3], iterator: turn, spec: { mode: sequential } }
    tool:
      - count:
          kind: noop
          spec:
            policy:
              rules:
                - else: { then: { do: continue, set_ctx: { turns: "{{ (ctx.turns | default(0)) + iter.turn }}" } } }
      - turn:
          kind: shell
          command: [sh, -c, 'echo "turn $1" >> "$0"', "{{ workload.file }}", "{{ iter.turn | string }}"]
  - step: right
    tool:
      - ask:
          kind: playbook
          path: child
          workload: { file: "{{ workload.file }}" }
          spec:
            policy:
              rules:
                - else: { then: { do: continue, set_ctx: { answer: "{{ outcome.result.ctx.answer }}" } } }
"""
CHILD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: child, path: child }
workload: { file: "" }
workflow:
  - step: start
    tool:
      - child:
          kind: shell
          command: [sh, -c, 'echo child >> "$0"; echo 42', "{{ workload.file }}"]
          spec:
            policy:
              rules:
                - else: { then: { do: continue, set_ctx: { answer: "{{ outcome.result.stdout | int }}" } } }
"""
LINES = {
    "first": "first",
    "second": "second",
    "note": "item {}",
    "turn": "turn {}",
    "child": "child",
}
"""The line that each task with an effect leaves; counted from 1 in a loop."""


class Place:
    """A folder with a bundle, a database and the file that tasks write to."""

    def __init__(self, folder: Path, durability: str = "full") -> None:
        files = [("killed.yaml", PLAYBOOK.encode()), ("child.yaml", CHILD.encode())]
        compiled = compile_playbooks(files)
        assert compiled.program is not None
        folder.mkdir()
        self.folder = folder
        self.durability = durability
        self.bundle = folder / "killed.nbc"
        self.bundle.write_bytes(compiled.data)
        self.database = folder / "executions.db"
        self.effects = folder / "effects.txt"
        self.effects.touch()

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "noetlvm", *arguments, "--db", str(self.database), "--json"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=self.folder)

    def run(self) -> subprocess.Popen[str]:
        return self.start("run", str(self.bundle), "--set", f"file={self.effects}", "--durability", self.durability)

    def resume(self) -> subprocess.Popen[str]:
        return self.start("resume", "--durability", self.durability)

    def lines(self) -> Counter[str]:
        return Counter(self.effects.read_text().splitlines())

    def seq(self) -> int:
        """Return how many events are durable."""
        try:
            reader = SqliteReader(self.database)
        except StoreError:  # it is not there yet, or about to be made
            return 0
        try:
            return sum(row.seq for row in reader.executions())
        finally:
            reader.close()


def reported(place: Place) -> set[str]:
    """Return the lines of those tasks whose end is in the log."""
    reader = SqliteReader(place.database)
    try:
        found = set()
        for row in reader.executions():
            for recorded in reader.events(row.execution_id):
                event = recorded.event
                if event.name == "task.done" and event.label in LINES:
                    found.add(LINES[event.label].format(int(event.iteration or 0) + 1))
        return found
    finally:
        reader.close()


def wait_while(holds: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while holds():
        assert time.monotonic() < give_up, "the execution does not get on"
        time.sleep(0.002)  # between two looks


def kill_when(place: Place, process: subprocess.Popen[str], seq: int, delay: float) -> bool:
    """Kill a process once this many events are durable, or a little later; return whether it had ended by itself."""
    wait_while(lambda: place.seq() < seq and process.poll() is None)
    time.sleep(delay)  # any moment must do
    if process.poll() is not None:
        return True
    kill_with_its_tools(process)
    return False


def kill_with_its_tools(process: subprocess.Popen[str]) -> None:
    """Kill a process as a power cut does: a tool that lived on would write its line at any later time."""
    process.send_signal(signal.SIGSTOP)
    tools = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    for tool in tools:
        with contextlib.suppress(psutil.NoSuchProcess):
            tool.kill()
    process.wait(PATIENCE_SECONDS)
    wait_while(lambda: any(map(is_alive, tools)))


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def fault_free(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = Place(tmp_path_factory.mktemp("whole") / "place")
    ending = ended(place.run())
    assert ending["status"] == "success"
    assert set(place.lines().values()) == {1}
    return ending


@pytest.mark.parametrize(
    "seed", [*range(FEW_SEEDS), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(FEW_SEEDS, SEEDS))]
)
def test_a_killed_execution_ends_as_one_that_was_not(seed: int, tmp_path: Path, fault_free: dict[str, Any]) -> None:
    chance, kills, executions = random.Random(seed), 0, 0
    while kills < KILLS:
        executions += 1
        place = Place(tmp_path / f"execution_{executions}", DURABILITIES[seed % len(DURABILITIES)])
        kills += run_and_kill(place, chance, KILLS - kills)
        # Not what it printed: it may have been killed between its last event and that, with nothing left to resume.
        ending = ended(place.start("show"))
        assert (ending["status"], ending["ctx"]) == (fault_free["status"], fault_free["ctx"])
        check_log(place)


def run_and_kill(place: Place, chance: random.Random, kills_max: int) -> int:
    """Run an execution to its end in spite of so many kills at most, and return how many there were."""
    done: dict[str, int] = {}
    process, kills = place.run(), 0
    while kills < kills_max:
        has_ended = kill_when(place, process, place.seq() + chance.randint(1, 8), chance.uniform(0, 0.03))
        if has_ended:
            break
        kills += 1
        lines = place.lines()
        for line in reported(place):
            assert done.setdefault(line, lines[line]) == lines[line], f"`{line}` was reported, and ran again"
        process = place.resume() if place.seq() else place.run()
    process.communicate(timeout=PATIENCE_SECONDS)
    lines = place.lines()
    assert {line: lines[line] for line in done} == done
    return kills


def check_log(place: Place) -> None:
    """Each token fired once, each run was routed once, each thread ended once; in the child as well."""
    reader = SqliteReader(place.database)
    try:
        rows = reader.executions()
        assert [row.path for row in rows] == ["child", "killed"]
        for row in rows:
            assert folded(reader, row.execution_id).status == row.status == "success"
            check_events([recorded.event for recorded in reader.events(row.execution_id)])
            assert replay(row.execution_id, db=str(place.database), as_json_object=True) == 0
    finally:
        reader.close()


def check_events(events: list[Event]) -> None:
    for once in (
        [event.data["token"] for event in events if event.name == "step.scheduled" and "token" in event.data],
        [event.run for event in events if event.name == "next.evaluated"],
        [event.name for event in events if event.name in ("workflow.finished", "playbook.processed")],
    ):
        assert once
        assert len(once) == len(set(once))
    iterations = [(event.run, event.iteration) for event in events if event.name == "loop.iteration.done"]
    assert len(iterations) == len(set(iterations))


def test_ctrl_c_stops_in_good_order_and_resume_goes_on(tmp_path: Path, fault_free: dict[str, Any]) -> None:
    place = Place(tmp_path / "place")
    process = place.run()
    wait_while(lambda: place.seq() < 12 and process.poll() is None)
    process.send_signal(signal.SIGINT)
    left = ended(process)
    assert (process.returncode, left["status"]) == (130, "running")
    assert set(place.lines()) == reported(place)  # whatever began was let end, and was reported
    ending = ended(place.resume())
    assert (ending["status"], ending["ctx"]) == (fault_free["status"], fault_free["ctx"])
    assert set(place.lines().values()) == {1}


def test_two_processes_cannot_run_one_database(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    first = place.run()
    wait_while(lambda: not place.seq() and first.poll() is None)
    first.send_signal(signal.SIGSTOP)
    second = place.resume()
    second.communicate(timeout=PATIENCE_SECONDS)
    first.send_signal(signal.SIGCONT)
    assert second.returncode == 2
    assert ended(first)["status"] == "success"
