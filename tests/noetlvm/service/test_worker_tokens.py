"""A worker is its token (S70): what it may serve, and whose leases, results and bundles it sees."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.websockets import WebSocketDisconnect

from noetlvm.bridge import compile_texts
from noetlvm.data.encoding import decode, encode
from noetlvm.machine.loaded import Bundle
from noetlvm.protocol.messages import lease_form
from noetlvm.results.interface import MemoryResults
from noetlvm.rounds.credentials import no_credentials
from noetlvm.service.driver import Driver, ServerPorts
from noetlvm.service.tokens import TokenError, create_token
from noetlvm.service.worker_exchange import exchange_messages
from noetlvm.store.memory import MemoryStore
from tests.noetlvm.service.conftest import Service
from tests.noetlvm.service.test_store_failures import CHILD, QueuedSocket

HELLO = {"worker": "w", "pools": ["default"], "slots": 1}


def token_of(service: Service, *pools: str) -> dict[str, str]:
    made = create_token(service.driver.store, ["worker"], 1.0, pools)
    return {"Authorization": f"Bearer {made.token}"}


@contextmanager
def connected(service: Service, headers: dict[str, str], **hello: Any) -> Iterator[Any]:
    with service.http.websocket_connect("/api/v1/worker", headers=headers) as socket:
        socket.send_bytes(encode(HELLO | hello))
        yield socket


def refusal(socket: Any) -> tuple[int, str]:
    with pytest.raises(WebSocketDisconnect) as ended:
        socket.receive_bytes()
    return ended.value.code, ended.value.reason


@pytest.mark.parametrize("served", [(), ("other",)])
def test_a_worker_may_not_serve_a_pool_that_its_token_does_not_name(service: Service, served: tuple[str, ...]) -> None:
    with connected(service, token_of(service, *served), pools=["vault"]) as socket:
        code, reason = refusal(socket)
    assert code == 4401
    assert "does not serve the pool vault" in reason
    assert service.driver.workers.hub.workers == {}


def test_a_token_with_pools_serves_them_and_not_the_default_pool(service: Service) -> None:
    headers = token_of(service, "vault")
    with connected(service, headers) as socket:
        assert refusal(socket)[0] == 4401
    with connected(service, headers, pools=["vault"]) as socket:
        socket.send_bytes(encode({"beat": 1, "held": []}))
        assert decode(socket.receive_bytes())["beat"] == 1


def test_a_name_that_a_worker_with_another_token_has_is_refused(service: Service) -> None:
    first = token_of(service)
    with connected(service, first) as socket:
        socket.send_bytes(encode({"beat": 1, "held": []}))
        socket.receive_bytes()
        with connected(service, token_of(service)) as other:
            assert refusal(other) == (4401, "a worker with another token has this name")
        with connected(service, first) as again:  # its own connection may be half open
            again.send_bytes(encode({"beat": 1, "held": []}))
            assert decode(again.receive_bytes())["beat"] == 1


def test_a_worker_reads_no_bundle_of_a_command_that_another_token_holds(service: Service) -> None:
    first, other = token_of(service), token_of(service)
    bundle = Bundle.of(compile_texts([CHILD]))
    service.driver.store.put_bundle(bundle.id, bundle.data)
    with connected(service, first) as socket:
        service.http.post("/api/v1/executions", json={"bundle": bundle.id}, headers=service.as_("run"))
        assert decode(socket.receive_bytes())["commands"]
        read = f"/api/v1/bundles/{bundle.id}?worker=w"
        assert service.http.get(read, headers=other).status_code == 404
        assert service.http.get(read, headers=first).content == bundle.data


def test_a_worker_of_another_token_renews_no_lease_at_another_server() -> None:
    async def run() -> None:
        store = MemoryStore()
        drivers = [Driver(store, MemoryResults(), no_credentials, ServerPorts(poll_seconds=0.02)) for _ in range(2)]
        tasks = [asyncio.create_task(driver.run()) for driver in drivers]
        sockets = [QueuedSocket(), QueuedSocket()]
        exchanges = [
            asyncio.create_task(exchange_messages(driver, socket, token))
            for driver, socket, token in zip(drivers, sockets, ("nvt_aa_x", "nvt_bb_x"), strict=True)
        ]
        sockets[0].to_server.put_nowait(HELLO)
        id = await drivers[0].start(Bundle.of(compile_texts([CHILD])), {}, {})
        work = (await sockets[0].to_worker.get())["commands"][0]["work"]
        lease = lease_form((id, work["run"], work["iteration"]), work["lease"])
        sockets[1].to_server.put_nowait(HELLO | {"slots": 1})
        sockets[1].to_server.put_nowait({"beat": 1, "held": [lease]})
        assert (await sockets[1].to_worker.get())["stop"] == [lease]
        sockets[0].to_server.put_nowait({"beat": 1, "held": [lease]})
        answer = await sockets[0].to_worker.get()
        assert (answer["beat"], answer["stop"]) == (1, [])
        for socket in sockets:
            socket.to_server.put_nowait(None)
        await asyncio.gather(*exchanges)
        for driver in drivers:
            driver.stop()
        await asyncio.gather(*tasks)

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_token_as_earlier_versions_stored_it_serves_the_default_pool(service: Service) -> None:
    headers = token_of(service)
    assert [token.scopes for token in service.driver.store.tokens()][-1] == ("worker",)
    with connected(service, headers) as socket:
        socket.send_bytes(encode({"beat": 1, "held": []}))
        assert decode(socket.receive_bytes())["beat"] == 1


@pytest.mark.parametrize(("scopes", "pool"), [(["read"], "vault"), (["worker"], "a,b"), (["worker"], "")])
def test_a_pool_that_no_token_can_have_is_refused(scopes: list[str], pool: str) -> None:
    with pytest.raises(TokenError, match="pool"):
        create_token(MemoryStore(), scopes, 1.0, [pool])


def test_the_api_makes_tokens_with_pools(service: Service) -> None:
    wanted = {"scopes": ["worker"], "pools": ["vault"]}
    made = service.http.post("/api/v1/tokens", json=wanted, headers=service.as_("admin"))
    assert made.status_code == 201
    headers = {"Authorization": f"Bearer {made.json()['token']}"}
    with connected(service, headers, pools=["vault"]) as socket:
        socket.send_bytes(encode({"beat": 1, "held": []}))
        assert decode(socket.receive_bytes())["beat"] == 1
    refused = service.http.post("/api/v1/tokens", json=wanted | {"scopes": ["read"]}, headers=service.as_("admin"))
    assert refused.status_code == 422
