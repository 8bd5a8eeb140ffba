"""Runs an implementation on the cases of a stage through the protocol, and checks its answers.

conformance/README.md documents the protocol. Our own implementation answers in this process; another one is a command.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from noetlvm.bridge import CompilationError, read_yaml, run_compiler
from noetlvm.command_line.process import CommandError
from noetlvm.conformance.suite import Case, Spot, as_listed, unmet
from noetlvm.conformance.verdict import complaints
from noetlvm.testing.__main__ import main

ANSWER_SECONDS = 60
"""Seconds after which a case counts as unanswered."""


class Reply(NamedTuple):
    """The exit code and output of a command."""

    exit_code: int
    out: str

    def data(self) -> Any:
        """Return standard output as JSON. Raises ValueError."""
        return json.loads(self.out)


class Implementation(Protocol):
    """Answers the questions of the protocol."""

    def call(self, *words: str) -> Reply:
        """Run a command: the name of a stage, its options and files."""


class OwnImplementation:
    """Our own implementation, in this process."""

    def call(self, *words: str) -> Reply:
        if words[0] not in ("run", "replay"):
            return Reply(*run_compiler(words))
        out = StringIO()
        with redirect_stdout(out), redirect_stderr(StringIO()):
            code = main(words)
        return Reply(code, out.getvalue())


class CommandImplementation:
    """A program in any language: the protocol's arguments are appended to its command."""

    def __init__(self, command: str) -> None:
        self._command = shlex.split(command)
        if not self._command:
            raise CommandError("--command is empty: give the program that answers, such as 'python -m myimpl'")

    def call(self, *words: str) -> Reply:
        try:
            done = subprocess.run(
                [*self._command, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=ANSWER_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Reply(-1, "")
        except OSError as error:
            raise CommandError(f"`{self._command[0]}` cannot be run: {error.strerror}") from None
        return Reply(done.returncode, done.stdout.decode("utf-8", errors="replace"))


def judge(case: Case, implementation: Implementation, folder: Path) -> list[str]:
    """Return what is wrong with an implementation's answer to a case. `folder` is for temporary files."""
    try:
        return list(_JUDGES[case.stage](case, implementation, folder))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as problem:
        return [f"the answer is not what the protocol describes: {type(problem).__name__}: {problem}"]


def _lint(case: Case, implementation: Implementation, _folder: Path) -> Iterator[str]:
    reply = implementation.call("lint", "--format", "json", str(case.path))
    expected = case.spots("findings")
    found = as_listed({Spot.of(finding) for finding in reply.data()}, expected)
    absent, is_exact = set(case.expect.get("absent", ())), case.expect.get("exact", False)
    judged = {spot for spot in found if spot.severity == "error" or spot.what in absent or is_exact}
    yield from _different("findings", expected, (judged | found) & (judged | expected))
    yield from unmet(case.expect["findings"], reply.data())
    if reply.exit_code != case.expect["exit"]:
        yield f"the exit code is {reply.exit_code}, not {case.expect['exit']}"


def _parse(case: Case, implementation: Implementation, _folder: Path) -> Iterator[str]:
    reply = implementation.call("parse", "--format", "json", str(case.path))
    answer, listed = reply.data(), case.spots("problems")
    yield from _different("problems", listed, as_listed({Spot.of(problem) for problem in answer["problems"]}, listed))
    for key in {"ok", "playbook"} & set(case.expect):
        if answer[key] != case.expect[key]:
            yield f"`{key}` is {answer[key]!r}"
    if reply.exit_code != int(not case.expect["ok"]):
        yield f"the exit code is {reply.exit_code}"


def _canon(case: Case, implementation: Implementation, _folder: Path) -> Iterator[str]:
    expected = case.path.with_suffix(".canon.yml")
    try:
        printed = implementation.call("canon", str(case.path)).out
        if read_yaml("canon", printed.encode()) != read_yaml("expected", expected.read_bytes()):
            yield "the canonical form differs"
        if implementation.call("canon", str(expected)).out != expected.read_text(encoding="utf-8"):
            yield "the canonical form of canonical text differs"
    except CompilationError as error:
        yield f"what it prints is not YAML: {error}"


def _compile(case: Case, implementation: Implementation, _folder: Path) -> Iterator[str]:
    printed = implementation.call("compile", str(case.path), "--emit", "asm").out
    if without_version(printed) != case.path.with_suffix(".asm").read_text(encoding="utf-8"):
        yield "the program differs"


def without_version(assembly: str) -> str:
    """Return a program's text without the version of the instruction set, which no case depends on."""
    first, _, rest = assembly.partition("\n")
    return rest.lstrip("\n") if first.startswith(".isa ") else assembly


def _verify(case: Case, implementation: Implementation, folder: Path) -> Iterator[str]:
    bundle = folder / f"{case.id}.nbc"
    made = implementation.call("asm", str(case.path), "--unverified", "-o", str(bundle))
    if made.exit_code != 0 or not bundle.is_file():
        yield "the assembly cannot be assembled"
        return
    bundle.write_bytes(_mutated(bundle.read_bytes(), str(case.expect.get("mutation", ""))))
    (answer,) = implementation.call("verify", "--json", str(bundle)).data()
    code = (answer.get("error") or {}).get("code")
    if code != case.expect["code"]:
        yield f"the code is {code}, not {case.expect['code']}"


def _mutated(data: bytes, mutation: str) -> bytes:
    match mutation.split():
        case ["cut", count]:
            return data[: -int(count)]
        case ["append", digits]:
            return data + bytes.fromhex(digits)
        case ["set", offset, digits]:
            return data[: int(offset)] + bytes.fromhex(digits) + data[int(offset) + len(digits) // 2 :]
    return data


def _run(case: Case, implementation: Implementation, _folder: Path) -> Iterator[str]:
    files = [str(path) for path in (case.path, *case.companions)]
    reply = implementation.call("run", *files, "--given", str(case.path.with_suffix(".expect.json")))
    answer = reply.data()
    yield from complaints(case.expect, answer)
    if reply.exit_code != int(answer["status"] != "success"):
        yield f"the exit code is {reply.exit_code}"


def _replay(case: Case, implementation: Implementation, _folder: Path) -> Iterator[str]:
    state = implementation.call("replay", str(case.path)).data()
    for key, value in case.expect["state"].items():
        if state.get(key) != value:
            yield f"`{key}` is {state.get(key)!r}, not {value!r}"
    if surplus := set(state) - set(case.expect["state"]):
        yield f"the state has more: {sorted(surplus)}"


_GRAPH_ROWS = {"dead_arcs": ("step", "arc", "reason"), "findings": ("kind", "step")}
_GRAPH_NAMES = ("reachable", "unreachable")


def _graph(case: Case, implementation: Implementation, _folder: Path) -> Iterator[str]:
    answer = implementation.call("graph", "--format", "json", str(case.path)).data()
    for field, expected in case.expect.items():
        if field == "requirement":
            continue
        found: Any = answer[field]
        if field in _GRAPH_ROWS:
            found, expected = (_rows(rows, _GRAPH_ROWS[field]) for rows in (found, expected))
        elif field in _GRAPH_NAMES:
            found, expected = sorted(found), sorted(expected)
        if found != expected:
            yield f"`{field}` is {found!r}, not {expected!r}"
    if not all(finding["witness"] for finding in answer["findings"]):
        yield "a finding has no witness"


def _rows(rows: list[dict[str, Any]], fields: tuple[str, ...]) -> list[tuple[str, ...]]:
    return sorted(tuple(str(row[field]) for field in fields) for row in rows)


def _migrate(case: Case, implementation: Implementation, folder: Path) -> Iterator[str]:
    report = implementation.call("migrate", "--report", "json", str(case.path)).data()["files"][0]
    if report["dialect"] != case.expect["dialect"]:
        yield f"the dialect is {report['dialect']}, not {case.expect['dialect']}"
    missing = set(case.expect["codes"]) - {change["code"] for change in report["changes"]}
    if missing:
        yield f"not reported: {', '.join(sorted(missing))}"
    if case.expect.get("broken"):
        return
    migrated = folder / f"{case.id}.yaml"
    migrated.write_text(implementation.call("migrate", str(case.path)).out, encoding="utf-8")
    findings = implementation.call("lint", "--format", "json", str(migrated)).data()
    errors = [finding for finding in findings if finding["severity"] == "error"]
    if errors:
        yield f"the result has errors: {errors[0]['message']}"
    elif not case.expect.get("compile_only"):
        given = str(case.path.with_suffix(".expect.json"))
        yield from _migrated_run(case, implementation.call("run", str(migrated), "--given", given).data())


def _migrated_run(case: Case, answer: dict[str, Any]) -> Iterator[str]:
    """Check the run of a migrated playbook; steps that migration added do not count."""
    known = set(case.expect["steps"])
    scheduled = (event["data"].get("step") for event in answer["events"] if event["name"] == "step.scheduled")
    steps = [step for step in scheduled if step in known]
    calls = [f"{call['step']}/{call['task']}" for call in answer["calls"]]
    ctx = {key: answer["ctx"].get(key) for key in case.expect.get("ctx", {})}
    found = {"steps": steps, "status": answer["status"], "ctx": ctx, "calls": calls}
    for key in ("steps", "status", "ctx", "calls"):
        if key in case.expect and found[key] != case.expect[key]:
            yield f"`{key}` is {found[key]!r}, not {case.expect[key]!r}"


def _different(what: str, expected: set[Spot], found: set[Spot]) -> Iterator[str]:
    if missing := sorted(expected - found):
        yield f"{what} are missing: {', '.join(map(_spot_text, missing))}"
    if surplus := sorted(found - expected):
        yield f"{what} are not expected: {', '.join(map(_spot_text, surplus))}"


def _spot_text(spot: Spot) -> str:
    return f"{spot.severity} {spot.what} at {spot.line}:{spot.column}"


_JUDGES: dict[str, Callable[[Case, Implementation, Path], Iterator[str]]] = {
    "parse": _parse,
    "lint": _lint,
    "canon": _canon,
    "compile": _compile,
    "verify": _verify,
    "run": _run,
    "replay": _replay,
    "graph": _graph,
    "migrate": _migrate,
}
"""How each stage runs a case on an implementation, and how its answers are checked."""
