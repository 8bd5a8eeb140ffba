"""What the service offers beyond running: over a server on SQLite, and over two servers on PostgreSQL."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from noetlvm.client import Client, ServiceError
from noetlvm.conformance.cluster import Cluster
from noetlvm.conformance.cluster import running as processes
from noetlvm.data.encoding import decode
from tests.canary import find_canaries
from tests.servers import new_database
from tests.waiting import wait_until
from tests.whole.service.processes import cluster, run_to_end


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("service")
    if request.param == "sqlite":
        with cluster(f"sqlite:{folder / 'service.db'}", folder, workers=1) as made:
            yield made
        return
    store = new_database(request.getfixturevalue("postgres_server"))
    with cluster(store, folder, servers=2, workers=2) as made:
        yield made


FLAKY = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: flaky, path: tests/flaky }
workload: { file: "" }
workflow:
  - step: start
    tool:
      - once: { kind: shell, command: [sh, -c, 'echo once >> "$0.log"', "{{ workload.file }}"] }
    next: { arcs: [{ step: fragile }] }
  - step: fragile
    tool:
      - needs_file: { kind: shell, command: [cat, "{{ workload.file }}"] }
"""


def test_a_failed_execution_is_retried_over_the_service(running: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "file"
    client = running.client()
    first = run_to_end(client, [FLAKY], {"file": str(file)})
    assert first["status"] == "failed"
    file.write_text("here", encoding="utf-8")
    words = ("retry", first["execution_id"], "--server", running.servers[-1][1], "--json")
    second = json.loads(running.command(*words))
    assert (second["status"], second["result"]["stdout"]) == ("success", "here")
    assert Path(f"{file}.log").read_text(encoding="utf-8") == "once\n"
    replayed = json.loads(running.command("replay", second["execution_id"], *words[2:]))
    assert replayed["differences"] == []
    shown = running.command("result", second["execution_id"], *words[2:4])
    assert json.loads(shown) == second["result"]


def test_a_paused_execution_is_resumed_over_the_service(running: Cluster, tmp_path: Path) -> None:
    client = running.client()
    gate = tmp_path / "gate"
    bundle = client.register(WAITING)["bundle"]
    id = client.start(bundle=bundle, payload={"gate": str(gate)})
    server = ("--server", running.servers[0][1])
    running.command("pause", id, *server)
    wait_until(lambda: client.execution(id)["status"] == "paused")
    gate.touch()
    assert json.loads(running.command("resume", id, *server, "--json"))["status"] == "success"
    assert json.loads(running.command("resume", id, *server, "--json"))["status"] == "success"


PARENT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: parent, path: tests/parent }
workflow:
  - step: start
    loop: { in: [1, 2, 3], iterator: n, spec: { mode: parallel } }
    tool: [{ ask: { kind: playbook, path: tests/kid } }]
"""
KID = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: kid, path: tests/kid }
workflow:
  - step: start
    tool: [{ think: { kind: shell, command: ["true"] } }]
"""


def test_submit_shows_children_as_run_does(running: Cluster, tmp_path: Path) -> None:
    files = [tmp_path / "parent.yaml", tmp_path / "kid.yaml"]
    for file, text in zip(files, (PARENT, KID), strict=True):
        file.write_text(text, encoding="utf-8")

    def shown(*words: str) -> list[str]:
        """Return what is shown meanwhile, without times, in an order of its own: that of children is open."""
        command = [sys.executable, "-m", "noetlvm", *words, *map(str, files)]
        environment = os.environ | {"NOETLVM_TOKEN": running.token, "NOETLVM_DB": str(tmp_path / "run.db")}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200, check=True)
        return sorted(re.sub(r"[0-9.]+ *(ms|s)\b", "", line) for line in done.stderr.splitlines() if "kid" in line)

    expected = shown("run")
    assert len(expected) >= 3
    assert shown("submit", "--server", running.servers[-1].url) == expected


def test_a_token_is_created_and_revoked_while_servers_run(running: Cluster) -> None:
    store = ("--store", running.store, "--json")
    made = json.loads(running.command("token", "create", *store, "--scope", "read"))
    with Client(running.servers[0].url, made["token"]) as client:
        assert "executions" in client.executions(limit=1)
    running.command("token", "revoke", made["id"], *store)
    rows = [json.loads(line) for line in running.command("token", "list", *store).splitlines()]
    assert [row["revoked"] is not None for row in rows if row["id"] == made["id"]] == [True]


STORED = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: stored, path: tests/stored }
executor: { spec: { result: { store: { kind: files } } } }
workflow:
  - step: start
    tool: [{ large: { kind: python, code: "result = 'x' * 200_000" } }]
"""


def test_a_playbook_chooses_among_the_stores_that_the_server_offers(running: Cluster) -> None:
    client = running.client()
    if running.store.startswith("sqlite:"):
        ending = run_to_end(client, [STORED])
        assert ending["status"] == "success"
        assert decode(client.result(ending["result"]["key"])) == "x" * 200_000
    else:
        with pytest.raises(ServiceError, match=r"names files, and this server offers: postgres"):
            client.register(STORED)


WAITING = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: waiting, path: tests/waiting }
workload: { gate: "" }
workflow:
  - step: start
    tool:
      - wait_for_file:
          kind: shell
          command: [sh, -c, 'while ! test -e "$0"; do sleep 0.05; done', "{{ workload.gate }}"]
    next: { arcs: [{ step: end }] }
  - step: end
    tool: { kind: noop }
"""


CANARY = "canary-5c19be07d2aa4f6e"
KEYED = b"""\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: keyed, path: tests/keyed }
keychain: [{ name: token, kind: bearer_token }]
workflow:
  - step: start
    tool:
      - leak: { kind: shell, command: [sh, -c, 'echo "$0"; echo "$0" | base64', "{{ keychain.token }}"] }
      - large: { kind: python, args: { text: "{{ _prev.stdout }}" }, code: "result = text * 4000" }
    next: { arcs: [{ step: broken }] }
  - step: broken
    tool:
      - fails: { kind: shell, command: [sh, -c, 'echo "$0" >&2; exit 3', "{{ keychain.token }}"] }
"""


def test_no_secret_is_in_a_log_a_table_a_metric_a_trace_or_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", CANARY)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    options = ["--json", "--keychain", "env", "--log-level", "debug"]
    made = Cluster(f"sqlite:{tmp_path / 'service.db'}", tmp_path, server_options=options)
    with processes(made, servers=1, workers=1):
        client = made.client()
        ending = run_to_end(client, [KEYED])
        assert [failure.get("step") for failure in ending["failures"]] == ["broken"], ending
        address, headers = made.servers[0].url, {"Authorization": f"Bearer {made.token}"}
        paths = ("events/live", "events?limit=1000", "ending", "result", "state")
        pages = [
            httpx.get(f"{address}/api/v1/executions/{ending['execution_id']}/{path}", headers=headers) for path in paths
        ]
        pages.append(httpx.get(f"{address}/metrics", headers=headers))
    seen = b"\n".join(page.content for page in pages)
    assert b"task.done" in seen
    assert b"noetlvm_events_total" in seen
    assert not find_canaries(seen, CANARY)
    traces = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("*.err"))
    assert '"name": "call leak"' in traces
    assert not find_canaries(tmp_path, CANARY)
