"""The load under which processes are killed: small executions with effects that can be counted, some at once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import yaml

from noetlvm.bridge import compile_texts
from noetlvm.client import Client, ServiceError
from noetlvm.conformance.cluster import Cluster
from noetlvm.sim.log_model import Violation
from noetlvm.store.interface import StoreReader
from tests.waiting import wait_until
from tests.whole.chaos.histories import Ending, Tracked, check

Answer = TypeVar("Answer")

PATIENCE_SECONDS = 180.0
AWAY = (0, 500, 503)
"""Answers of a server that is gone, or whose store is."""

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: load, path: chaos/load }
workload: { file: "", items: [1, 2, 3, 4] }
workflow:
  - step: start
    tool:
      - first: { kind: shell, command: [sh, -c, 'echo first >> "$0"; sleep 0.05; echo 7', "{{ workload.file }}"] }
      - note:
          kind: noop
          spec:
            policy:
              rules:
                - else: { then: { do: continue, set_ctx: { seen: "{{ _prev.stdout | trim }}" } } }
    next: { arcs: [{ step: many }] }
  - step: many
    loop:
      in: "{{ workload['items'] }}"
      iterator: one
      spec: { mode: parallel, max_in_flight: 3, policy: { reducers: { total: sum } } }
    tool:
      - item:
          kind: shell
          command: [sh, -c, 'echo "item $1" >> "$0"; sleep 0.02', "{{ workload.file }}", "{{ iter.index | string }}"]
      - count:
          kind: noop
          spec: { policy: { rules: [{ else: { then: { do: continue, set_ctx: { total: "{{ iter.one }}" } } } }] } }
    next: { spec: { mode: inclusive }, arcs: [{ step: below }, { step: end }] }
  - step: below
    tool:
      - run:
          kind: playbook
          path: chaos/child
          workload: { file: "{{ workload.file }}" }
          spec:
            policy:
              rules:
                - else: { then: { do: continue, set_ctx: { answer: "{{ outcome.result.ctx.answer }}" } } }
  - step: end
    tool:
      - last:
          kind: shell
          command: [sh, -c, 'echo last >> "$0"; echo "$1"', "{{ workload.file }}", "{{ ctx.total | string }}"]
"""
CHILD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: child, path: chaos/child }
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
DOCUMENTS = {document["metadata"]["path"]: document for document in map(yaml.safe_load, (PLAYBOOK, CHILD))}
"""The playbooks as data, by path."""


class Load:
    """Runs executions until it is stopped, through whichever server answers."""

    def __init__(
        self, cluster: Cluster, folder: Path, seed: int, *, at_once: int = 4, servers: Sequence[int] | None = None
    ) -> None:
        """`servers` are the numbers of those it talks to; by default all."""
        self.tracked: list[Tracked] = []
        self._clients = [cluster.client(number) for number in servers or range(len(cluster.servers))]
        self._folder = folder
        self._chance = random.Random(seed)
        self._at_once = at_once
        self._count = 0
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failure: BaseException | None = None
        bundle = compile_texts([PLAYBOOK, CHILD])
        self._bundle = self.persistently(lambda client: client.register(bundle))["bundle"]

    def run_one(self) -> Ending:
        """Run one execution to its end, and return how it ended."""
        started = self._start()
        wait_until(lambda: self._has_ended(started), PATIENCE_SECONDS)
        return self.ending(started.id)

    def begin(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Start no more, and wait until what was started has ended."""
        self._stops.set()
        self._thread.join(PATIENCE_SECONDS)
        if self._failure is not None:
            raise self._failure
        assert not self._thread.is_alive(), "executions do not end"

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def ending(self, id: str) -> Ending:
        found = self.persistently(lambda client: client.ending(id))
        result = found["result"]
        stdout = result.get("stdout") if isinstance(result, dict) else result
        return Ending(found["status"], found["ctx"], stdout)

    def violations(self, reader: StoreReader, expected: Ending) -> list[Violation]:
        """Check everything that was started, now that it has ended."""
        return check(reader, DOCUMENTS, self.tracked, expected, self.ending)

    def _run(self) -> None:
        running: list[Tracked] = []
        try:
            while running or not self._stops.is_set():
                while len(running) < self._at_once and not self._stops.is_set():
                    running.append(self._start())
                running = [one for one in running if not self._has_ended(one)]
                time.sleep(0.02)  # between two looks
        except BaseException as error:
            self._failure = error

    def _start(self) -> Tracked:
        self._count += 1
        key = f"load-{self._count}"
        file = self._folder / f"{key}.effects"
        id = self.persistently(lambda client: client.start(bundle=self._bundle, payload={"file": str(file)}, key=key))
        self.tracked.append(Tracked(id, key, file, []))
        return self.tracked[-1]

    def _has_ended(self, one: Tracked) -> bool:
        row = self.persistently(lambda client: client.execution(one.id))
        if self._chance.random() < 0.2:
            events = self.persistently(lambda client: list(client.events(one.id)))
            one.seen[:] = [(event["seq"], event["event_id"]) for event in events]
        return row["ended"] is not None

    def persistently(self, call: Callable[[Client], Answer]) -> Answer:
        """Call one server after the other until one answers."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return call(self._chance.choice(self._clients))
            except ServiceError as error:
                if error.status not in AWAY or time.monotonic() > give_up:
                    raise
                time.sleep(0.05)  # between two tries
