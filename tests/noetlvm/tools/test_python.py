"""`kind: python`: what the code can give, what it cannot do, and how it ends."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from noetlvm.limits import PRINTED_BYTES_MAX, TOOL_OUTPUT_BYTES_MAX
from noetlvm.tools.call import Outcome, ToolCall
from noetlvm.tools.python_pool import PythonPool
from noetlvm.tools.runner import ToolRunner
from tests.waiting import turns, wait_until

Run = Callable[..., Outcome]


def is_running(pid: int) -> bool:
    """Return whether there is such a process; one that is dead and only waits to be counted is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "code",
    [
        "def main(a, b):\n    return [a, b]",
        "result = [a, b]",
        "def main(**args):\n    return list(args.values())",
        "import asyncio\nasync def main(a, b):\n    await asyncio.sleep(0)  # so that it waits\n    return [a, b]",
    ],
)
def test_code_defines_main_or_assigns_result(run: Run, code: str) -> None:
    outcome = run("python", {"code": code, "args": {"a": 1, "b": {"x": "ü"}}})
    assert outcome == {"status": "ok", "result": [1, {"x": "ü"}], "py": {}}


def test_code_without_a_result_gives_null(run: Run) -> None:
    assert run("python", {"code": "x = 1"}) == {"status": "ok", "result": None, "py": {}}


@pytest.mark.parametrize(
    ("signature", "result"),
    [("b", 2), ("b, input_data", 2), ("b, a=5", 3), ("b, c=7", 9), ("**rest", 3), ("b, **rest", 3), ("*, b", 2)],
)
def test_main_gets_the_arguments_that_its_signature_names(run: Run, signature: str, result: int) -> None:
    code = f"""
def main({signature}):
    found = dict(locals())
    found.pop("input_data", None)
    found |= found.pop("rest", {{}})
    return sum(found.values())
"""
    assert run("python", {"code": code, "args": {"a": 1, "b": 2}})["result"] == result


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("a, c", "`main` requires `c`, and `args` has no value for it (line 3 of `code`)"),
        ("*, c, a", "`main` requires `c`, and `args` has no value for it (line 3 of `code`)"),
        ("a,\n    c, b=1", "`main` requires `c`, and `args` has no value for it (line 4 of `code`)"),
        ("a, /", "`main` requires `a` by position, and arguments are passed by name (line 3 of `code`)"),
    ],
)
@pytest.mark.parametrize("is_async", ["", "async "])
def test_nothing_runs_if_main_cannot_be_called(run: Run, signature: str, message: str, is_async: str) -> None:
    code = f"print('ran')\n\n{is_async}def main({signature}):\n    return a\n"
    outcome = run("python", {"code": code, "args": {"a": 1}})
    assert (outcome["error"]["message"], outcome["py"]) == (
        f"TypeError: {message}",
        {"exception_type": "TypeError"},
    )


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
        ("result = '\\ud800'", "`result` has a lone surrogate"),
        ("result = []\nresult.append(result)", "`result` is nested too deeply"),
    ],
)
def test_a_result_that_is_not_data_is_reported_with_its_position(run: Run, code: str, place: str) -> None:
    outcome = run("python", {"code": code})
    assert outcome["status"] == "error"
    assert place in outcome["error"]["message"]


def test_what_is_printed_is_stored_up_to_a_limit(run: Run) -> None:
    assert run("python", {"code": "print('hello'); result = 1"})["py"]["stdout"] == "hello\n"
    for size, stored in ((PRINTED_BYTES_MAX, PRINTED_BYTES_MAX), (PRINTED_BYTES_MAX * 3, PRINTED_BYTES_MAX)):
        outcome = run("python", {"code": f"print('x' * 7, end=' ' * ({size} - 7)); result = 1"})
        assert outcome["result"] == 1
        assert len(outcome["py"]["stdout"]) == stored


def test_a_word_that_the_limit_cuts_in_two_is_not_stored(run: Run) -> None:
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


def test_a_number_that_is_too_long_is_reported_as_such(run: Run) -> None:
    message = run("python", {"code": "result = {'n': [10 ** 5000]}"})["error"]["message"]
    assert message == "ValueError: `result.n[0]` has too many digits; give it as text"


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("result = []\nresult.append(result)", "`result` is nested too deeply, or contains itself"),
        (
            "result = []\nfor _ in range(100_000): result = [result]",
            "`result` is nested too deeply, or contains itself",
        ),
        ("result = {'a': ['ok', '\\ud800']}", "`result.a[1]` has a lone surrogate, which is not text"),
        ("result = {'a': {'\\udfff': 1}}", "`a key of result.a` has a lone surrogate, which is not text"),
    ],
)
def test_a_result_that_is_no_data_is_reported_with_its_place(run: Run, made: str, message: str) -> None:
    assert run("python", {"code": made})["error"]["message"].startswith(f"ValueError: {message}")


def test_code_that_takes_too_long_is_ended(run: Run) -> None:
    outcome = run("python", {"code": "while True: pass"}, {"timeout": 0.3})
    assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == ("timeout", True)
    assert outcome["py"] == {}


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


def test_one_execution_leaves_nothing_behind_for_the_next() -> None:
    first = "import json, builtins\njson.left = builtins.left = 1\nresult = 0"
    second = "import json, builtins\nresult = [hasattr(json, 'left'), hasattr(builtins, 'left'), 'x' in globals()]"
    assert in_executions(("one", first), ("two", second))[1]["result"] == [False] * 3


def test_tasks_of_an_execution_see_no_names_streams_or_folders_of_each_other() -> None:
    first = "import io, os, sys\nx = 1\nos.chdir('/tmp')\nos.environ['A'] = 'b'\nsys.stdout = io.StringIO()\nresult = 0"
    second = "import os\nprint('seen')\nresult = ['x' in globals(), os.getcwd(), dict(os.environ)]"
    outcome = in_executions(("one", first), ("one", second))[1]
    assert outcome["result"] == [False, "/", {}]
    assert outcome["py"]["stdout"] == "seen\n"


@pytest.mark.parametrize(
    "first",
    [
        "import json\njson.left = 1\nraise ValueError",
        "import json, threading as t, time\njson.left = 1\nt.Thread(target=time.sleep, args=(9,)).start()\nresult = 0",
        "import json, time, _thread as t\njson.left = 1\nt.start_new_thread(time.sleep, (9,))\nresult = 0",
        "import json, signal\njson.left = 1\nsignal.setitimer(signal.ITIMER_REAL, 9)\nresult = 0",
        "import json, signal\njson.left = 1\nsignal.setitimer(signal.ITIMER_PROF, 9)\nresult = 0",
        "import json, os\njson.left = 1\nos.close(1)\nresult = 0",
        "import json, subprocess\njson.left = 1\nsubprocess.Popen(['sleep', '9'])\nresult = 0",
    ],
)
def test_a_task_that_leaves_something_running_gives_its_process_to_no_other(first: str) -> None:
    second = "import json\nresult = hasattr(json, 'left')"
    assert in_executions(("one", first), ("one", second))[1]["result"] is False


def test_an_execution_of_many_tasks_gets_a_new_process_in_time() -> None:
    outcomes = in_executions(*(("one", "import os\nresult = os.getpid()") for _ in range(450)))
    pids = [outcome["result"] for outcome in outcomes]
    assert len(set(pids)) == 3


def in_executions(*tasks: tuple[str, str]) -> list[Outcome]:
    async def one_by_one() -> list[Outcome]:
        runner = ToolRunner()
        try:
            return [
                await runner.run(ToolCall("python", {"code": code}, {}, f"{execution}/1#1"))
                for execution, code in tasks
            ]
        finally:
            await runner.close()

    return asyncio.run(one_by_one())


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
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writing, str(os.getpid()).encode())
            time.sleep(60)  # longer than its parent
        os._exit(0)
    return int(os.read(reading, 20))
"""
    outcome = run("python", {"code": code})
    assert outcome["status"] == "ok"
    assert not is_running(outcome["result"])


def test_cancelled_code_is_ended(cancel: Callable[..., None]) -> None:
    others = set(descendants(os.getpid()))  # servers that other tests of this process have started
    seen: list[int] = []

    def has_begun() -> bool:
        seen[:] = [pid for pid in descendants(os.getpid()) if pid not in others]
        return len(seen) == 2

    cancel("python", {"code": "while True: pass"}, has_begun)
    assert len(seen) == 2
    assert wait_for(lambda: [pid for pid in seen if is_running(pid)], lambda left: not left) == []


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
        process.wait(60)
    assert wait_for(lambda: [pid for pid in started if is_running(pid)], lambda left: not left) == []


def descendants(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    mine = [int(child) for child in path.read_text().split()] if path.exists() else []
    return mine + [below for child in mine for below in descendants(child)]


def wait_for(look: Callable[[], list[int]], is_there: Callable[[list[int]], bool]) -> list[int]:
    """Look until it is there, and return what was found then."""
    found: list[int] = []

    def is_found() -> bool:
        found[:] = look()
        return is_there(found)

    wait_until(is_found)
    return found


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
        await asyncio.sleep(0)  # so that the event loop has something to do
        return "loop"
    said.append(asyncio.run(later()))
    said.append(subprocess.run(["echo", "process"], capture_output=True, text=True).stdout.strip())
    return said
"""
    assert run("python", {"code": code})["result"] == ["thread", "loop", "process"]


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("if x > 1:\n    return 'big'\nreturn 'small'", "big"),
        ("x = x + 1\nreturn x", 3),
        ('text = """a\n  b"""\nreturn text', "a\n  b"),
        ("def main(x):\n    return 1\nreturn main(x) + 1", 2),
        ("return [x for y in range(2)]", [2, 2]),
    ],
)
def test_code_may_return_at_top_level(run: Run, code: str, result: Any) -> None:
    assert run("python", {"code": code, "input": {"x": 2}})["result"] == result


def test_an_error_in_code_that_returns_at_top_level_has_its_line(run: Run) -> None:
    assert "(line 2 of `code`)" in run("python", {"code": "y = 0\nreturn 1 / y"})["error"]["message"]


@pytest.mark.parametrize(
    "code",
    [
        "result = [input_data, idempotency_key]",
        "def main(input_data, idempotency_key, a):\n    return [input_data, idempotency_key]",
        "def main(a):\n    return [input_data, idempotency_key]",
        "def main(input_data):\n    return [input_data, idempotency_key]",
        "def main(context):\n    return [input_data, idempotency_key]",
        "def main(a):\n    context = input_data\n    return [context, idempotency_key]",
        "return [input_data, idempotency_key]",
    ],
)
def test_code_sees_its_args_as_input_data_and_the_idempotency_key(run: Run, code: str) -> None:
    assert run("python", {"code": code, "args": {"a": 1}})["result"] == [{"a": 1}, "01J-execution/3#1"]


def test_context_is_what_templates_see() -> None:
    call = ToolCall("python", {"code": "result = context['ctx']['n']"}, {}, "e/1#1", context=lambda: {"ctx": {"n": 3}})
    assert asyncio.run(run_once(call))["result"] == 3
    unused = call._replace(inputs={"code": "result = 1"}, context=lambda: {"ctx": 1 / 0})
    assert asyncio.run(run_once(unused))["result"] == 1


@pytest.mark.parametrize(
    "libs",
    [
        {"j": "json", "sqrt": "math.sqrt", "p": "os.path"},
        {"j": "json", "sqrt": {"from": "math", "import": "sqrt"}, "p": {"from": "os", "import": "path"}},
        ["json", "math"],
    ],
)
def test_libs_are_imported(run: Run, libs: Any) -> None:
    code = {True: "result = j.dumps(sqrt(4)) + p.sep", False: "result = json.dumps(math.sqrt(4)) + '/'"}
    assert run("python", {"code": code[isinstance(libs, dict)], "libs": libs})["result"] == "2.0/"


@pytest.mark.parametrize(
    ("libs", "named"), [({"x": "no_such_module"}, "no_such_module"), ({"x y": "json"}, "`libs`"), ([3], "`libs`")]
)
def test_libs_that_cannot_be_imported_are_named(run: Run, libs: Any, named: str) -> None:
    assert named in run("python", {"code": "result = 1", "libs": libs})["error"]["message"]


def test_a_script_is_read_from_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text("def main(x):\n    return x + 1\n")
    inputs = {"script": {"uri": str(tmp_path / "task.py"), "source": {"type": "file"}}, "args": {"x": 1}}
    assert run("python", inputs)["result"] == 2
    assert run("python", {"script": "result = 5"})["result"] == 5


@pytest.mark.parametrize(
    "code",
    [
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9/')",
        "import socket\nsocket.create_connection(('127.0.0.1', 9))",
        "import socket\nsocket.gethostbyname('example.invalid')",
        "open('/tmp/x', 'w')",
        "import os\nos.mkdir('/tmp/no-such')",
        "import sqlite3\nsqlite3.connect('/tmp/no-such.db').execute('create table t (a)')",
    ],
)
def test_a_denied_access_says_what_is_allowed_and_which_kind_to_use(run: Run, code: str) -> None:
    message = run("python", {"code": code})["error"]["message"]
    assert "may read files, but neither change nor lock them" in message
    assert "`kind: http`" in message


def test_an_error_of_the_code_does_not_mention_the_sandbox(run: Run) -> None:
    assert "network" not in run("python", {"code": "raise PermissionError('not today')"})["error"]["message"]


async def run_once(call: ToolCall) -> Outcome:
    runner = ToolRunner()
    try:
        return await runner.run(call)
    finally:
        await runner.close()


def test_a_task_that_is_cancelled_as_it_gets_a_child_gives_it_back() -> None:
    class Child:
        def is_alive(self) -> bool:
            return True

        async def end(self) -> None:
            """Nothing runs."""

    async def cancelled() -> tuple[int, int]:
        pool, child = PythonPool(), cast(Any, Child())
        pool._running = 1
        waiting = asyncio.create_task(pool._freed())
        await turns()
        await pool._give_back(child)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        return pool._running, len(pool._idle)

    assert asyncio.run(cancelled()) == (0, 1)
