"""The protocol of the conformance suite for its stages `run` and `replay`: `python -m noetlvm.testing`.

    python -m noetlvm.testing run CASE.yaml [CHILD.yml …] --given CASE.expect.json
    python -m noetlvm.testing replay CASE.jsonl
    python -m noetlvm.testing record CASE.yaml --given CASE.expect.json [--events 12]

`run` prints how the run went and `replay` the state that a log gives, as JSON; `record` prints a log for a new case.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from noetlvm.bridge import CompilationError
from noetlvm.command_line.process import CANNOT_RUN, FAILURE, SUCCESS
from noetlvm.machine.decide import invalid_playbook
from noetlvm.machine.decide import refused as refusal_events
from noetlvm.machine.messages import Request
from noetlvm.testing.log import fold_log, read_log, state_view, write_log
from noetlvm.testing.result import RunResult
from noetlvm.testing.run_playbook import EXECUTION_ID, run_playbook
from noetlvm.testing.script import ScriptError


def refused(problem: CompilationError) -> dict[str, Any]:
    """Return the answer for a playbook that does not compile: its log has the reason, and nothing of it runs."""
    events = refusal_events(Request("test", "", {}), "playbook_1", invalid_playbook("", problem.findings))
    return {"status": "refused", "events": [event._asdict() for event in events], "calls": []}


def run_given(
    texts: list[str], given: dict[str, Any], schedule: int | None = None, execution_id: str = EXECUTION_ID
) -> RunResult:
    """Run playbooks, the main one first, as a case specifies."""
    main, *others = texts
    return run_playbook(
        main,
        given.get("tools"),
        payload=given.get("payload"),
        ctx=given.get("ctx"),
        keychain=given.get("keychain"),
        controls=[(time, action) for time, action in given.get("controls", ())],
        schedule=schedule,
        others=others,
        execution_id=execution_id,
    )


def main(words: Sequence[str] | None = None) -> int:
    """Answer one question of the suite; by default the one of the command line."""
    arguments = _arguments(words)
    try:
        if arguments.stage == "replay":
            _print(state_view(fold_log(read_log(_text(arguments.files[0]).splitlines()))))
            return SUCCESS
        ran = run_given([_text(file) for file in arguments.files], _given(arguments.given))
    except CompilationError as problem:
        _print(refused(problem))
        return FAILURE
    except ScriptError as error:
        print(error, file=sys.stderr)
        return CANNOT_RUN
    if arguments.stage == "record":
        lines = list(write_log(ran.execution_id, ran.events, ran.times))
        print("\n".join(lines[: arguments.events]))
        return SUCCESS
    _print(ran.to_data())
    return SUCCESS if ran.status == "success" else FAILURE


def _arguments(words: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser("noetlvm.testing", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=("run", "replay", "record"))
    parser.add_argument("files", nargs="+", help="a playbook and its children, or a log")
    parser.add_argument("--given", help="a case's expectation: what it gives the run")
    parser.add_argument("--events", type=int, help="how many events of the log to print")
    return parser.parse_args(words)


def _given(file: str | None) -> dict[str, Any]:
    given: dict[str, Any] = json.loads(_text(file)).get("given", {}) if file else {}
    return given


def _text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8")


def _print(answer: Any) -> None:
    print(json.dumps(answer, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
