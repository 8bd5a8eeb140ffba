"""The child process in which `python` tasks run: a script that imports only `python_sandbox` of this package.

It forks from one clean interpreter. The fork gives up the rights that a task does not need, runs code and writes
results into a pipe. Tasks of one execution may run in one fork after another, as long as each leaves no thread, process
or error behind; tasks of different executions never share one. The parent of the fork watches it, and kills it with
every process it started when it ends, writes too much, starts too many processes, or its caller is gone.

Request: length of head and of body (8 bytes each), head as JSON {execution, limits: {memory_mb, cpu_s, output_max,
printed_max}}, body as JSON {code, args, libs, context, key}.
Response: length of head and of body (8 bytes each), head as JSON {signal, stopped, printed}, body as the fork wrote it.
Before the first request, one response whose head is {missing}: what this system cannot prevent tasks from doing.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import resource
import select
import signal
import sys
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from noetlvm.tools import python_sandbox
else:
    # For this import only: other modules of the folder have names of the standard library.
    sys.path.insert(0, __file__.rpartition(os.sep)[0])
    import python_sandbox

    del sys.path[0]

IN, OUT = 0, 1
CHUNK = 64 * 1024
TRACEBACK_CHARS = 4_000
NUMBER_MAX = 10**4_000
"""Python converts no integers of more than 4,300 digits to text."""

COUNT_SECONDS = 0.02
"""Interval at which the processes of a task are counted."""
CROWDED = 8
"""From this number on they are counted ten times as often: the kernel limits no processes of root."""
TASKS_MAX = 200
"""Tasks that one fork runs."""


class CallerGoneError(Exception):
    """The process that made the request is gone."""


def main() -> None:
    """Serve requests until there are no more."""
    wakes, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    python_sandbox.prctl(python_sandbox.PR_SET_CHILD_SUBREAPER, 1)
    sandbox = python_sandbox.Sandbox(python_sandbox.shut_network())
    respond({"missing": sandbox.missing}, b"")
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page
    fork: Fork | None = None
    try:
        while frames := read_frames(IN):
            head = json.loads(frames[0])
            if fork is not None and not fork.serves(head):
                fork.end()
                fork = None
            fork = fork or Fork(head, sandbox)
            if not fork.run(frames[1], head["limits"], wakes):
                fork = None
    finally:
        if fork is not None:
            fork.end()


# ---- the process that watches


class PipeOutput:
    """What the fork writes into a pipe during one task, up to a limit."""

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self.limit = limit
        self.is_full = False

    def read(self, pipe: int) -> bool:
        """Read once from the pipe; False at its end."""
        try:
            chunk = os.read(pipe, CHUNK)
        except BlockingIOError:
            return False
        self.data += chunk[: self.limit - len(self.data)]
        self.is_full = self.is_full or (len(self.data) == self.limit and bool(chunk))
        return bool(chunk)


class Fork:
    """A sandboxed process for the tasks of one execution, seen from its parent."""

    def __init__(self, head: dict[str, Any], sandbox: python_sandbox.Sandbox) -> None:
        self._serves = (head["execution"], head["limits"]["memory_mb"])
        requests_end, self._requests = os.pipe()
        self._result, result_end = os.pipe()
        self._printed, printed_end = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            run_fork(requests_end, result_end, printed_end, head["limits"], sandbox)
        for pipe in (requests_end, result_end, printed_end):
            os.close(pipe)
        for pipe in (self._requests, self._result, self._printed):
            os.set_blocking(pipe, False)

    def serves(self, head: dict[str, Any]) -> bool:
        """Return whether it may run a task: one of the same execution, with the same limit of memory."""
        return self._serves == (head["execution"], head["limits"]["memory_mb"])

    def run(self, request: bytes, limits: dict[str, int], wakes: int) -> bool:
        """Run one task and respond; False: the fork has ended and cannot run another one."""
        self._limit_time(limits["cpu_s"])
        result, printed = PipeOutput(limits["output_max"] + FRAME), PipeOutput(limits["printed_max"])
        try:
            stopped = self._watch(len(request).to_bytes(8, "big") + request, result, printed, wakes)
        except CallerGoneError:
            self.end()
            raise
        is_reusable = not stopped and result.data[:1] == REUSABLE and is_alone(self._pid)
        status = 0 if is_reusable else self.end()
        head = {
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
            "stopped": stopped,
            "printed": bytes(printed.data).decode(errors="replace"),
        }
        respond(head, b"" if stopped else bytes(result.data[FRAME:]))
        return is_reusable

    def _limit_time(self, seconds: int) -> None:
        """Limit the processor time of the next task; the limit counts from the start of the process."""
        with contextlib.suppress(OSError, ValueError, AttributeError):
            used = int(time.clock_gettime((~self._pid << 3) | 2))
            resource.prlimit(self._pid, resource.RLIMIT_CPU, (used + seconds, resource.RLIM_INFINITY))

    def _watch(self, request: bytes, result: PipeOutput, printed: PipeOutput, wakes: int) -> str:
        """Exchange request and result with the fork until the task or the fork ends; return the limit it exceeded."""
        poller = select.poll()
        outputs = {self._result: result, self._printed: printed}
        for pipe in (IN, wakes, *outputs):
            poller.register(pipe, select.POLLIN)
        rest, stopped = self._send(memoryview(request), poller), ""
        processes = ProcessLimit()
        while not stopped and not is_complete(result):
            ready = [pipe for pipe, _ in poller.poll(processes.interval * 1000)]
            if IN in ready:
                raise CallerGoneError
            if self._requests in ready:
                rest = self._send(rest, poller)
            for pipe in outputs.keys() & ready:
                if not outputs[pipe].read(pipe):
                    poller.unregister(pipe)
            if (wakes in ready or not ready) and self._has_ended(wakes, wakes in ready):
                break
            stopped = "output" if result.is_full else "processes" if processes.is_exceeded(wakes in ready) else ""
        for pipe, output in outputs.items():
            while output.read(pipe):
                continue
        return stopped

    def _send(self, rest: memoryview, poller: select.poll) -> memoryview:
        """Write as much of the request as the pipe accepts now, and return the rest."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            rest = rest[os.write(self._requests, rest) :]
        if rest:
            poller.register(self._requests, select.POLLOUT)
        else:
            with contextlib.suppress(KeyError):  # it went in one piece
                poller.unregister(self._requests)
        return rest

    def _has_ended(self, wakes: int, is_woken: bool) -> bool:
        if is_woken:
            os.read(wakes, CHUNK)
        return os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end(self) -> int:
        """Kill it with everything it started, and return its wait status."""
        try:
            return end(self._pid)
        finally:
            for pipe in (self._requests, self._result, self._printed):
                os.close(pipe)


FRAME = 9
"""Before a result: one byte, `REUSABLE` or another, and the length."""
REUSABLE = b"+"


def is_complete(result: PipeOutput) -> bool:
    """Return whether all of a result has been read."""
    data = result.data
    return len(data) >= FRAME and len(data) - FRAME >= int.from_bytes(data[1:FRAME], "big")


class ProcessLimit:
    """Counts the processes of a task by the clock, because code that writes all the time is never idle."""

    def __init__(self) -> None:
        self.interval = COUNT_SECONDS
        self._due = time.monotonic() + self.interval

    def is_exceeded(self, has_one_ended: bool) -> bool:
        """Count if it is time to, or if a process has ended."""
        if not has_one_ended and time.monotonic() < self._due:
            return False
        count = count_processes()
        self.interval = COUNT_SECONDS / 10 if count > CROWDED else COUNT_SECONDS
        self._due = time.monotonic() + self.interval
        return count > python_sandbox.PROCESSES_MAX


def count_processes() -> int:
    """Return the number of processes below this one, counting no further than the limit."""
    found, unvisited = 0, children(os.getpid())
    while unvisited and found <= python_sandbox.PROCESSES_MAX:
        found += 1
        unvisited += children(unvisited.pop())
    return found


def end(pid: int) -> int:
    """Kill the fork and everything it started, and return the wait status of the fork."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, os.WNOHANG)  # without children it raises
            # Orphans of dead processes become children of this one, the subreaper.
            for orphan in children(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(orphan, signal.SIGKILL)
            os.waitpid(-1, 0)
    return status


def is_alone(pid: int) -> bool:
    """Return whether a process has one thread and no children; False if this system does not list them."""
    return len(threads(pid)) == 1 and not children(pid)


def children(pid: int) -> list[int]:
    """Return the children of all threads of a process, if this system lists them."""
    found: list[int] = []
    for thread in threads(pid):
        with contextlib.suppress(OSError):
            path = f"/proc/{pid}/task/{thread}/children"
            with open(path, "rb") as file:  # noqa: PTH123 - pathlib takes long to import
                found += [int(child) for child in file.read().split()]
    return found


def threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - pathlib takes long to import
    except OSError:
        return []


def read_frames(pipe: int) -> tuple[bytes, bytes] | None:
    """Return head and body of the next request; None at the end."""
    sizes = read_exactly(pipe, 16)
    if sizes is None:
        return None
    head = read_exactly(pipe, int.from_bytes(sizes[:8], "big"))
    body = read_exactly(pipe, int.from_bytes(sizes[8:], "big"))
    return None if head is None or body is None else (head, body)


def read_exactly(pipe: int, size: int) -> bytes | None:
    """Return that many bytes; None if the input ends before."""
    found = bytearray()
    while len(found) < size:
        chunk = os.read(pipe, size - len(found))
        if not chunk:
            return None
        found += chunk
    return bytes(found)


def respond(head: dict[str, Any], body: bytes) -> None:
    """Write one response."""
    text = json.dumps(head).encode()
    write_all(OUT, b"".join((len(text).to_bytes(8, "big"), len(body).to_bytes(8, "big"), text, body)))


def write_all(pipe: int, data: bytes) -> None:
    """Write everything: a pipe may accept less at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(pipe, rest) :]


# ---- the fork


def run_fork(requests: int, result: int, printed: int, limits: dict[str, int], sandbox: python_sandbox.Sandbox) -> None:
    """Run tasks in the fork; never returns."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for old, new in ((null, 0), (printed, 1), (printed, 2)):
            os.dup2(old, new)
        sandbox.enter(limits["memory_mb"])
        open_pipes = sorted((2, requests, result))
        for low, high in zip(open_pipes, [*open_pipes[1:], 255], strict=True):
            os.closerange(low + 1, high)
        streams, path = (sys.stdin, sys.stdout, sys.stderr), list(sys.path)
        for number in range(1, TASKS_MAX + 1):
            size = read_exactly(requests, 8)
            request = read_exactly(requests, int.from_bytes(size, "big")) if size else None
            if request is None:
                break
            body, is_reusable = outcome(json.loads(request))
            sys.stdin, sys.stdout, sys.stderr = streams
            sys.path[:] = path
            is_reusable = is_reusable and number < TASKS_MAX and is_clean()
            write_all(result, (REUSABLE if is_reusable else b"-") + len(body).to_bytes(8, "big") + body)
            if not is_reusable:
                break
    finally:
        os._exit(0)


def is_clean() -> bool:
    """Return whether a task left no timer behind; undo what is easy to undo."""
    os.chdir("/")
    os.environ.clear()
    os.fstat(1)  # raises if the task closed it
    return not any(signal.getitimer(timer)[0] for timer in TIMERS)


TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


def outcome(task: dict[str, Any]) -> tuple[bytes, bool]:
    """Run the code and return `{result}` or `{error}` as JSON, and whether it succeeded."""
    try:
        return json.dumps({"result": plain_result(run(task))}, ensure_ascii=False).encode(), True
    except BaseException as failed:  # whatever the code raises is its outcome, also `SystemExit`
        return json.dumps({"error": described(failed)}).encode(), False
    finally:
        with contextlib.suppress(Exception):  # the code may have replaced or closed them
            sys.stdout.flush()
            sys.stderr.flush()


def run(task: dict[str, Any]) -> Any:
    """Return what `main` or a `return` at top level returns, or the value of `result`."""
    args = task["args"]
    given = {"input_data": args, "context": task["context"], "idempotency_key": task["key"]}
    builtins = dict(vars(sys.modules["builtins"]))
    libs = imported(task["libs"]) if task["libs"] else {}
    names = {"__name__": "task", "__builtins__": builtins, **given, **libs, **args}
    compiled = compiled_body(task["code"], tuple(args))
    check_call(task["code"], compiled, args.keys() | given.keys())
    exec(compiled, names)
    if BODY in names:
        return names[BODY]()
    function = names.get("main")
    if callable(function):
        return awaited(function(**arguments(function, given, args)))
    return names.get("result")


def awaited(value: Any) -> Any:
    """Return what a coroutine returns, if the value is one: `main` may be `async`."""
    if type(value).__name__ != "coroutine":
        return value
    import asyncio

    return asyncio.run(value)


def check_call(text: str, compiled: Any, given: set[str]) -> None:
    """Raise TypeError if `main` cannot be called with these arguments, before any of the code has had an effect."""
    mains = [part for part in compiled.co_consts if getattr(part, "co_name", "") == "main"]
    if len(mains) != 1 or (not mains[0].co_posonlyargcount and given.issuperset(parameters(mains[0]))):
        return
    import ast

    functions = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    main = next((node for node in functions if node.name == "main"), None)
    if main is None or main.decorator_list:
        return  # what it takes is decided when the code runs
    declared = main.args
    positional = [*declared.posonlyargs, *declared.args]
    required = positional[: len(positional) - len(declared.defaults)]
    required += [item for item, value in zip(declared.kwonlyargs, declared.kw_defaults, strict=True) if value is None]
    for item in required:
        if item in declared.posonlyargs or item.arg not in given:
            is_named = item not in declared.posonlyargs
            reason = "`args` has no value for it" if is_named else "arguments are passed by name"
            refused = TypeError(f"`main` requires `{item.arg}`{'' if is_named else ' by position'}, and {reason}")
            refused.lineno = item.lineno  # type: ignore[attr-defined]  # read by `described`
            raise refused


def parameters(code: Any) -> tuple[str, ...]:
    """Return the names that a function takes its arguments by."""
    named: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return named


def arguments(function: Any, given: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    """Return what `main` is called with: of the args and of what is given besides, what its signature names.

    One that ends in `**` gets all args.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return args
    named = parameters(code)
    if not code.co_flags & 0x08:  # CO_VARKEYWORDS
        args = {name: value for name, value in args.items() if name in named}
    return {**{name: value for name, value in given.items() if name in named}, **args}


BODY = "__task__"
CODES_CACHED = 64
"""By a fork, whose tasks are all of one execution: a loop runs the same code again and again."""


@lru_cache(CODES_CACHED)
def compiled_body(code: str, args: tuple[str, ...]) -> Any:
    """Return the compiled code: as it is, or as the body of a function if it returns at top level."""
    try:
        return compile(code, "<code>", "exec")
    except SyntaxError as problem:
        if "'return' outside function" not in str(problem):
            raise
    import ast

    tree = ast.parse(code, "<code>")
    # Names that the code reads before it assigns them are those of the module.
    outer = [name for name in (*args, "input_data", "context", "result") if name.isidentifier()]
    function = ast.parse(f"def {BODY}(): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = [ast.Global(names=outer), *tree.body]
    tree.body = [function]
    return compile(ast.fix_missing_locations(tree), "<code>", "exec")


def imported(libs: dict[str, str]) -> dict[str, Any]:
    """Return the modules of `libs`, or attributes of modules, by the names they get."""
    from importlib import import_module

    found: dict[str, Any] = {}
    for name, path in libs.items():
        try:
            found[name] = import_module(path)
        except ModuleNotFoundError:
            module, dot, attribute = path.rpartition(".")
            if not dot:
                raise
            holder = import_module(module)
            if not hasattr(holder, attribute):
                raise
            found[name] = getattr(holder, attribute)
    return found


def plain_result(value: Any) -> Any:
    """Return a result as plain data. Raises TypeError or ValueError."""
    try:
        return plain(value, "result")
    except RecursionError:
        raise ValueError("`result` is nested too deeply, or contains itself") from None


def plain(value: Any, place: str) -> Any:
    """Return the value as plain data. Raises TypeError or ValueError with the position of what is not."""
    if isinstance(value, int) and abs(value) >= NUMBER_MAX:
        raise ValueError(f"`{place}` has too many digits; give it as text")
    if isinstance(value, str):
        return plain_text(value, place)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [plain(item, f"{place}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, dict):
        name = type(value).__name__
        raise TypeError(f"`{place}` is a `{name}`, which is not plain data; return text, numbers, lists or mappings")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"`{place}` has the key {key!r}; keys must be text")
        plain_text(key, f"a key of {place}")
    return {key: plain(item, f"{place}.{key}") for key, item in value.items()}


def plain_text(value: str, place: str) -> str:
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"`{place}` has a lone surrogate, which is not text; decode its bytes with `errors='replace'`")
    return value


def described(failed: BaseException) -> dict[str, Any]:
    """Return what was raised, and where in the code."""
    import traceback

    frames = [frame for frame in traceback.extract_tb(failed.__traceback__) if frame.filename == "<code>"]
    line = frames[-1].lineno if frames else getattr(failed, "lineno", None)
    try:
        message = failed.msg if isinstance(failed, SyntaxError) else str(failed)
    except Exception:  # the exception's own `__str__` may fail
        message = ""
    trace = "".join(traceback.format_list(frames))[-TRACEBACK_CHARS:]
    name = type(failed).__name__
    return {"exception_type": name, "message": message, "line": line, "traceback": trace, "denied": is_denied(failed)}


def is_denied(failed: BaseException | None) -> bool:
    """Return whether the sandbox may be the reason: access to a file or to the network was refused."""
    for _ in range(20):
        if failed is None:
            return False
        if type(failed).__name__ == "gaierror":
            return True
        if isinstance(failed, OSError) and failed.errno in DENIALS:
            return True
        if getattr(failed, "sqlite_errorname", "") in SQLITE_DENIALS:
            return True
        reason = getattr(failed, "reason", None)  # `urllib` puts the cause there
        failed = failed.__cause__ or failed.__context__ or (reason if isinstance(reason, BaseException) else None)
    return False


DENIALS = (errno.EPERM, errno.EACCES, errno.EROFS, errno.EFBIG, errno.ENETUNREACH, errno.EADDRNOTAVAIL)
SQLITE_DENIALS = ("SQLITE_PERM", "SQLITE_READONLY", "SQLITE_CANTOPEN")


if __name__ == "__main__":
    with contextlib.suppress(CallerGoneError):
        main()
