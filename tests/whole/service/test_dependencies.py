"""What a server depends on, as real processes: a database that goes and comes back, and a store of results on NATS."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import httpx

from noetlvm.conformance.cluster import Cluster, running
from noetlvm.conformance.databases import PostgresProcess
from noetlvm.data.encoding import decode
from noetlvm.results.nats_object import NatsObjectResults
from tests.servers import nats_server
from tests.waiting import wait_until
from tests.whole.service.processes import cluster, run_to_end, wait_for

GATED = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: gated, path: tests/gated }
workload: { gate: "" }
workflow:
  - step: start
    tool:
      - wait_for_file:
          kind: shell
          command:
            - sh
            - -c
            - 'echo began >> "$0.log"; while ! test -e "$0"; do sleep 0.05; done; touch "$0.end"'
            - "{{ workload.gate }}"
    next: { arcs: [{ step: end }] }
  - step: end
    tool: { kind: noop }
"""


def test_without_postgresql_a_server_is_not_ready_and_work_continues_when_it_is_back(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with (
        closing(PostgresProcess()) as postgres,
        cluster(postgres.address, tmp_path, servers=1, workers=1, lease=600) as made,
        made.client() as client,
    ):

        def status() -> int:
            return httpx.get(f"{made.servers[0].url}/readyz", timeout=30).status_code

        assert status() == 200
        id = client.start(bundle=client.register(GATED)["bundle"], payload={"gate": str(gate)})
        wait_until(Path(f"{gate}.log").exists)
        postgres.kill()
        wait_until(lambda: status() == 503)
        assert httpx.get(f"{made.servers[0].url}/healthz", timeout=30).status_code == 200
        gate.touch()
        wait_until(Path(f"{gate}.end").exists)  # its report comes while nothing can be written
        postgres.start()
        wait_until(lambda: status() == 200)
        assert wait_for(client, id)["status"] == "success"
    assert Path(f"{gate}.log").read_text(encoding="utf-8") == "began\n"


STORED = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: stored, path: tests/stored }
executor: { spec: { result: { store: { kind: nats_object, bucket: results } } } }
workflow:
  - step: start
    tool: [{ large: { kind: python, code: "result = 'x' * 200_000" } }]
"""


def test_a_playbook_that_chooses_nats_has_its_large_results_there(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats") as address:
        options = ["--json", "--results", f"{address}/results"]
        made = Cluster(f"sqlite:{tmp_path / 'service.db'}", tmp_path, server_options=options)
        with running(made, servers=1, workers=1), made.client() as client:
            ending = run_to_end(client, [STORED])
            assert ending["status"] == "success", ending
            key = ending["result"]["key"]
            assert decode(client.result(key)) == "x" * 200_000
        assert decode(NatsObjectResults(address, "results").get(key)) == "x" * 200_000
    assert not [file for file in (tmp_path / "service.db.results").rglob("*") if file.is_file()]
