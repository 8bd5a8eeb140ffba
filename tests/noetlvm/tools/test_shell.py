"""`kind: shell`."""

from __future__ import annotations

import ast
import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from noetlvm.limits import TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools import shell
from noetlvm.tools.call import Outcome, Resources, ToolCall
from tests.waiting import wait_until

Run = Callable[..., Outcome]


@pytest.mark.parametrize("run_loop", [asyncio.run, uvloop.run])
def test_a_command_may_end_before_its_input_is_written(run_loop: Callable[..., list[Outcome]]) -> None:
    """A worker runs on uvloop, which refuses to write to a process that has ended."""

    async def many() -> list[Outcome]:
        return [await shell.run(ToolCall("shell", {"command": "exit 3"}, {}, "key"), Resources()) for _ in range(20)]

    assert {outcome["error"]["message"] for outcome in run_loop(many())} == {"exit code 3"}


def test_a_list_is_run_as_it_is_and_a_text_by_sh(run: Run) -> None:
    assert run("shell", {"command": ["echo", "$HOME; x", 3]})["result"]["stdout"] == "$HOME; x 3\n"
    outcome = run("shell", {"command": "echo a | tr a b; echo c >&2"})
    assert outcome["result"] == {"stdout": "b\n", "stderr": "c\n", "exit_code": 0}


def test_env_cwd_and_stdin_are_given_and_nothing_else_of_ours(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "s3cret")
    inputs = {"command": "pwd; cat; echo $X$A_SECRET", "env": {"X": 1}, "cwd": str(tmp_path), "stdin": "in\n"}
    assert run("shell", inputs)["result"]["stdout"] == f"{tmp_path.resolve()}\nin\n1\n"


def test_arguments_are_utf_8_whatever_the_locale_is(tmp_path: Path) -> None:
    script = r"""
import asyncio, sys
from noetlvm.tools import shell
from noetlvm.tools.call import Resources, ToolCall

command = ["sh", "-c", 'printf "%s %s\n" "$0" "$CITY"; pwd', "\u00fc"]
inputs = {"command": command, "env": {"CITY": "K\u00f6ln"}, "cwd": sys.argv[1] + "/f\u00fcr"}
print(ascii(asyncio.run(shell.run(ToolCall("shell", inputs, {}, "key"), Resources()))))
"""
    folder = tmp_path / "f\u00fcr"
    folder.mkdir()
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    printed = subprocess.check_output([sys.executable, "-c", script, tmp_path], env=os.environ | plain, text=True)
    assert ast.literal_eval(printed)["result"]["stdout"] == f"\u00fc K\u00f6ln\n{folder.resolve()}\n"


def test_numbers_and_booleans_are_written_as_in_yaml_and_null_is_no_variable(run: Run) -> None:
    command = ["sh", "-c", 'echo "$0 $1 $A ${B-unset}"', 1, True]
    assert (
        run("shell", {"command": command, "env": {"A": False, "B": None}})["result"]["stdout"] == "1 true false unset\n"
    )


@pytest.mark.parametrize(
    ("inputs", "named"),
    [
        ({"command": ["echo", None]}, "`command[1]` must be text, a number or a boolean, not null"),
        ({"command": ["echo", {"a": 1}]}, "`command[1]`"),
        ({"command": "true", "env": {"A": [1]}}, "`env.A`"),
    ],
)
def test_what_is_no_argument_is_refused_by_name(run: Run, inputs: dict[str, Any], named: str) -> None:
    error = run("shell", inputs)["error"]
    assert error["kind"] == "input"
    assert named in error["message"]


def test_an_exit_code_other_than_0_is_an_error_with_its_output(run: Run) -> None:
    outcome = run("shell", {"command": "echo out; echo 'no such thing' >&2; exit 3"})
    assert outcome["error"]["kind"] == "shell"
    assert outcome["error"]["message"] == "exit code 3: no such thing"
    assert outcome["error"]["retryable"] is False
    assert outcome["result"] == {"stdout": "out\n", "stderr": "no such thing\n", "exit_code": 3}


@pytest.mark.parametrize("command", [["no-such-program"], [], ["a\0b"]])
def test_a_command_that_cannot_be_started_is_an_error(run: Run, command: list[str]) -> None:
    assert run("shell", {"command": command})["status"] == "error"


def test_a_command_need_not_read_its_input(run: Run) -> None:
    assert run("shell", {"command": ["true"], "stdin": "x" * 1_000_000})["status"] == "ok"


def test_output_past_the_limit_ends_the_command(run: Run) -> None:
    at = run("shell", {"command": f"head -c {TOOL_OUTPUT_BYTES_MAX} /dev/zero | tr '\\0' x"})
    assert len(at["result"]["stdout"]) == TOOL_OUTPUT_BYTES_MAX
    assert run("shell", {"command": "cat /dev/zero"})["error"]["kind"] == "output"


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(run: Run, tmp_path: Path) -> None:
    inputs: dict[str, Any] = {"command": "sleep 60 & echo $! > pid; wait", "cwd": str(tmp_path)}
    outcome = run("shell", inputs, {"timeout": 1})
    assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == ("timeout", True)
    assert_gone(int((tmp_path / "pid").read_text()))


def test_a_cancelled_command_is_ended(cancel: Callable[..., None], tmp_path: Path) -> None:
    file = tmp_path / "pid"
    has_begun = lambda: file.exists() and file.read_text().endswith("\n")  # noqa: E731
    cancel("shell", {"command": "sleep 60 & echo $! > pid; wait", "cwd": str(tmp_path)}, has_begun)
    assert_gone(int(file.read_text()))


@pytest.mark.parametrize("delay", [0, 0.001, 0.003, 0.01])
def test_a_command_cancelled_while_it_starts_is_ended(
    cancel: Callable[..., None], tmp_path: Path, delay: float
) -> None:
    file, began = tmp_path / "pid", time.monotonic()
    inputs = {"command": "sleep 60 & echo $! > pid; wait", "cwd": str(tmp_path)}
    cancel("shell", inputs, lambda: time.monotonic() >= began + delay)
    written = file.read_text() if file.exists() else ""
    assert_gone(int(written or 0))


def test_only_asyncio_takes_the_exit_status_of_a_command_that_is_ended(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another takes it first, asyncio writes a warning about an unknown child to standard error."""
    taken: list[int] = []
    monkeypatch.setattr(subprocess.Popen, "poll", lambda process: taken.append(process.pid))
    assert run("shell", {"command": ["sleep", "60"]}, {"timeout": 0.1})["error"]["kind"] == "timeout"
    assert not taken


def test_a_process_that_left_the_group_does_not_hold_up_the_time_limit(run: Run, tmp_path: Path) -> None:
    # It outlives the task, until the test kills it.
    leave = "import os; os.setsid(); open('pid', 'w').write(str(os.getpid())); import time; time.sleep(60)"
    inputs: dict[str, Any] = {"command": f'"$PYTHON" -IS -c "{leave}" & wait', "cwd": str(tmp_path)}
    outcome = run("shell", inputs | {"env": {"PYTHON": sys.executable}}, {"timeout": 3})
    assert outcome["error"]["kind"] == "timeout"
    left = int((tmp_path / "pid").read_text())
    assert is_running(left)
    os.kill(left, signal.SIGKILL)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def assert_gone(pid: int) -> None:
    """Assert that a process is dead, or dies soon: a signal is not delivered immediately."""
    wait_until(lambda: not pid or not is_running(pid))


def test_commands_of_a_list_run_in_one_shell_until_one_fails(run: Run, tmp_path: Path) -> None:
    outcome = run("shell", {"cmds": ["x=1", "if true; then\n  echo $x\nfi", "cd /", "pwd"], "cwd": str(tmp_path)})
    assert outcome["result"]["stdout"] == "1\n/\n"
    outcome = run("shell", {"commands": ["echo a", "false", "echo b"]})
    assert (outcome["result"]["stdout"], outcome["result"]["exit_code"]) == ("a\n", 1)


@pytest.mark.parametrize("cmds", [[], ["", " "], "", ["x", 3]])
def test_a_list_without_a_command_is_refused(run: Run, cmds: Any) -> None:
    assert "`cmds" in run("shell", {"cmds": cmds})["error"]["message"]


def test_a_command_finds_the_idempotency_key_in_its_environment(run: Run) -> None:
    assert run("shell", {"cmd": "printf %s $NOETL_IDEMPOTENCY_KEY"})["result"]["stdout"] == "01J-execution/3#1"
