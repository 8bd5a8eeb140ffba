"""The child process in which `python` tasks run. It is a script of its own, and imports nothing of this package.

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
import ctypes
import errno
import gc
import json
import os
import resource
import select
import signal
import struct
import sys
import time
from functools import lru_cache
from typing import Any

IN, OUT = 0, 1
CHUNK = 64 * 1024
TRACEBACK_CHARS = 4_000
NUMBER_MAX = 10**4_000
"""Python converts no integers of more than 4,300 digits to text."""

PROCESSES_MAX = 64
"""Processes that one task may have at a time."""
COUNT_SECONDS = 0.02
"""Interval at which they are counted."""
CROWDED = 8
"""From this number on they are counted ten times as often: the kernel limits no processes of root."""
TASKS_MAX = 200
"""Tasks that one fork runs."""

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
CAPABILITIES_VERSION, CAPABILITIES_BYTES = 0x20080522, 24
LANDLOCK_CREATE, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT = 444, 445, 446
LANDLOCK_VERSION, LANDLOCK_BENEATH = 1, 1
WRITE_FILE = 1 << 1
WRITES = {1: WRITE_FILE | sum(1 << bit for bit in range(4, 13)), 2: 1 << 13, 3: 1 << 14}
"""Rights to change files, by the version of Landlock that has them: write, remove, make; move; truncate."""
CONNECTS = {4: 0b11}
"""Rights to bind and to connect."""
SIGNALS_SINCE = 6
SCOPES = {SIGNALS_SINCE: 0b11}
"""Abstract sockets, and signals to processes outside."""

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
SECCOMP_ALLOW, SECCOMP_ERROR = 0x7FFF0000, 0x00050000
BPF_LOAD, BPF_AND, BPF_IF_EQUAL, BPF_IF_GREATER, BPF_RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
CALL_AT, MACHINE_AT, ARGUMENTS_AT, CALLS_MAX = 0, 4, 16, 0x3FFFFFFF
READS_AND_TRUNCATES = os.O_ACCMODE | os.O_TRUNC
"""Flags of `open`: Landlock before version 3 lets a file be truncated that is opened for reading."""

LOCKS = (6, 7, 37, 38, 1024)
"""Commands of `fcntl` that lock a file: by process, by open file, each with and without waiting; and a lease."""

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""By machine: the column of its call numbers below, and the kernel's number for it."""

REFUSED_CALLS: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "io_uring_setup": (425, 425),
    "flock": (73, 32),
    "chroot": (161, 51),
    "openat2": (437, 437),
    "truncate": (76, 45),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
}
"""Calls that tasks do not need and Landlock does not cover: their numbers, by machine."""

REFUSED_IF: tuple[tuple[str, tuple[int | None, int | None], int, int, int | None], ...] = (
    ("prlimit64", (302, 261), 0, 0xFFFFFFFF, None),
    ("sendto", (44, 206), 4, 0xFFFFFFFF, None),
    ("prctl", (157, 167), 0, 0xFFFFFFFF, PR_SET_PDEATHSIG),
    ("open", (2, None), 1, READS_AND_TRUNCATES, os.O_TRUNC | os.O_RDONLY),
    ("openat", (257, 56), 2, READS_AND_TRUNCATES, os.O_TRUNC | os.O_RDONLY),
    *(("fcntl", (72, 25), 1, 0xFFFFFFFF, command) for command in LOCKS),
)
"""Calls refused by an argument: name, numbers, position, mask, and the value refused; None: any but 0.

Limits of another process; a message to an address; outliving the parent; a file truncated without being opened for
writing; a lock, which stops a process that writes the file: the engine, if it is the database."""

IOCTL = (16, 29)
IOCTLS = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""Requests of `ioctl` that are accepted: the mode and the size of a terminal, how much can be read, waiting or not,
closing on exec or not. Others change attributes of files that are only open for reading, and control devices."""


class CallerGoneError(Exception):
    """The process that made the request is gone."""


def main() -> None:
    """Serve requests until there are no more."""
    wakes, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    sandbox = Sandbox(shut_network())
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

    def __init__(self, head: dict[str, Any], sandbox: Sandbox) -> None:
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
        return count > PROCESSES_MAX


def count_processes() -> int:
    """Return the number of processes below this one, counting no further than the limit."""
    found, unvisited = 0, children(os.getpid())
    while unvisited and found <= PROCESSES_MAX:
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


def run_fork(requests: int, result: int, printed: int, limits: dict[str, int], sandbox: Sandbox) -> None:
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


# ---- rights that the fork gives up


class Sandbox:
    """The restrictions of a fork, prepared once: rules for files, a filter of system calls, limits."""

    def __init__(self, has_namespace: bool) -> None:
        self.version = landlock_version()
        self.filters = can_filter()
        self._limits_processes = has_namespace
        self._rules = file_rules(self.version) if self.version else -1
        self._program = call_filter(os.uname().machine) if self.filters else b""
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        self.missing = missing(has_namespace, self.version, self.filters)

    def enter(self, memory_mb: int) -> None:
        """Drop, irrevocably, the rights that a task does not need."""
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if self._rules >= 0 and LIBC.syscall(LANDLOCK_RESTRICT, self._rules, 0) != 0:
            raise OSError(ctypes.get_errno(), "Landlock refuses")
        wanted = {"AS": memory_mb * 1024 * 1024, "FSIZE": 0, "CORE": 0}
        if self._limits_processes:  # elsewhere it would count all processes of the user
            wanted["NPROC"] = PROCESSES_MAX
        for name, most in wanted.items():
            with contextlib.suppress(ValueError, OSError):  # no such limit on this system, or a lower one is set
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
        drop_capabilities()
        # The default action kills; ignored, writing a file is an error that the task can read.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        if self._program:
            filter_calls(self._program)


def missing(has_namespace: bool, version: int, filters: bool) -> list[str]:
    """Return what this system cannot prevent tasks from doing."""
    found = [] if has_namespace or filters else ["reaching the network"]
    found += [] if version else ["making, changing and removing files"]
    found += ["truncating files"] if version < 3 and not filters else []
    found += ["signalling other processes of the user"] if version < SIGNALS_SINCE else []
    if not filters:
        found += ["changing the modes and times of files", "talking to local sockets", "locking files"]
        found += ["changing limits and priorities of other processes"]
        found += ["using and leaving shared memory and message queues"]
    return found


try:
    LIBC: Any = ctypes.CDLL(None, use_errno=True)
except OSError:
    LIBC = None


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, on systems that have it."""
    with contextlib.suppress(AttributeError):
        LIBC.prctl(option, value, 0, 0, 0)


def drop_capabilities() -> None:
    """Give up the rights of root, which only a user namespace takes away besides; no program gives them back."""
    with contextlib.suppress(AttributeError):
        LIBC.capset(struct.pack("=Ii", CAPABILITIES_VERSION, 0), bytes(CAPABILITIES_BYTES))


def shut_network() -> bool:
    """Move to an empty network namespace; False if this system does not allow that."""
    try:
        unshare = LIBC.unshare
    except AttributeError:
        return False
    return any(unshare(flags) == 0 for flags in (CLONE_NEWUSER | CLONE_NEWNET, CLONE_NEWNET))


def landlock_version() -> int:
    """Return the version of Landlock in the kernel; 0 for none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(LIBC.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), LANDLOCK_VERSION)))


def file_rules(version: int) -> int:
    """Return rules that take the rights to change files, to connect and to signal others, as far as they exist."""
    rights = [sum(bits for since, bits in table.items() if version >= since) for table in (WRITES, CONNECTS, SCOPES)]
    known = 1 if version < 4 else 2 if version < 6 else 3
    handled = (ctypes.c_uint64 * known)(*rights[:known])
    rules = int(LIBC.syscall(LANDLOCK_CREATE, ctypes.byref(handled), ctypes.c_size_t(ctypes.sizeof(handled)), 0))
    if rules < 0:
        raise OSError(ctypes.get_errno(), "Landlock refuses")
    null = os.open(os.devnull, os.O_PATH)
    beneath = WRITE_FILE.to_bytes(8, sys.byteorder) + null.to_bytes(4, sys.byteorder)
    LIBC.syscall(LANDLOCK_ADD_RULE, rules, LANDLOCK_BENEATH, beneath, 0)
    os.close(null)
    return rules


def can_filter() -> bool:
    """Return whether the kernel filters system calls (without a filter it reports a bad address), and we know them."""
    if not sys.platform.startswith("linux") or os.uname().machine not in MACHINES:
        return False
    is_refused = LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, None, 0, 0) != 0
    return is_refused and ctypes.get_errno() == errno.EFAULT


def filter_calls(program: bytes) -> None:
    """Let the kernel refuse calls of this process and of all that it starts."""
    buffer = ctypes.create_string_buffer(program, len(program))
    # The number of instructions and their address: two bytes, padding, a pointer.
    pointer = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
    if LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, pointer, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp refuses")


def call_filter(machine: str) -> bytes:
    """Return the filter for a machine, as the kernel reads it.

    An instruction is a code, how many to skip if it holds and if it does not, and an operand.
    """
    column, number = MACHINES[machine]
    refuse = (BPF_RETURN, 0, 0, SECCOMP_ERROR | errno.EPERM)
    steps = [(BPF_LOAD, 0, 0, MACHINE_AT), (BPF_IF_EQUAL, 1, 0, number), refuse, (BPF_LOAD, 0, 0, CALL_AT)]
    steps += [(BPF_IF_GREATER, 0, 1, CALLS_MAX + 1), refuse]  # calls of another numbering
    for name, numbers in REFUSED_CALLS.items():
        call = numbers[column]
        # Without `openat2`, programs use `openat`, whose flags the filter can read.
        answer = (BPF_RETURN, 0, 0, SECCOMP_ERROR | errno.ENOSYS) if name == "openat2" else refuse
        steps += [] if call is None else [(BPF_IF_EQUAL, 0, 1, call), answer]
    for _, numbers, position, mask, value in REFUSED_IF:
        call = numbers[column]
        if call is not None:
            steps += refused_if(call, ARGUMENTS_AT + 8 * position, mask, value)
    steps += refused_unless(IOCTL[column], ARGUMENTS_AT + 8, IOCTLS)
    return b"".join(struct.pack("=HBBI", *step) for step in (*steps, (BPF_RETURN, 0, 0, SECCOMP_ALLOW)))


def refused_if(call: int, at: int, mask: int, value: int | None) -> list[tuple[int, int, int, int]]:
    """Return instructions that refuse a call if an argument is not 0, or has this value under the mask."""
    refuse = (BPF_RETURN, 0, 0, SECCOMP_ERROR | errno.EPERM)
    if value is None:
        test = [
            (BPF_LOAD, 0, 0, at),
            (BPF_IF_EQUAL, 0, 2, 0),
            (BPF_LOAD, 0, 0, at + 4),
            (BPF_IF_EQUAL, 1, 0, 0),
            refuse,
        ]
    else:
        test = [(BPF_LOAD, 0, 0, at), (BPF_AND, 0, 0, mask), (BPF_IF_EQUAL, 0, 1, value), refuse]
    return [(BPF_IF_EQUAL, 0, len(test) + 1, call), *test, (BPF_LOAD, 0, 0, CALL_AT)]


def refused_unless(call: int, at: int, accepted: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
    """Return instructions that refuse a call if an argument has none of these values."""
    refuse = (BPF_RETURN, 0, 0, SECCOMP_ERROR | errno.EPERM)
    tests = [(BPF_IF_EQUAL, len(accepted) - index, 0, value) for index, value in enumerate(accepted)]
    test = [(BPF_LOAD, 0, 0, at), *tests, refuse]
    return [(BPF_IF_EQUAL, 0, len(test) + 1, call), *test, (BPF_LOAD, 0, 0, CALL_AT)]


if __name__ == "__main__":
    with contextlib.suppress(CallerGoneError):
        main()
