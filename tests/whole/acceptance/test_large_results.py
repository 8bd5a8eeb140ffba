"""A result of 50 MB goes by reference, the log stays small, and a later step reads it back."""

from __future__ import annotations

from pathlib import Path

from noetlvm.data.encoding import encode
from noetlvm.limits import EVENT_BYTES_MAX
from noetlvm.store.sqlite import SqliteReader
from tests.commands import Command, noetlvm

__all__ = ["noetlvm"]

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: big, path: tests/big }
workflow:
  - step: start
    tool:
      - make: { kind: python, code: "result = 'x' * 50_000_000", spec: { memory_mb: 2048 } }
    next: { arcs: [{ step: use, when: "{{ event.name == 'step.done' }}", args: { big: "{{ event.result }}" } }] }
  - step: use
    tool:
      - size:
          kind: noop
          spec: { policy: { rules: [{ else: { then: { do: continue, set_ctx: { n: "{{ args.big | length }}" } } } }] } }
"""


def test_fifty_megabytes_go_by_reference_and_come_back(noetlvm: Command, tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_text(PLAYBOOK, encoding="utf-8")
    database = tmp_path / "runs.db"
    answer = noetlvm("run", str(tmp_path / "big.yaml"), "--db", str(database), "--json")
    assert (answer.data["status"], answer.data["ctx"]) == ("success", {"n": 50_000_000})
    reader = SqliteReader(database)
    events = [recorded.event for recorded in reader.events(answer.data["execution_id"])]
    reader.close()
    assert events
    assert max(len(encode(event.data)) for event in events) < EVENT_BYTES_MAX
