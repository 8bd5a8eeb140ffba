"""Real servers and workers as processes, to be run, killed and started again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from noetlvm.client import Client, ServiceError
from noetlvm.conformance.cluster import Cluster, running

PATIENCE_SECONDS = 120


@contextmanager
def cluster(
    store: str,
    folder: Path,
    *,
    servers: int = 1,
    workers: int = 2,
    wake: str | None = None,
    lease: int = 15,
    slots: int = 4,
) -> Iterator[Cluster]:
    """Start servers and workers, the workers spread over the servers."""
    options = ["--json", "--lease", str(lease), *(["--wake", wake] if wake else [])]
    made = Cluster(store, folder, server_options=options, worker_options=["--slots", str(slots)])
    with running(made, servers=servers, workers=workers):
        yield made


def run_to_end(client: Client, playbooks: Sequence[bytes], payload: dict[str, Any] | None = None) -> dict[str, Any]:
    """Register and run a playbook, however often the server is away meanwhile."""
    registered = [persistently(client.register, playbook) for playbook in playbooks]
    id = persistently(client.start, bundle=registered[0]["bundle"], payload=payload or {}, key=os.urandom(8).hex())
    return wait_for(client, id)


def wait_for(client: Client, id: str) -> dict[str, Any]:
    """Return how an execution ended."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up:
        if persistently(client.execution, id)["ended"] is not None:
            ending: dict[str, Any] = persistently(client.ending, id)
            return ending
        time.sleep(0.05)  # between two looks
    events = [event["name"] for event in persistently(lambda: list(client.events(id)))]
    raise AssertionError(f"{id} does not end; its last events are {events[-8:]}")


def persistently(call: Any, *arguments: Any, **options: Any) -> Any:
    """Call until the server answers."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return call(*arguments, **options)
        except ServiceError as error:
            if error.status not in (0, 503) or time.monotonic() > give_up:
                raise
            time.sleep(0.1)  # between two tries
