"""`kind: nats` against a server of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

import nats
import pytest

from noetlvm.tools.call import Outcome
from noetlvm.tools.nats_client import flushed
from tests.servers import nats_server
from tests.waiting import until

Run = Callable[..., Outcome]
USER, PASSWORD = "me", "p4ssw0rd"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with nats_server(tmp_path_factory.mktemp("nats"), "--user", USER, "--pass", PASSWORD) as address:
        asyncio.run(asyncio.wait_for(set_up(address), 120))
        yield address


async def set_up(url: str) -> None:
    client = await nats.connect(url, user=USER, password=PASSWORD)
    jetstream = client.jetstream()
    await jetstream.create_key_value(bucket="sessions")
    await jetstream.create_object_store(bucket="reports")
    await jetstream.add_stream(name="events", subjects=["events.>"])
    await client.close()


Op = Callable[..., Outcome]


@pytest.fixture
def op(run: Run, url: str) -> Op:
    entry = {"nats_url": url, "nats_user": USER, "nats_password": PASSWORD}
    return lambda operation, **inputs: run("nats", {"operation": operation, **inputs}, {"timeout": 20}, entry)


@pytest.mark.parametrize("value", [{"user": 42}, [1, "a"], "plain text", "", 3, True, "007x"])
def test_a_value_is_put_and_got(op: Op, value: Any) -> None:
    put = op("kv_put", bucket="sessions", key="k1", value=value)["result"]
    got = op("kv_get", bucket="sessions", key="k1")["result"]
    assert got == {"status": "success", "bucket": "sessions", "key": "k1", "value": value, "revision": put["revision"]}


def test_a_key_that_does_not_exist_is_not_found(op: Op) -> None:
    assert op("kv_get", bucket="sessions", key="none")["result"]["status"] == "not_found"
    op("kv_put", bucket="sessions", key="gone", data="x")
    op("kv_delete", bucket="sessions", key="gone")
    assert op("kv_get", bucket="sessions", key="gone")["result"]["status"] == "not_found"
    op("kv_put", bucket="sessions", key="gone", data="x")
    op("kv_purge", bucket="sessions", key="gone")
    assert op("kv_get", bucket="sessions", key="gone")["result"]["value"] is None


@pytest.mark.parametrize(("operation", "store"), [("kv_put", "kv"), ("kv_get", "kv"), ("object_get", "object")])
def test_a_bucket_that_does_not_exist_is_named(op: Op, operation: str, store: str) -> None:
    problem = op(operation, bucket="none", key="k", data="x")["error"]
    assert (problem["kind"], problem["retryable"]) == ("nats", False)
    assert problem["message"].startswith(f"the server has no {store} bucket `none`; create it")


def test_keys_are_listed_by_pattern(op: Op) -> None:
    for key in ("list.a", "list.b", "other"):
        op("kv_put", bucket="sessions", key=key, data=1)
    assert op("kv_keys", bucket="sessions", pattern="list.*")["result"]["keys"] == ["list.a", "list.b"]
    assert "other" in op("kv_keys", bucket="sessions")["result"]["keys"]


def test_an_object_is_put_listed_got_and_deleted(op: Op) -> None:
    put = op("object_put", bucket="reports", key="day/1.json", data={"n": 1})["result"]
    assert (put["name"], put["size"]) == ("day/1.json", 7)
    assert op("object_get", bucket="reports", object="day/1.json")["result"]["data"] == '{"n":1}'
    assert op("object_info", bucket="reports", key="day/1.json")["result"]["digest"] == put["digest"]
    assert [item["name"] for item in op("object_list", bucket="reports")["result"]["objects"]] == ["day/1.json"]
    op("object_delete", bucket="reports", key="day/1.json")
    for operation in ("object_get", "object_info", "object_delete"):
        assert op(operation, bucket="reports", key="day/1.json")["result"]["status"] == "not_found"


def test_bytes_are_base64(op: Op) -> None:
    op("object_put", bucket="reports", key="image", data="/wA=", encoding="base64")
    assert op("object_get", bucket="reports", key="image", encoding="base64")["result"]["data"] == "/wA="
    assert op("object_get", bucket="reports", key="image")["result"]["data"] == "/wA="
    assert (
        "is not base64" in op("object_put", bucket="reports", key="x", data="!", encoding="base64")["error"]["message"]
    )


def test_a_message_is_stored_once_for_each_idempotency_key(op: Op) -> None:
    first = op("js_publish", subject="events.a", stream="events", data={"n": 1}, headers={"X-A": 1})["result"]
    again = op("js_publish", subject="events.a", data={"n": 2})["result"]
    assert (again["seq"], again["duplicate"]) == (first["seq"], True)
    for where in ({"seq": first["seq"]}, {"last": True}, {"subject": "events.a"}):
        got = op("js_get_msg", stream="events", **where)["result"]
        assert (got["data"], got["subject"], got["headers"]["X-A"]) == ({"n": 1}, "events.a", "1")
    assert op("js_get_msg", stream="events", seq=999)["result"]["status"] == "not_found"
    assert op("js_stream_info", stream="events")["result"]["state"]["messages"] == 1


def test_a_request_gets_the_reply_and_a_publish_reaches_a_subscriber(op: Op, url: str) -> None:
    async def answered() -> tuple[Outcome, list[bytes]]:
        client = await nats.connect(url, user=USER, password=PASSWORD)
        seen: list[bytes] = []

        async def reply(message: Any) -> None:
            seen.append(message.data)
            if message.reply:
                await message.respond(b'{"doubled": 4}')

        await client.subscribe("work", cb=reply)
        await client.flush()
        found = await asyncio.to_thread(op, "request", subject="work", data={"n": 2})
        await asyncio.to_thread(op, "publish", subject="work", message="hello")
        await until(lambda: len(seen) >= 2)
        await client.close()
        return found, seen

    outcome, seen = asyncio.run(answered())
    assert outcome["result"]["data"] == {"doubled": 4}
    assert seen == [b'{"n":2}', b"hello"]


def test_a_request_that_nobody_answers_is_retryable(op: Op) -> None:
    error = op("request", subject="nobody", data="x")["error"]
    assert (error["kind"], error["retryable"]) == ("nats", True)


@pytest.mark.parametrize(
    ("operation", "inputs"),
    [
        ("kv_get", {"bucket": "none", "key": "k"}),
        ("kv_put", {"bucket": "sessions", "key": "no spaces"}),
        ("object_get", {"bucket": "none", "key": "k"}),
        ("js_get_msg", {"stream": "none"}),
    ],
)
def test_what_the_server_refuses_is_an_error(op: Op, operation: str, inputs: dict[str, Any]) -> None:
    error = op(operation, **inputs)["error"]
    assert (error["kind"], error["retryable"]) == ("nats", False)


@pytest.mark.parametrize(
    ("operation", "inputs", "named"),
    [
        ("kv_get", {"bucket": "b"}, "`key`"),
        ("object_put", {"bucket": "b"}, "task's label"),
        ("publish", {}, "`subject`"),
    ],
)
def test_an_input_that_an_operation_needs_is_named(op: Op, operation: str, inputs: Any, named: str) -> None:
    assert named in op(operation, **inputs)["error"]["message"]


def test_a_wrong_password_will_be_wrong_next_time(run: Run, url: str) -> None:
    entry = {"url": url, "user": USER, "password": "wrong"}
    error = run("nats", {"operation": "publish", "subject": "a"}, None, entry)["error"]
    assert (error["kind"], error["retryable"]) == ("connection", False)
    assert "wrong" not in error["message"]


def test_no_server_is_retryable(run: Run) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        where = f"nats://127.0.0.1:{held.getsockname()[1]}"
        error = run("nats", {"operation": "publish", "subject": "a", "url": where})["error"]
    assert (error["kind"], error["retryable"]) == ("connection", True)


def test_an_entry_may_be_a_url_with_a_password(run: Run, url: str) -> None:
    entry = url.replace("://", f"://{USER}:{PASSWORD}@")
    assert run("nats", {"operation": "kv_keys", "bucket": "sessions"}, None, entry)["status"] == "ok"


def test_flushed_ends_after_the_server_has_read_what_was_published() -> None:
    """The client's own `flush` sends its ping before the message."""
    verbs: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"max_payload": 1024}\r\n')
        while line := await reader.readline():
            verbs.append(line.split()[0])
            if verbs[-1] == b"PUB":
                await reader.readline()
            elif verbs[-1] == b"PING":
                writer.write(b"PONG\r\n")
        writer.close()

    async def go() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        client = await nats.connect(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await client.publish("subject", b"message")
        await flushed(client)
        assert verbs.index(b"PUB") < len(verbs) - 1
        assert verbs[-1] == b"PING"
        await client.close()
        server.close()

    asyncio.run(asyncio.wait_for(go(), 120))
