"""The way in: one function that runs a playbook in a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from noetlvm.bytecode.program import Credential
from noetlvm.engine.credentials import Credentials, Resolve, Unresolved
from noetlvm.keychain.shapes import secret_texts
from noetlvm.machine.control import Request
from noetlvm.machine.loaded import LoadedProgram, load_program
from noetlvm.testing.result import RunResult
from noetlvm.testing.script import Script, ScriptError, Scripts
from noetlvm.testing.simulation import Clock, Simulated, Surroundings

EXECUTION_ID = "test"
CONTROLS = ("pause", "resume", "cancel")


def run_playbook(
    playbook: str | bytes | LoadedProgram,
    scripts: Scripts | None = None,
    *,
    payload: dict[str, Any] | None = None,
    ctx: dict[str, Any] | None = None,
    schedule: int | None = None,
    keychain: Mapping[str, Any] | None = None,
    controls: Iterable[tuple[float, str]] = (),
    others: Iterable[str] = (),
) -> RunResult:
    """Run a playbook to its end, with what its tools answer taken from a script.

    `playbook` is YAML text, a bundle or a program; `others` are playbooks that it runs as children. `schedule` is a
    seed that orders what happens at the same moment; without one, things happen in the order in which they came up.
    `keychain` holds the credentials, `ctx` is what it begins with. `controls` are pairs of a time and `pause`, `resume`
    or `cancel`. Raises ScriptError for a tool that the script forgot, and NotTheFold if the machine's state ever
    differs from its log.
    """
    program = _program(playbook, others)
    clock = Clock(schedule)
    around = Surroundings(program, clock, Script(scripts or {}), _resolver(keychain or {}), {}, {})
    request = Request(EXECUTION_ID, "bundle", payload or {}, ctx=ctx or {})
    execution = around.executions[EXECUTION_ID] = Simulated(around, program.main, request)
    clock.at(0, execution.start)
    for time, action in controls:
        if action not in CONTROLS:
            raise ScriptError(f"`{action}` is no control; there are {', '.join(CONTROLS)}")
        clock.at(time, partial(execution.ask, action))
    clock.run()
    return execution.result()


def _program(playbook: str | bytes | LoadedProgram, others: Iterable[str]) -> LoadedProgram:
    if isinstance(playbook, LoadedProgram):
        return playbook
    if isinstance(playbook, str):
        from noetlvm.bridge import compile_texts

        playbook = compile_texts([playbook, *others])
    return load_program(playbook)


def _resolver(keychain: Mapping[str, Any]) -> Resolve:
    def resolve(declared: tuple[Credential, ...]) -> Credentials:
        missing = [one.name for one in declared if one.name not in keychain]
        if missing:
            raise Unresolved(f"the keychain entry `{missing[0]}` is not in the test's keychain")
        entries = {one.name: keychain[one.name] for one in declared}
        return Credentials(entries, secret_texts(entries))

    return resolve
