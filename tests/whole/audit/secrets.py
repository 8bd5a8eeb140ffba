"""Runs that try to leave a secret behind, by every channel and in every form; then a search of all that they left.

`python -m tests.whole.audit.secrets [--share N]` makes every N-th run and prints a report as JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.whole.audit.cases import Data, noop, playbook, rule, step

SECRETS = {
    "letters": "cAnaryLettersQwErTyUiOp",
    "punctuation": "cA!n#a%r&y*(7)-_=+[]{}",
    "digits": "73910482650193847265",
    "cyrillic": "СекретКанарейкаЖёлтая",
    "pem": "-----BEGIN KEY-----\nMIIcAnaryBvQIBADANBgkqhkiG9w0\nq8X1mZ7\n-----END KEY-----",
    "uuid": "5f1c9a3e-77b2-4d08-9c6f-cAnary0a1b2c",
    "spaces": "correct horse cAnary staple battery",
    "quotes": 'it\'s "cAnary" \\ and `more`',
    "url": "postgresql://cAnary:pAss9word@db.internal:5432/x",
}

PYTHON = {
    "raw": "token",
    "reversed": "token[::-1]",
    "upper": "token.upper()",
    "lower": "token.lower()",
    "base64": "base64.b64encode(token.encode()).decode()",
    "base64 url-safe": "base64.urlsafe_b64encode(token.encode()).decode()",
    "base64 with a prefix": "base64.b64encode(b'user:' + token.encode()).decode()",
    "base64 twice": "base64.b64encode(base64.b64encode(token.encode())).decode()",
    "base32": "base64.b32encode(token.encode()).decode()",
    "hex": "token.encode().hex()",
    "hex upper": "token.encode().hex().upper()",
    "utf-16": "token.encode('utf-16-le').decode('latin-1')",
    "url": "urllib.parse.quote(token, safe='')",
    "url plus": "urllib.parse.quote_plus(token)",
    "json": "json.dumps(token)",
    "json in json": "json.dumps(json.dumps({'a': token}))",
    "halves": "[token[:len(token) // 2], token[len(token) // 2:]]",
    "key": "{token: 1}",
    "deep": "{'a': [{'b': (token,)}]}",
    "inside": "'x' * 1000 + token + 'y' * 1000",
    "large": "'x' * 100_000 + token",
    "many": "[token] * 2000",
    "bytes repr": "repr(token.encode())",
    "repr": "repr(token)",
    "format": "f'<{token}>'",
    "hex in base64": "base64.b64encode(token.encode().hex().encode()).decode()",
}
"""Expressions whose value a python task returns."""

PYTHON_STATEMENTS = {
    "printed": "print(token)",
    "printed as an error": "import sys; print(token, file=sys.stderr)",
    "printed reversed": "print(token[::-1])",
    "raised": "raise ValueError(token)",
    "raised after much": "raise KeyError('x' * 3980 + token)",
    "raised as a name": "raise type('E', (Exception,), {})(token)",
    "exit": "import sys; sys.exit(token)",
    "written in pieces": "import sys\nfor letter in token: sys.stdout.write(letter)",
    "a syntax error": "compile(token, 'x', 'exec')",
}

SHELL = {
    "stdout": 'printf %s "$TOKEN"',
    "stderr": 'printf %s "$TOKEN" >&2',
    "failing": 'echo "$TOKEN"; exit 3',
    "base64": 'printf %s "$TOKEN" | base64',
    "reversed": 'printf %s "$TOKEN" | rev',
    "od": 'printf %s "$TOKEN" | od -An -tx1 | tr -d " \\n"',
    "twice": 'echo "$TOKEN$TOKEN"',
    "long": 'yes "$TOKEN" | head -n 3000',
}


def channels() -> Iterator[tuple[str, Data, tuple[Data, ...]]]:
    """Yield a name, a playbook and the playbooks that it runs, for each channel."""
    args = {"token": "{{ keychain.token }}"}
    on = {"policy": {"rules": [{"else": {"then": {"do": "continue"}}}]}}
    head = "import base64, json, urllib.parse\n"
    for name, expression in PYTHON.items():
        task = {"t": {"kind": "python", "args": args, "code": f"{head}result = {expression}"}}
        write = noop("w", rule("continue", set_ctx={"seen": "{{ _prev }}"}))
        yield f"python {name}", _book(step("start", task, write)), ()
    for name, statement in PYTHON_STATEMENTS.items():
        task = {"t": {"kind": "python", "args": args, "code": statement, "spec": on}}
        yield f"python {name}", _book(step("start", task)), ()
    for name, script in SHELL.items():
        task = {"t": {"kind": "shell", "command": ["sh", "-c", script], "env": {"TOKEN": "{{ keychain.token }}"}}}
        yield f"shell {name}", _book(step("start", task)), ()
    yield from _templates()
    yield from _children()


def _templates() -> Iterator[tuple[str, Data, tuple[Data, ...]]]:
    value = "{{ keychain.token }}"
    echo = {"t": {"kind": "python", "args": {"v": value}, "code": "result = v"}}
    yield "set_ctx", _book(step("start", noop("w", rule("continue", set_ctx={"v": value})))), ()
    yield "set_ctx in text", _book(step("start", noop("w", rule("continue", set_ctx={"v": f"<{value}>"})))), ()
    yield (
        "set_ctx upper",
        _book(step("start", noop("w", rule("continue", set_ctx={"v": "{{ keychain.token | upper }}"})))),
        (),
    )
    loop = {"in": [1, 2], "iterator": "x"}
    yield "set_iter", _book(step("start", noop("w", rule("continue", set_iter={"v": value})), loop=loop)), ()
    arcs = [{"step": "end", "args": {"v": "{{ event.result }}"}}]
    yield "arc args", _book(step("start", echo, to=arcs), step("end", noop("t"))), ()
    yield "loop results", _book(step("start", echo, loop=loop)), ()
    yield (
        "loop items",
        _book(step("start", echo, to="end"), step("end", noop("t"), loop={"in": "{{ [start] }}", "iterator": "x"})),
        (),
    )
    yield "an undefined input", _book(step("start", noop("t", v="{{ keychain.token ~ workload.absent.x.y }}"))), ()
    yield (
        "a wrong input",
        _book(step("start", {"t": {"kind": "python", "args": {"v": value}, "code": "result = int(v)"}})),
        (),
    )
    yield (
        "a guard",
        _book(step("start", noop("t", rule("continue", "keychain.token.nothing.at[0] > 1"), rule("continue")))),
        (),
    )
    yield (
        "a file name",
        _book(
            step("start", {"t": {"kind": "duckdb", "command": "SELECT * FROM read_csv($f)", "params": {"f": value}}})
        ),
        (),
    )
    yield "a command", _book(step("start", {"t": {"kind": "shell", "command": [value]}})), ()
    yield "a URL", _book(step("start", {"t": {"kind": "http", "url": f"http://127.0.0.1:9/{value}"}})), ()
    yield (
        "a header",
        _book(step("start", {"t": {"kind": "http", "url": "http://127.0.0.1:9/", "headers": {"X": value}}})),
        (),
    )


def _children() -> Iterator[tuple[str, Data, tuple[Data, ...]]]:
    read = {"t": {"kind": "shell", "command": ["cat", "{{ workload.file }}"]}}
    child = playbook(step("start", read), path="audit/child", workload={"file": ""})
    call = {"c": {"kind": "playbook", "path": "audit/child", "workload": {"file": "{{ workload.file }}"}}}
    yield "a child that finds it", _book(step("start", call)), (child,)
    inner = playbook(
        step("start", {"t": {"kind": "python", "args": {"v": "{{ keychain.token }}"}, "code": "result = v"}}),
        path="audit/child",
        keychain=[{"name": "token", "kind": "secret_manager"}],
    )
    outer = playbook(step("start", {"c": {"kind": "playbook", "path": "audit/child"}}), workload={"file": ""})
    yield "a child's own, given back", outer, (inner,)
    yield (
        "a child by its workload",
        _book(step("start", {"c": call["c"] | {"workload": {"file": "{{ keychain.token }}"}}})),
        (child,),
    )
    retry = noop(
        "t", rule("retry", "outcome.status == 'error'", attempts=2), v="{{ keychain.token ~ workload.absent.x }}"
    )
    yield "a retried failure", _book(step("start", retry)), ()


def _book(*steps: Data) -> Data:
    return playbook(*steps, keychain=[{"name": "token", "kind": "secret_manager"}], workload={"file": ""})


def leave_behind(secret: str, book: Data, children: tuple[Data, ...], folder: Path) -> Path:
    """Run a playbook and look at it; return the folder with everything that it left."""
    (folder / "secrets.json").write_text(json.dumps({"token": secret}), encoding="utf-8")
    (folder / "found").write_text(secret, encoding="utf-8")
    files = []
    for number, made in enumerate((book, *children)):
        files.append(str(folder / f"{number}.yaml"))
        Path(files[-1]).write_text(json.dumps(made), encoding="utf-8")
    left = folder / "left"
    left.mkdir()
    options = ["--db", str(left / "run.db")]
    start = ["run", *files, "--keychain", f"file:{folder / 'secrets.json'}", "--set", f"file={folder / 'found'}"]
    for number, words in enumerate(([*start, "--json"], ["show"], ["events", "--json"], ["ctx"], ["list"])):
        done = subprocess.run([sys.executable, "-m", "noetlvm", *words, *options], capture_output=True, check=False)
        (left / f"{number}.out").write_bytes(done.stdout)
        (left / f"{number}.err").write_bytes(done.stderr)
    return left


def report(share: int, offset: int = 0) -> dict[str, Any]:
    """Make every `share`-th run."""
    from tests.canary import find_canaries

    wrong: dict[str, list[str]] = {}
    count = runs = 0
    for shape, secret in SECRETS.items():
        for channel, book, children in channels():
            count += 1
            if (count + offset) % share:
                continue
            runs += 1
            with tempfile.TemporaryDirectory() as name:
                hits = find_canaries(leave_behind(secret, book, children, Path(name)), secret)
            # The search for scattered letters knows ASCII only.
            found = [hit for hit in hits if hit.form != "split" or secret.isascii()]
            if found:
                wrong[f"{shape} by {channel}"] = [f"{hit.form} in {Path(hit.where).name}" for hit in found]
    return {"all": count, "runs": runs, "wrong": wrong}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=int, default=1)
    found = report(parser.parse_args().share)
    print(json.dumps(found, indent=1))
    sys.exit(1 if found["wrong"] else 0)
