"""A typed client of the service, sync and async. The command line uses it too.

    from noetlvm.client import Client

    with Client("http://127.0.0.1:8080", token) as client:
        client.register(Path("etl.yaml").read_bytes())
        ending = client.wait(client.start("etl/daily", payload={"day": "2024-05-01"}))

`AsyncClient` has the same methods as coroutines.
"""

from __future__ import annotations

from noetlvm.client.calls import ServiceError
from noetlvm.client.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client", "ServiceError"]
