"""Requests between executions that several servers deliver: late, or twice."""

from __future__ import annotations

from noetlvm.bridge import compile_texts
from noetlvm.machine.loaded import Bundle
from noetlvm.machine.messages import Request
from noetlvm.results.memory import MemoryResults
from noetlvm.server.credentials import no_credentials
from noetlvm.server.identity import new_ids
from noetlvm.server.server import Server
from noetlvm.store.interface import ExecutionRequest
from noetlvm.store.memory import MemoryStore

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: one, path: tests/one }
workflow:
  - step: start
"""


class RepeatingStore(MemoryStore):
    """Delivers a request again that was answered before, as a shared database may."""

    again: tuple[ExecutionRequest, ...] = ()

    def requests(
        self, execution_id: str | None = None, *, after: int = 0, limit: int | None = None
    ) -> list[ExecutionRequest]:
        again, self.again = self.again, ()
        return [*super().requests(execution_id, after=after, limit=limit), *again]


def decided(server: Server) -> None:
    while server.has_inputs():
        server.decide_waiting()
        server.write()


def test_a_start_that_is_delivered_again_after_the_end_is_acknowledged() -> None:
    store = RepeatingStore()
    server = Server(store, MemoryResults(), resolve=no_credentials, now=lambda: 1.0, ids=new_ids, is_shared=True)
    bundle = Bundle.of(compile_texts([PLAYBOOK]))
    id = server.start(bundle, {})
    decided(server)
    ended = store.execution(id)
    assert ended is not None
    assert ended.status == "success"
    request = Request(id, bundle.id, {})
    store.again = (ExecutionRequest(id, "start", ["tests/one", list(request)], 7),)
    server.collect_requests()
    decided(server)
    assert store.execution(id) == ended
    assert server.active == {}
