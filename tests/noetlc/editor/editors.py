"""Two editors for tests of the schema: a walk over it, and yaml-language-server where that is installed.

Both answer for a text with a cursor (`‸`): what is offered there, what is shown for the word there, what is wrong.
"""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any, Protocol

import jsonschema

from noetlc.schema import playbook_schema
from noetlc.syntax.nodes import plain
from noetlc.syntax.yaml_reader import read_document

CURSOR = "‸"
_MARK = "zz_cursor"
_SECONDS = 60


class Editor(Protocol):
    """Helps to write a playbook."""

    def offers(self, text: str) -> set[str]:
        """Return the keys or values that can be written at the cursor."""

    def shows(self, text: str) -> str:
        """Return the text that is shown for the key after the cursor."""

    def complaints(self, text: str) -> int:
        """Return how many mistakes are reported."""


# ---- the schema alone


class SchemaWalk:
    """Follows references, alternatives and conditions from the root to the cursor, as an editor does."""

    def __init__(self) -> None:
        self._schema = playbook_schema()
        self._validator = jsonschema.Draft202012Validator(self._schema)

    def offers(self, text: str) -> set[str]:
        data, path = _data_and_path(text)
        if path[-1] == _MARK:
            return {key for schema in self._at(data, path[:-1]) for key in schema.get("properties", {})}
        return {str(value) for schema in self._at(data, path) for value in _values(schema)}

    def shows(self, text: str) -> str:
        data, path = _data_and_path(text.replace(CURSOR, f"{_MARK}_of_"))
        key = path[-1].removeprefix(f"{_MARK}_of_")
        found = (schema["properties"][key] for schema in self._at(data, path[:-1]) if key in schema["properties"])
        return "\n".join(one["description"] for one in found if "description" in one)

    def complaints(self, text: str) -> int:
        root = read_document(text).root
        assert root is not None
        return len(list(self._validator.iter_errors(plain(root))))

    def _at(self, data: Any, path: list[Any]) -> list[dict[str, Any]]:
        """Return the schemas that apply to what stands at a path."""
        found = list(self._applying(self._schema, data))
        for step in path:
            below = [schema for one in found for schema in _below(one, step)]
            data = data[step]
            found = [schema for one in below for schema in self._applying(one, data)]
        return found

    def _applying(self, schema: dict[str, Any], data: Any) -> Iterator[dict[str, Any]]:
        yield {"properties": {}, **schema}
        if "$ref" in schema:
            yield from self._applying(self._schema["$defs"][schema["$ref"].rpartition("/")[2]], data)
        for word in ("allOf", "anyOf", "oneOf"):
            for one in schema.get(word, ()):
                yield from self._applying(one, data)
        if "then" in schema and self._validator.evolve(schema=schema["if"]).is_valid(data):
            yield from self._applying(schema["then"], data)


def _below(schema: dict[str, Any], step: Any) -> Iterator[dict[str, Any]]:
    if isinstance(step, int):
        yield from [schema["items"]] if "items" in schema else []
    elif step in schema.get("properties", {}):
        yield schema["properties"][step]
    elif isinstance(schema.get("additionalProperties"), dict):
        yield schema["additionalProperties"]


def _values(schema: dict[str, Any]) -> list[Any]:
    return [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else [])]


def _data_and_path(text: str) -> tuple[Any, list[Any]]:
    """Return the data of a text, and the path to its cursor: to a key, or to a value."""
    line = next((line for line in text.splitlines() if CURSOR in line), "")
    is_value = ": " in line.partition(CURSOR)[0]
    root = read_document(text.replace(CURSOR, _MARK if is_value else f"{_MARK}: x")).root
    assert root is not None
    data = plain(root)
    path = _path(data)
    assert path is not None
    return data, path


def _path(data: Any) -> list[Any] | None:
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for step, value in pairs:
        if (isinstance(step, str) and step.startswith(_MARK)) or value == _MARK:
            return [step]
        found = _path(value)
        if found is not None:
            return [step, *found]
    return None


# ---- yaml-language-server


class LanguageServer:
    """A running yaml-language-server, over standard input and output."""

    def __init__(self, process: subprocess.Popen[bytes], schema: Path) -> None:
        self._process = process
        self._head = f"# yaml-language-server: $schema={schema}\n"
        self._messages: Queue[dict[str, Any]] = Queue()
        self._last = 0
        threading.Thread(target=self._listen, daemon=True).start()
        self._request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self._send({"method": "initialized", "params": {}})

    def offers(self, text: str) -> set[str]:
        found = self._request("textDocument/completion", self._opened(text))
        items = found["items"] if isinstance(found, dict) else found
        return {item["label"] for item in items or ()}

    def shows(self, text: str) -> str:
        found = self._request("textDocument/hover", self._opened(text))
        return json.dumps(found, ensure_ascii=False) if found else ""

    def complaints(self, text: str) -> int:
        uri = self._opened(text)["textDocument"]["uri"]
        while True:
            message = self._messages.get(timeout=_SECONDS)
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
                return len(message["params"]["diagnostics"])

    def _opened(self, text: str) -> dict[str, Any]:
        before = self._head + text.partition(CURSOR)[0]
        self._last += 1
        uri = f"file:///playbook-{self._last}.yaml"
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": self._head + text.replace(CURSOR, "")}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        place = {"line": before.count("\n"), "character": len(before.rpartition("\n")[2])}
        return {"textDocument": {"uri": uri}, "position": place}

    def _request(self, method: str, params: dict[str, Any]) -> Any:
        self._last += 1
        number = self._last
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._messages.get(timeout=_SECONDS)
            if message.get("id") == number and "method" not in message:
                return message.get("result")
            if "id" in message and "method" in message:  # it wants settings: those it has will do
                items = message["params"].get("items", []) if isinstance(message.get("params"), dict) else []
                self._send({"id": message["id"], "result": [None for _ in items]})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self._process.stdin.flush()

    def _listen(self) -> None:
        out = self._process.stdout
        assert out is not None
        while line := out.readline():
            size = int(line.split(b":")[1])
            while out.readline().strip():
                """Another header."""
            self._messages.put(json.loads(out.read(size)))


@contextmanager
def language_server(program: str, folder: Path) -> Iterator[LanguageServer]:
    """Start the server for tests."""
    schema = folder / "playbook.json"
    schema.write_text(json.dumps(playbook_schema()), "utf-8")
    with subprocess.Popen([program, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield LanguageServer(process, schema)
        finally:
            process.kill()
