"""`kind: http` against servers that mean harm: no response takes more memory than a few times the limit."""

from __future__ import annotations

import asyncio
import gzip
import socket
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import pytest

from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ToolCall
from noetlvm.tools.http_client import _decoded_body
from noetlvm.tools.http_connection import HttpResponse
from noetlvm.tools.runner import ToolRunner

Run = Callable[..., Outcome]
OK = b"HTTP/1.1 200 OK\r\n"
MIB = 1024 * 1024


@contextmanager
def answering(*pieces: bytes, repeat: bytes = b"") -> Iterator[str]:
    """Serve these bytes to every request, then `repeat` until nobody reads."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            for piece in pieces:
                connection.sendall(piece)
            while repeat:
                connection.sendall(repeat)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        listener.close()


def encoded(coding: str, body: bytes, content_type: str = "text/plain") -> bytes:
    head = f"Content-Encoding: {coding}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return OK + head.encode() + body


@cache
def bomb(layers: int, size: int = 400 * MIB) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    body = b"".join(packer.compress(bytes(MIB)) for _ in range(size // MIB)) + packer.flush()
    for _ in range(layers - 1):
        body = gzip.compress(body, 9)
    return body


def bare_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize("coding", ["gzip, gzip", "gzip,deflate,gzip", "gzip, identity, gzip"])
def test_more_than_one_content_coding_is_refused(run: Run, coding: str) -> None:
    with answering(encoded(coding, bomb(2, MIB))) as url:
        error = run("http", {"url": url})["error"]
    assert (error["kind"], error["retryable"]) == ("response", False)
    assert "content codings; at most one" in error["message"]


def test_content_codings_in_several_headers_count_together(run: Run) -> None:
    body = bomb(2, MIB)
    head = f"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    with answering(OK + head.encode() + body) as url:
        assert "2 content codings" in run("http", {"url": url})["error"]["message"]


def test_a_content_coding_that_was_not_accepted_is_refused(run: Run) -> None:
    with answering(encoded("br", b"\x0b\x02\x80abc\x03")) as url:
        assert "`br`; accepted are gzip, deflate" in run("http", {"url": url})["error"]["message"]


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b"plain", mtime=0)),
        ("X-GZIP", gzip.compress(b"plain", mtime=0)),
        ("gzip", gzip.compress(b"pl", mtime=0) + gzip.compress(b"", mtime=0) + gzip.compress(b"ain", mtime=0)),
        ("gzip", gzip.compress(b"plain", mtime=0) + bytes(8)),
        ("deflate", zlib.compress(b"plain")),
        ("deflate", bare_deflate(b"plain")),
        ("identity", b"plain"),
        ("", b"plain"),
    ],
)
def test_one_content_coding_is_decoded(run: Run, coding: str, body: bytes) -> None:
    with answering(encoded(coding, body)) as url:
        assert run("http", {"url": url})["result"]["data"] == "plain"


@pytest.mark.parametrize("rest", [1, 100, 257, MIB + 100])
def test_a_stream_whose_last_bytes_of_input_give_more_than_a_piece_is_decoded(run: Run, rest: int) -> None:
    with answering(encoded("deflate", bare_deflate(b"a" * (MIB + rest)))) as url:
        assert run("http", {"url": url})["result"]["data"] == "a" * (MIB + rest)


def test_the_time_to_decode_many_empty_members_is_linear() -> None:
    member = gzip.compress(b"", mtime=0)

    def seconds(count: int) -> float:
        response = HttpResponse(200, "", {"content-encoding": "gzip"}, member * count)
        began = time.process_time()
        assert asyncio.run(_decoded_body(response)) == b""
        return time.process_time() - began

    assert min(seconds(160_000) for _ in range(2)) < 8 * max(seconds(40_000) for _ in range(3))


def test_members_that_come_in_single_bytes_are_decoded(run: Run) -> None:
    members = encoded("gzip", gzip.compress(b"pl", mtime=0) + gzip.compress(b"ain", mtime=0))
    chunks = [b"1\r\n%c\r\n" % byte for byte in members.partition(b"\r\n\r\n")[2]]
    head = OK + b"Content-Type: text/plain\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    with answering(head, *chunks, b"0\r\n\r\n") as url:
        assert run("http", {"url": url})["result"]["data"] == "plain"


@pytest.mark.parametrize(
    ("coding", "body"), [("gzip", gzip.compress(b"plain" * 99, mtime=0)), ("deflate", zlib.compress(b"plain" * 99))]
)
@pytest.mark.parametrize("left_out", [1, 4, 12])
def test_a_body_that_is_cut_is_no_result(run: Run, coding: str, body: bytes, left_out: int) -> None:
    with answering(encoded(coding, body[:-left_out])) as url:
        error = run("http", {"url": url})["error"]
    assert (error["kind"], "in the middle" in error["message"]) == ("response", True)


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "undefined", "rot13", "nonsense"])
def test_a_charset_that_is_none_is_read_as_utf_8(run: Run, charset: str) -> None:
    with answering(encoded("", b"\\u0041-zzzz9" * 50_000, f"text/plain; charset={charset}")) as url:
        assert run("http", {"url": url})["result"]["data"] == "\\u0041-zzzz9" * 50_000


def test_a_body_that_is_not_in_its_coding_is_an_error(run: Run) -> None:
    with answering(encoded("gzip", b"not gzip at all")) as url:
        error = run("http", {"url": url})["error"]
    assert error["kind"] == "response"
    assert "Content-Encoding" in error["message"]


PEAK = """
    import asyncio, json, sys
    from noetlvm.tools.call import ToolCall
    from noetlvm.tools.runner import ToolRunner

    async def run(url):
        runner = ToolRunner()
        try:
            return await runner.run(ToolCall("http", {"url": url}, {"timeout": 60}, "key"))
        finally:
            await runner.close()

    def peak():  # `ru_maxrss` counts the process that started this one too
        return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

    import noetlvm.tools.http_client
    before = peak()
    outcome = asyncio.run(run(sys.argv[1]))
    taken = peak() - before
    print(json.dumps({"kib": taken, "error": outcome["error"]}))
"""


def peak_of(url: str) -> dict[str, Any]:
    """Run one request in a process of its own and return its error, and by how much memory grew."""
    import json

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PEAK), url], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def chunked(piece: bytes) -> bytes:
    return f"{len(piece):x}\r\n".encode() + piece + b"\r\n"


@pytest.mark.parametrize(
    "packed",  # when it is needed, not when tests are collected
    [
        pytest.param(lambda: encoded("gzip", bomb(1)), id="gzip bomb"),
        pytest.param(lambda: encoded("deflate", zlib.compress(bytes(400 * MIB), 9)), id="deflate bomb"),
        pytest.param(lambda: encoded("gzip", gzip.compress(b"[" + b"[]," * (21 * MIB) + b"0]", 6), "application/json"),
                     id="many small values"),
    ],
)  # fmt: skip
def test_a_bomb_takes_no_more_than_a_few_times_the_limit(packed: Callable[[], bytes]) -> None:
    with answering(packed()) as url:
        found = peak_of(url)
    assert found["error"]["kind"] == "output"
    assert found["kib"] * 1024 < 4 * TOOL_OUTPUT_BYTES_MAX


def test_short_chunks_take_no_more_memory_than_long_ones() -> None:
    head = OK + b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    with answering(head, chunked(b"xy") * MIB) as url:
        found = peak_of(url)
    assert found["error"]["kind"] == "connection"
    assert found["kib"] * 1024 < 10 * 2 * MIB


@pytest.mark.parametrize("length", [b"", b"Content-Length: 5\r\n"])
def test_an_endless_body_is_left_at_the_limit(length: bytes) -> None:
    head = OK + length + b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    with answering(head, repeat=chunked(b"x" * MIB)) as url:
        found = peak_of(url)
    assert found["error"]["kind"] in ("output", "connection")  # two lengths may also be refused
    assert found["kib"] * 1024 < 4 * TOOL_OUTPUT_BYTES_MAX


def test_the_event_loop_goes_on_while_a_bomb_is_decoded() -> None:
    async def longest_pause(url: str) -> float:
        runner = ToolRunner()
        task = asyncio.create_task(runner.run(ToolCall("http", {"url": url}, {"timeout": 60}, "key")))
        longest = 0.0
        while not task.done():
            before = time.thread_time()
            await asyncio.sleep(0.005)  # the other tasks of this event loop run
            longest = max(longest, time.thread_time() - before)
        await runner.close()
        assert (await task)["error"]["kind"] == "output"
        return longest

    body = bomb(1)
    at_once = time.thread_time()  # of this thread alone: a busy machine does not count
    zlib.decompressobj(wbits=31).decompress(body, TOOL_OUTPUT_BYTES_MAX)
    at_once = time.thread_time() - at_once
    with answering(encoded("gzip", body)) as url:
        asyncio.run(longest_pause(url))  # the first request imports the client
        assert min(asyncio.run(longest_pause(url)) for _ in range(3)) < at_once


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * (50 * MIB) + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 500_000 + b"\r\n",
        b"HTTP/1.1 " + b"2" * (5 * MIB) + b"\r\n\r\n",
        b"\x00\x01\x02 nonsense\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
        OK + b"Content-Length: 100\r\n\r\nshort",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
        b"",
    ],
    ids=["50 MB header", "500,000 headers", "endless status", "no HTTP", "bad chunks", "cut body", "negative length",
         "two lengths", "nothing"],
)  # fmt: skip
def test_a_broken_response_is_a_retryable_connection_error(run: Run, answer: bytes) -> None:
    with answering(answer) as url:
        error = run("http", {"url": url}, {"timeout": 30})["error"]
    assert (error["kind"], error["retryable"]) == ("connection", True)
    assert len(error["message"]) < 2_000


def test_interim_responses_without_end_are_left_at_the_time_limit(run: Run) -> None:
    with answering(repeat=b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100) as url:
        error = run("http", {"url": url}, {"timeout": 0.5})["error"]
    assert error["retryable"] is True


@pytest.mark.parametrize(
    "target",
    ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://h/", "data:text/plain,x", "javascript:1", "http://[::1"],
)
def test_a_redirect_leads_to_http_addresses_only(run: Run, target: str) -> None:
    head = f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n"
    with answering(head.encode()) as url:
        error = run("http", {"url": url}, {"follow_redirects": True})["error"]
    assert error["retryable"] is False


def test_redirects_end_after_twenty(run: Run) -> None:
    with answering(b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n") as url:
        assert "20 redirects" in run("http", {"url": url}, {"follow_redirects": True})["error"]["message"]


def test_header_bytes_that_are_no_text_are_replaced(run: Run) -> None:
    with answering(OK + b"X: \xff\xe9\r\nContent-Length: 2\r\n\r\nok") as url:
        outcome = run("http", {"url": url})
    assert outcome["result"]["headers"]["x"].encode()  # surrogates could not be encoded


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"[1" + b"0" * 5_000 + b"]", b'"\xff"'])
def test_json_that_python_cannot_read_is_a_response_error(run: Run, body: bytes) -> None:
    head = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with answering(OK + head.encode() + body) as url:
        assert run("http", {"url": url})["error"]["kind"] == "response"


def test_line_breaks_in_a_url_do_not_reach_the_request(run: Run) -> None:
    with answering(OK + b"Content-Length: 2\r\n\r\nok") as url:
        outcome = run("http", {"url": f"{url}a\r\nX-Injected: 1"})
    assert outcome["status"] == "error" or outcome["result"]["data"] == "ok"
