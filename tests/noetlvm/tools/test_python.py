"""`kind: python`: what the code can give, what it cannot do, and how it ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noetlvm.limits import PRINTED_BYTES_MAX, TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome

Run = Callable[..., Outcome]


def is_running(pid: int) -> bool:
    """Return whether there is such a process; one that is dead and only waits to be counted is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "code",
    ["def main(a, b):\n    return [a, b]", "result = [a, b]", "def main(**args):\n    return list(args.values())"],
)
def test_code_defines_main_or_assigns_result(run: Run, code: str) -> None:
    outcome = run("python", {"code": code, "args": {"a": 1, "b": {"x": "ü"}}})
    assert outcome == {"status": "ok", "result": [1, {"x": "ü"}], "py": {"exception_type": None}}


def test_code_that_does_neither_is_told_so(run: Run) -> None:
    outcome = run("python", {"code": "x = 1"})
    assert "neither defines `main` nor assigns `result`" in outcome["error"]["message"]


def test_an_exception_is_an_error_with_its_type_and_line(run: Run) -> None:
    outcome = run("python", {"code": "def main():\n    x = {}\n    return x['a']"})
    assert outcome["py"]["exception_type"] == "KeyError"
    assert outcome["error"]["message"] == "KeyError: 'a' (line 3 of `code`)"
    assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == ("python", False)


@pytest.mark.parametrize(
    ("code", "exception"),
    [("def main(:", "SyntaxError"), ("import sys; sys.exit(3)", "SystemExit"), ("def main(a): pass", "TypeError")],
)
def test_whatever_is_raised_is_an_outcome(run: Run, code: str, exception: str) -> None:
    assert run("python", {"code": code})["py"]["exception_type"] == exception


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("result = {'a': [1, {2}]}", "`result.a[1]` is a `set`"),
        ("result = {1: 2}", "`result` has the key 1"),
        ("result = [object()]", "`result[0]` is a `object`"),
        ("result = '\\ud800'", "UnicodeEncodeError"),
        ("result = []\nresult.append(result)", "RecursionError"),
    ],
)
def test_a_result_that_is_no_data_is_told_where(run: Run, code: str, place: str) -> None:
    outcome = run("python", {"code": code})
    assert outcome["status"] == "error"
    assert place in outcome["error"]["message"]


def test_what_is_printed_is_kept_up_to_a_limit(run: Run) -> None:
    assert run("python", {"code": "print('hello'); result = 1"})["py"]["stdout"] == "hello\n"
    for size, kept in ((PRINTED_BYTES_MAX, PRINTED_BYTES_MAX), (PRINTED_BYTES_MAX * 3, PRINTED_BYTES_MAX)):
        outcome = run("python", {"code": f"print('x' * 7, end=' ' * ({size} - 7)); result = 1"})
        assert outcome["result"] == 1
        assert len(outcome["py"]["stdout"]) == kept


def test_a_word_that_the_limit_cuts_in_two_is_not_kept(run: Run) -> None:
    """Half of a secret may be too little to be recognized as one."""
    code = f"print('x' * {PRINTED_BYTES_MAX - 5}, 'cAnary7f3e9d2b41aa'); result = 1"
    assert run("python", {"code": code})["py"]["stdout"] == "x" * (PRINTED_BYTES_MAX - 5) + " "
    assert "stdout" not in run("python", {"code": f"print('x' * {PRINTED_BYTES_MAX + 1}); result = 1"})["py"]


def test_a_result_past_the_limit_is_an_error(run: Run) -> None:
    room = TOOL_OUTPUT_BYTES_MAX - len('{"result": ""}')
    assert len(run("python", {"code": f"result = 'x' * {room - 1}"})["result"]) == room - 1
    assert run("python", {"code": f"result = 'x' * {room + 1}"})["error"]["kind"] == "output"


def test_a_syntax_error_says_its_line_once(run: Run) -> None:
    message = run("python", {"code": "x = 1\ndef f(:\n  pass"})["error"]["message"]
    assert message == "SyntaxError: invalid syntax (line 2 of `code`)"


def test_a_number_that_is_too_long_is_told_as_such(run: Run) -> None:
    message = run("python", {"code": "result = {'n': [10 ** 5000]}"})["error"]["message"]
    assert message == "ValueError: `result.n[0]` has too many digits; give it as text"


def test_code_that_takes_too_long_is_ended(run: Run) -> None:
    outcome = run("python", {"code": "while True: pass"}, {"timeout": 0.3})
    assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == ("timeout", True)
    assert outcome["py"] == {"exception_type": None, "stdout": None}


def test_code_that_takes_too_much_memory_is_an_error(run: Run) -> None:
    outcome = run("python", {"code": "result = len('x' * 300_000_000)"}, {"memory_mb": 128})
    assert outcome["error"]["kind"] == "memory"
    assert run("python", {"code": "result = len('x' * 300_000_000)"})["result"] == 300_000_000


def test_code_that_crashes_the_interpreter_is_an_error_and_the_next_runs(
    run_all: Callable[..., list[Outcome]],
) -> None:
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    first, second = run_all(("python", {"code": crash}), ("python", {"code": "result = 1"}))
    assert "SIGSEGV" in first["error"]["message"]
    assert second["result"] == 1


def test_one_task_leaves_nothing_behind_for_the_next(run_all: Callable[..., list[Outcome]]) -> None:
    first = "import json, builtins\njson.left = builtins.left = 1\nresult = 0"
    second = "import json, builtins\nresult = [hasattr(json, 'left'), hasattr(builtins, 'left'), 'x' in globals()]"
    assert run_all(("python", {"code": first}), ("python", {"code": second}))[1]["result"] == [False] * 3


def test_the_child_is_used_again(run_all: Callable[..., list[Outcome]]) -> None:
    parent = ("python", {"code": "import os; result = os.getppid()"})
    first, second = run_all(parent, parent)
    assert first["result"] == second["result"]


def test_the_environment_is_empty(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "s3cret")
    assert "A_SECRET" not in run("python", {"code": "import os; result = dict(os.environ)"})["result"]


def test_a_file_can_be_read_and_not_written(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    tmp_path.chmod(0o755)
    read = run("python", {"code": "result = open(path).read()", "args": {"path": str(file)}})
    assert read["result"] == "old"
    written = run("python", {"code": "open(path, 'w').write('new'); result = 1", "args": {"path": str(file)}})
    assert written["status"] == "error"
    assert file.read_text() != "new"


def test_the_network_is_out_of_reach_or_the_log_says_that_it_is_not(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = "import socket; socket.create_connection(('127.0.0.1', port), 5); result = 1"
        outcome = run("python", {"code": code, "args": {"port": server.getsockname()[1]}})
    is_said = "cannot keep `python` tasks from reaching the network" in caplog.text
    assert (outcome["status"] == "ok") == is_said


def test_code_cannot_end_the_process_that_watches_it(run: Run) -> None:
    outcome = run("python", {"code": "import os; os.kill(os.getppid(), 9); result = 1"})
    assert outcome["status"] == "error"


def test_what_code_starts_ends_with_it(run: Run) -> None:
    code = """
import os, time
def main():
    hears, says = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(says, str(os.getpid()).encode())
            time.sleep(60)
        os._exit(0)
    return int(os.read(hears, 20))
"""
    outcome = run("python", {"code": code})
    assert outcome["status"] == "ok"
    assert not is_running(outcome["result"])


def test_cancelled_code_is_ended(cancel: Callable[..., None]) -> None:
    seen: list[int] = []

    def has_begun() -> bool:
        seen[:] = descendants(os.getpid())
        return len(seen) == 2

    cancel("python", {"code": "while True: pass"}, has_begun)
    assert len(seen) == 2
    assert not any(map(is_running, seen))


def test_code_ends_when_the_worker_is_killed() -> None:
    worker = """
import asyncio
from noetlvm.tools.call import ToolCall
from noetlvm.tools.runner import ToolRunner
asyncio.run(ToolRunner().run(ToolCall("python", {"code": "while True: pass"}, {}, "key")))
"""
    process = subprocess.Popen([sys.executable, "-c", worker], cwd=Path(__file__).parents[3])
    try:
        started = wait_for(lambda: descendants(process.pid), lambda found: len(found) == 2)
    finally:
        process.kill()
        process.wait()
    assert wait_for(lambda: [pid for pid in started if is_running(pid)], lambda left: not left) == []


def descendants(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    mine = [int(child) for child in path.read_text().split()] if path.exists() else []
    return mine + [below for child in mine for below in descendants(child)]


def wait_for(look: Callable[[], list[int]], is_there: Callable[[list[int]], bool]) -> list[int]:
    """Look until it is there, or for long enough that it never will be."""
    for _ in range(1_000):
        found = look()
        if is_there(found):
            return found
        time.sleep(0.01)
    return look()


@pytest.mark.parametrize("spec", [{"timeout": "soon"}, {"timeout": 0}, {"memory_mb": 1.5}])
def test_a_setting_that_does_not_fit_is_refused(run: Run, spec: dict[str, Any]) -> None:
    assert run("python", {"code": "result = 1"}, spec)["error"]["kind"] == "input"


@pytest.mark.parametrize(
    "attempt",
    [
        "os.chmod(FILE, 0o777)",
        "os.utime(FILE, (0, 0))",
        "os.setxattr(FILE, 'user.a', b'x')",
        "socket.socket(socket.AF_UNIX).connect(SOCKET)",
        "socket.create_connection(('127.0.0.1', 80), 1)",
        "socket.socket(40, socket.SOCK_STREAM)",
        "subprocess.run([sys.executable, '-c', f'import os; os.chmod({FILE!r}, 0o777)'], check=True)",
    ],
)
def test_code_cannot_change_what_a_file_is_nor_open_a_socket(run: Run, attempt: str, tmp_path: Path) -> None:
    file, path = tmp_path / "file", tmp_path / "socket"
    file.touch(mode=0o600)
    os.utime(file, (1, 1))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        code = f"import os, socket, subprocess, sys\nFILE, SOCKET = {str(file)!r}, {str(path)!r}\n{attempt}\nresult = 1"
        outcome = run("python", {"code": code})
    assert outcome["py"]["exception_type"] in ("PermissionError", "CalledProcessError")
    assert (file.stat().st_mode & 0o777, file.stat().st_mtime) == (0o600, 1)


def test_code_may_use_threads_processes_and_an_event_loop(run: Run) -> None:
    code = """
import asyncio, subprocess, threading
def main():
    said = []
    thread = threading.Thread(target=said.append, args=("thread",))
    thread.start()
    thread.join()
    async def later():
        await asyncio.sleep(0)
        return "loop"
    said.append(asyncio.run(later()))
    said.append(subprocess.run(["echo", "process"], capture_output=True, text=True).stdout.strip())
    return said
"""
    assert run("python", {"code": code})["result"] == ["thread", "loop", "process"]


def test_the_filter_of_calls_refuses_those_listed_and_then_allows() -> None:
    from noetlvm.tools.python_child import CALLS_MAX, REFUSED_CALLS, SECCOMP_ALLOW, call_filter

    for machine, (_, calls) in REFUSED_CALLS.items():
        program = call_filter(machine)
        assert len(program) == 8 * (7 + 2 * len(set(calls)))
        assert program.endswith(SECCOMP_ALLOW.to_bytes(4, sys.byteorder))
        assert max(calls) < CALLS_MAX
