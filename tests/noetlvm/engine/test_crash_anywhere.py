"""The power goes at any commit, before it or after it: what is resumed ends as what was never interrupted."""

from __future__ import annotations

import gc
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from noetlvm.rounds.active import Ending
from noetlvm.store.interface import Append
from noetlvm.store.memory import MemoryStore
from noetlvm.tools.call import Outcome, ToolCall, error, ok
from tests.noetlvm.engine.runs import Session
from tests.waiting import turns

CHILD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: child, path: child }
workload: { n: 0 }
workflow:
  - step: start
    tool:
      - one: { kind: shell, command: ["{{ workload.n | string }}"] }
      - two:
          kind: shell
          command: ["{{ _prev }}"]
          spec:
            policy:
              rules:
                - when: "{{ _attempt < workload.n }}"
                  then: { do: retry, attempts: 10, delay: 100 }
                - else:
                    then: { do: continue }
"""

CHILDREN_WITH_TIMEOUTS = """
- step: start
  loop: { in: [1, 4], iterator: n, spec: { mode: parallel, policy: { reducers: { kinds: append } } } }
  tool:
    - call:
        kind: playbook
        path: child
        workload: { n: "{{ iter.n }}" }
        spec:
          timeout: 150
          policy:
            rules:
              - when: "{{ outcome.status == 'error' and _attempt < 2 }}"
                then: { do: retry, attempts: 3, delay: 5 }
              - else:
                  then: { do: continue, set_ctx: { kinds: "{{ outcome.error.kind | default(outcome.status) }}" } }
"""

LOOPS_IN_LOOPS = """
- step: start
  loop:
    in: [1, 2, 3]
    iterator: a
    spec: { mode: parallel, policy: { reducers: { sum: sum, seen: append } } }
    loop:
      in: "{{ range(iter.a) }}"
      iterator: b
  tool:
    - first: { kind: shell, command: ["{{ (iter.parent.a * 10 + iter.b) | string }}"] }
    - until:
        when: "{{ iter.rounds == 2 }}"
        do:
          - again:
              kind: shell
              command: ["{{ _prev }}"]
              spec:
                policy:
                  rules:
                    - when: "{{ outcome.status == 'error' }}"
                      then: { do: retry, attempts: 3, delay: 1 }
                    - else:
                        then:
                          do: continue
                          set_iter: { rounds: "{{ iter.rounds | default(0) + 1 }}" }
                          set_ctx: { sum: "{{ (ctx.sum | default(0)) + 1 }}", seen: "{{ outcome.result }}" }
  next:
    spec: { mode: inclusive }
    arcs:
      - { step: left, when: "{{ event.name == 'loop.done' }}", args: { of: "{{ event.result }}" } }
      - { step: right, when: "{{ event.name == 'loop.done' }}" }
- step: left
  tool: { kind: shell, command: ["{{ args.of | string }}"] }
- step: right
  spec:
    policy:
      admit:
        rules:
          - { when: "{{ left is defined }}", then: { allow: true } }
          - else: { then: { allow: false } }
  tool: { kind: shell, command: ["{{ left }}"] }
"""


LABELS_AS_NAMES = """
- step: start
  loop: { in: [1, 2], iterator: a, spec: { mode: parallel, policy: { reducers: { seen: append } } } }
  tool:
    - first: { kind: shell, command: ["{{ iter.a | string }}"] }
    - second: { kind: shell, command: ["{{ first }}", b] }
    - third: { kind: shell, command: ["{{ first }}", "{{ second }}"] }
    - last:
        kind: shell
        command: ["{{ third }}", "{{ first }}"]
        spec: { policy: { rules: [{ else: { then: { do: continue, set_ctx: { seen: "{{ second }}" } } } }] } }
"""


class PowerCut(BaseException):
    """Nothing catches it."""


class FailingStore(MemoryStore):
    """Loses its power at a commit, when that is written or just before."""

    def __init__(self, at: int, *, is_written: bool) -> None:
        super().__init__()
        self.left = at
        self.is_written = is_written

    def write(self, batch: Sequence[Append], bundles: Mapping[str, bytes] = {}) -> set[str]:
        self.left -= 1
        if self.left == 0 and not self.is_written:
            raise PowerCut
        conflicts = super().write(batch, bundles)
        if self.left == 0:
            raise PowerCut
        return conflicts

    def repaired(self) -> MemoryStore:
        """Return a store that opens what this one had written."""
        made = MemoryStore()
        made.__dict__.update(self.__dict__)
        return made


def played(seed: int) -> Any:
    chance = random.Random(seed)

    async def play(call: ToolCall) -> Outcome:
        for _ in range(chance.randint(0, 4)):
            await turns()
        if call.label == "again" and call.attempt == 1 and call.key.endswith("#2"):
            return error("net", "the first attempt never works", retryable=True)
        return ok("-".join(call.inputs["command"]))

    return play


def reported(ending: Ending) -> tuple[Any, ...]:
    return ending.status, ending.ctx, ending.result, ending.failures


@pytest.mark.filterwarnings("error")  # no coroutine is left that nothing awaits
@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize(
    "texts",
    [(LOOPS_IN_LOOPS,), (CHILDREN_WITH_TIMEOUTS, CHILD), (LABELS_AS_NAMES,)],
    ids=["loops", "children", "labels"],
)
def test_it_ends_as_without_a_crash(texts: tuple[str, ...], is_written: bool) -> None:
    whole = Session(played(0)).run(*texts)
    assert whole.status == "success"
    crashes = 0
    while True:
        session = Session(played(crashes), FailingStore(crashes + 1, is_written=is_written))
        try:
            session.run(*texts)
            break
        except PowerCut:
            crashes += 1
        assert isinstance(session.store, FailingStore)
        session.store = session.store.repaired()
        left = [row for row in session.store.unfinished() if not row.parent]
        if left:
            assert reported(session.resume(left[0].execution_id)) == reported(whole)
            assert not session.store.unfinished()
    gc.collect()
    assert crashes > 5
