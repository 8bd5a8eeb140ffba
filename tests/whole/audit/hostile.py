"""Hostile playbooks through lint, graph, compile and, where one compiles, disassembly and a run.

`python -m tests.whole.audit.hostile` prints a report as JSON: how many inputs, which ended in a traceback or an
unknown exit code, and the peak of memory.
"""

from __future__ import annotations

import copy
import io
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

VALID: dict[str, Any] = {
    "apiVersion": "noetl.io/v2",
    "kind": "Playbook",
    "metadata": {"name": "hostile", "path": "audit/hostile"},
    "keychain": [{"name": "api", "kind": "environment"}],
    "executor": {"spec": {"entry_step": "start", "limits": {"max_step_runs": 50}}},
    "workload": {"n": 3, "items": [1, 2]},
    "workbook": {"tasks": {"shared": {"kind": "noop"}}},
    "workflow": [
        {
            "step": "start",
            "spec": {"policy": {"admit": {"rules": [{"when": "{{ true }}", "then": {"allow": True}}]}}},
            "loop": {
                "in": "{{ workload['items'] }}",
                "iterator": "x",
                "spec": {"mode": "parallel", "max_in_flight": 2},
            },
            "tool": [
                {"one": {"kind": "noop", "value": "{{ iter.x }}"}},
                {"choose": [{"when": "{{ true }}", "then": [{"inner": {"kind": "noop"}}]}]},
                {
                    "two": {
                        "kind": "noop",
                        "spec": {"policy": {"rules": [{"else": {"then": {"do": "continue", "set_iter": {"a": 1}}}}]}},
                    }
                },
            ],
            "next": {"spec": {"mode": "exclusive"}, "arcs": [{"step": "end", "when": "{{ true }}", "args": {"a": 1}}]},
        },
        {"step": "end", "tool": {"kind": "noop"}},
    ],
}

WRONG: tuple[Any, ...] = (None, [], {}, -1, 10**30, 1e308, True, "", "x" * 5_000, "{{", "{{ a }}", ["a", {"b": []}])
"""What stands where something else should."""

ESCAPES = (
    "''.__class__",
    "''.__class__.__mro__[1].__subclasses__()",
    "().__class__.__bases__[0]",
    "workload.__init__.__globals__",
    "workload['__class__']",
    "[].append.__self__",
    "range.__call__",
    "(1).__add__(1)",
    "''['__class__']",
    "'{0.__class__}'.format(1)",
    "'{0.__class__}' | format(1)",
    "'%(x)s' | format(x=workload.__class__)",
    "workload | attr('__class__')",
    "[1] | map(attribute='__class__') | list",
    "[1] | map('attr', '__class__') | list",
    "[{}] | sort(attribute='__class__')",
    "[1] | groupby('__class__')",
    "[1] | selectattr('__class__') | list",
    "cycler.__init__",
    "joiner.__init__",
    "namespace.__init__.__globals__",
    "lipsum.__globals__",
    "dict.__subclasses__()",
    "self.__dict__",
    "self._TemplateReference__context",
    "request.application",
    "config.items()",
    "url_for.__globals__",
    "get_flashed_messages.__globals__",
    "'' | attr(['__cl', 'ass__'] | join)",
    "'a'.join.__self__",
    "'a'.encode.__func__",
    "{}.get.__self__",
    "{}.update({'a': 1})",
    "[].append(1)",
    "[].extend([1])",
    "[].sort()",
    "[].clear()",
    "{}.pop('a')",
    "{}.setdefault('a', 1)",
    "workload.update(a=1)",
    "'a' * 10**10",
    "[0] * 10**10",
    "10 ** 10 ** 10",
    "range(10**12) | list",
    "range(10**12) | sum",
    "'x' | center(10**10)",
    "'x' | indent(10**10)",
    "'%1000000000d' | format(1)",
    "'%1000000000d' % 1",
    "'x' | wordwrap(0)",
    "1 // 0",
    "1 % 0",
    "1 / 0",
    "2 ** 100000 | string",
    "'a' | batch(10**10) | list",
    "caller()",
    "super()",
    "loop.index",
    "varargs",
    "kwargs",
    "__import__('os')",
    "eval('1')",
    "exec('1')",
    "open('/etc/passwd')",
    "getattr(1, 'a')",
)

BYTES: dict[str, bytes] = {
    "nothing": b"",
    "a scalar": b"x",
    "a list": b"[]",
    "a number": b"1",
    "NUL": b"\0",
    "BOM only": b"\xef\xbb\xbf",
    "UTF-16": "kind: Playbook".encode("utf-16"),
    "UTF-32": "kind: Playbook".encode("utf-32"),
    "latin-1": "kind: Playbook\nmetadata: {name: é}".encode("latin-1"),
    "lone surrogate": b"kind: \xed\xa0\x80",
    "overlong": b"kind: \xc0\xaf",
    "carriage returns": b"kind: Playbook\rworkflow: []\r",
    "bidi": "kind: Playbook # \u202e\nworkflow: []".encode(),
    "zero width": "ki\u200bnd: Playbook".encode(),
    "escape sequences": b"kind: \x1b[31mPlaybook",
    "deep flow lists": b"[" * 50_000,
    "deep flow maps": b"{" * 50_000,
    "deep block lists": b"- " * 50_000,
    "question marks": b"? " * 50_000,
    "anchors": b"&a " * 20_000 + b"x",
    "documents": b"---\n" * 20_000,
    "long key": b"k" * 1_000_000 + b": 1",
    "long scalar": b"kind: " + b"x" * 9_000_000,
    "tag": b"kind: !!python/object/apply:os.system [id]",
    "own tag": b"kind: !x Playbook",
    "binary": b"kind: !!binary aGVsbG8=",
    "set": b"kind: !!set {a, b}",
    "directive": b"%YAML 9.9\n---\nkind: Playbook",
    "self reference": b"kind: Playbook\na: &a {b: *a}",
    "merge with itself": b"kind: Playbook\na: &a {<<: *a}",
    "unknown alias": b"kind: *x",
    "two documents": b"kind: Playbook\n---\nkind: Playbook",
    "duplicate keys": b"kind: Playbook\n" * 5_000,
    "many keys": b"kind: Playbook\n" + b"".join(b"k%d: 1\n" % number for number in range(5_000)),
    "sexagesimal": b"kind: Playbook\nworkload: {a: 1:20:30}",
    "octal": b"kind: Playbook\nworkload: {a: 0o17, b: 017, c: 0x1F}",
    "infinity": b"kind: Playbook\nworkload: {a: .inf, b: -.inf, c: .nan}",
    "huge number": b"kind: Playbook\nworkload: {a: " + b"9" * 10_000 + b"}",
    "timestamp": b"kind: Playbook\nworkload: {a: 2001-12-14t21:59:43.10-05:00}",
    "complex key": b"kind: Playbook\n? [a, b]\n: c",
    "laughs": b"\n".join(
        [b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
        + [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 10)]
    ),
    "merge bomb": b"\n".join(
        [b"a0: &a0 {k: 1}"] + [b"a%d: &a%d {<<: [*a%d, *a%d]}" % (n, n, n - 1, n - 1) for n in range(1, 25)]
    ),
}


def inputs() -> Iterator[tuple[str, bytes]]:
    """Yield names and files."""
    yield from BYTES.items()
    for path in _paths(VALID):
        for number, value in enumerate(WRONG):
            if (hash_of(path) + number) % 4 == 0:
                yield f"{'.'.join(map(str, path))} is wrong {number}", _dump(_with(VALID, path, value))
    for number, expression in enumerate(ESCAPES):
        broken = copy.deepcopy(VALID)
        broken["workflow"][0]["tool"][0]["one"]["value"] = f"{{{{ {expression} }}}}"
        yield f"escape {number}", _dump(broken)
    text = _dump(VALID).decode()
    chance = random.Random(2026)
    for number in range(120):
        at = chance.randrange(len(text))
        insert = chance.choice(["", "{{", "}}", "[", "]", "{", "}", ":", "\t", "&a ", "*a ", "'", '"', "|\n", "%"])
        yield f"broken text {number}", (text[:at] + insert + text[at + chance.randrange(4) :]).encode()


def hash_of(path: tuple[Any, ...]) -> int:
    """Return a number that does not depend on the hash seed."""
    return sum(map(ord, repr(path)))


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _paths(item, (*path, key))


def _with(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    made = copy.deepcopy(document)
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return made


def _dump(document: Any) -> bytes:
    return json.dumps(document, indent=1).encode()


def _command(program: str, *arguments: str) -> tuple[int, str]:
    """Run a command in this process; return its exit code and what it printed as errors."""
    from importlib import import_module

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with patch.object(sys, "argv", [program, *arguments]), redirect_stdout(out), redirect_stderr(err):
        try:
            code = import_module(f"{program}.__main__").main()
        except SystemExit as end:
            code = int(end.code or 0)
    err.flush()
    err.seek(0)
    return code, err.read()


def try_input(data: bytes, folder: Path) -> list[str]:
    """Return what went wrong with one input."""
    file, bundle = folder / "input.yaml", folder / "input.nbc"
    file.write_bytes(data)
    bundle.unlink(missing_ok=True)
    commands = [
        ("noetlc", "lint", str(file), "--no-cache"),
        ("noetlc", "graph", str(file)),
        ("noetlc", "compile", str(file), "-o", str(bundle)),
        ("noetlc", "disasm", str(bundle)),
        ("noetlvm", "run", str(bundle), "--db", str(folder / "hostile.db"), "--json", "--quiet"),
    ]
    wrong = []
    for program, *arguments in commands:
        if str(bundle) in arguments[:2] and not bundle.exists():
            break
        try:
            code, err = _command(program, *arguments)
        except Exception as error:  # a traceback of any kind is what this looks for
            wrong.append(f"{program} {arguments[0]}: {error!r}")
            continue
        if code not in (0, 1, 2) or "Traceback" in err or "internal error" in err:
            wrong.append(f"{program} {arguments[0]}: exit {code}: {err[-300:]}")
    return wrong


def report() -> dict[str, Any]:
    """Try everything."""
    wrong: dict[str, list[str]] = {}
    count = 0
    with tempfile.TemporaryDirectory() as name, chdir(name):
        for title, data in inputs():
            count += 1
            found = try_input(data, Path(name))
            if found:
                wrong[title] = found
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = int(status.partition("VmHWM:")[2].split()[0]) // 1024  # `ru_maxrss` begins with the parent's
    return {"inputs": count, "wrong": wrong, "peak_mb": peak}


if __name__ == "__main__":
    print(json.dumps(report(), indent=1))
