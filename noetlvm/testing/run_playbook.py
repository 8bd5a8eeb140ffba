"""The entry point: one function that runs a playbook in a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import Any, cast

from noetlvm.bridge import compile_texts
from noetlvm.bytecode.codec.container import MAGIC
from noetlvm.bytecode.program import KeychainEntry
from noetlvm.keychain.shapes import secret_texts
from noetlvm.machine.loaded import Bundle, LoadedProgram, load_program
from noetlvm.rounds.credentials import Credentials, KnownSecrets, Resolve, UnresolvedError
from noetlvm.store.interface import Action
from noetlvm.testing.result import RunResult
from noetlvm.testing.script import Script, ScriptError, Scripts
from noetlvm.testing.simulation import Simulation

EXECUTION_ID = "test"
CONTROLS = ("pause", "resume", "cancel")


def run_playbook(
    playbook: str | bytes | PathLike[str] | LoadedProgram,
    scripts: Scripts | None = None,
    *,
    payload: dict[str, Any] | None = None,
    ctx: dict[str, Any] | None = None,
    schedule: int | None = None,
    keychain: Mapping[str, Any] | None = None,
    controls: Iterable[tuple[float, str]] = (),
    others: Iterable[str | PathLike[str]] = (),
    execution_id: str = EXECUTION_ID,
) -> RunResult:
    """Run a playbook to its end, with what its tools answer taken from a script.

    `playbook` is YAML text, a bundle, the path of a file with either, or a program; `others` are playbooks that it runs
    as children. `schedule` is a seed that orders what happens at the same moment, and what arrives together; without
    one, things happen in the order in which they came up. `keychain` holds the credentials, `ctx` is what it begins
    with. `controls` are pairs of a time and `pause`, `resume` or `cancel`. Raises ScriptError for a tool that the
    script forgot, CompilationError for a playbook with errors, EndlessError for one that does not end, and
    NotTheFoldError if the machine's state ever differs from its log.
    """
    requested = [(time, _action(action)) for time, action in controls]
    bundle = Bundle("bundle", b"", _program(playbook, others))
    simulation = Simulation(Script(scripts or {}), resolver_of(lambda: keychain or {}), schedule)
    return _finished(simulation.run(bundle, payload or {}, execution_id, ctx or {}, requested))


def _finished(run: Coroutine[Any, Any, RunResult]) -> RunResult:
    """Run a coroutine to its end, also where the caller is one itself: then in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, run).result()


def _action(text: str) -> Action:
    if text not in CONTROLS:
        raise ScriptError(f"`{text}` is not a control; there are {', '.join(CONTROLS)}")
    return cast("Action", text)


def _program(
    playbook: str | bytes | PathLike[str] | LoadedProgram, others: Iterable[str | PathLike[str]]
) -> LoadedProgram:
    if isinstance(playbook, LoadedProgram):
        return playbook
    if isinstance(playbook, PathLike):
        data = Path(playbook).read_bytes()
        playbook = data if data.startswith(MAGIC) else data.decode()
    if isinstance(playbook, str):
        playbook = compile_texts([playbook, *map(_text, others)])
    return load_program(playbook)


def _text(playbook: str | PathLike[str]) -> str:
    return playbook if isinstance(playbook, str) else Path(playbook).read_text(encoding="utf-8")


def resolver_of(keychain: Callable[[], Mapping[str, Any]]) -> Resolve:
    """Return what resolves the entries of a test's keychain, each time as it is then."""
    known = KnownSecrets()

    def resolve(declared: tuple[KeychainEntry, ...]) -> Credentials:
        given = keychain() if declared else {}
        missing = [one.name for one in declared if one.name not in given]
        if missing:
            raise UnresolvedError(f"the keychain entry `{missing[0]}` is not in the test's keychain")
        entries = {one.name: given[one.name] for one in declared}
        return Credentials(entries, secret_texts(entries), known)

    return resolve
