"""The child process in which `python` tasks run. It is a script of its own, and imports nothing of this package.

It reads requests, and for each it forks: so every task starts from the same clean interpreter, at the price of a fork.
The fork gives up what a task has no need of, runs the code and writes its result into a pipe. The process that forked
watches it, and kills it with everything it started when it ends, gives too much, or nobody waits for it any more.

Request: length (8 bytes), JSON {code, args, memory_mb, cpu_s, output_max, printed_max}.
Answer: length of head and of body (8 bytes each), head as JSON {signal, too_much, printed}, body as the fork wrote it.
Before the first request, one answer whose head is {missing}: what this system cannot keep tasks from doing.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import select
import signal
import struct
import sys
import traceback
from typing import Any

IN, OUT = 0, 1
CHUNK = 64 * 1024
TRACEBACK_CHARS = 4_000
NUMBER_MAX = 10**4_000
"""Python writes and reads no whole numbers of more than 4,300 digits."""

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
LANDLOCK_CREATE, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT = 444, 445, 446
LANDLOCK_VERSION, LANDLOCK_BENEATH = 1, 1
WRITE_FILE = 1 << 1
WRITES = {1: WRITE_FILE | sum(1 << bit for bit in range(4, 13)), 2: 1 << 13, 3: 1 << 14}
"""Rights to change files, by the version of Landlock that knows them: write, remove, make; move; truncate."""
CONNECTS = {4: 0b11}
"""Rights to bind and to connect."""
SCOPES = {6: 0b11}
"""Abstract sockets, and signals to processes outside."""

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
SECCOMP_ALLOW, SECCOMP_REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
BPF_LOAD, BPF_IF_EQUAL, BPF_IF_GREATER, BPF_RETURN = 0x20, 0x15, 0x35, 0x06
CALL_AT, MACHINE_AT, CALLS_MAX = 0, 4, 0x3FFFFFFF
REFUSED_CALLS = {
    "x86_64": (
        0xC000003E,
        (
            *(41, 425),  # socket: a pair of them has a call of its own; io_uring_setup, which goes round all of this
            *(90, 91, 268, 452),  # chmod, fchmod, fchmodat, fchmodat2
            *(92, 93, 94, 260),  # chown, fchown, lchown, fchownat
            *(132, 235, 261, 280),  # utime, utimes, futimesat, utimensat
            *(188, 189, 190, 463, 197, 198, 199, 466, 469),  # setxattr, removexattr and their like; file_setattr
            *(101, 310, 311, 438),  # ptrace, process_vm_readv, process_vm_writev, pidfd_getfd
        ),
    ),
    "aarch64": (
        0xC00000B7,
        (198, 425, 52, 53, 452, 54, 55, 88, 5, 6, 7, 463, 14, 15, 16, 466, 469, 117, 270, 271, 438),  # the same ones
    ),
}
"""By machine: how the kernel names it, and the calls that tasks have no need of and Landlock does not know."""


class Answerless(Exception):  # noqa: N818 - it says what happened
    """Nobody waits for an answer any more."""


def main() -> None:
    """Serve requests until there are no more."""
    wakes, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    filters = can_filter()
    missing = [] if shut_network() or filters else ["reaching the network"]
    missing += [] if landlock_version() else ["making and removing files"]
    missing += [] if filters else ["changing the modes and times of files", "talking to local sockets"]
    answer({"missing": missing}, b"")
    while request := read_request():
        serve(request, wakes)


def serve(request: bytes, wakes: int) -> None:
    """Run one request in a fork and answer it."""
    limits = json.loads(request)["limits"]
    result, result_end = os.pipe()
    printed, printed_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        run_fork(request, result_end, printed_end)
    os.close(result_end)
    os.close(printed_end)
    try:
        taken = watch(pid, wakes, {result: limits["output_max"], printed: limits["printed_max"]}, result)
    finally:
        status = end(pid)
        os.close(result)
        os.close(printed)
    body, too_much = taken[result]
    head = {
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        "too_much": too_much,
        "printed": bytes(taken[printed][0]).decode(errors="replace"),
    }
    answer(head, b"" if too_much else bytes(body))


# ---- the process that watches


def watch(pid: int, wakes: int, most: dict[int, int], result: int) -> dict[int, tuple[bytearray, bool]]:
    """Take what the fork writes, by pipe, until it ends or its result is too much; and whether it was too much."""
    taken = {pipe: (bytearray(), False) for pipe in most}
    poller = select.poll()
    for pipe in (IN, wakes, *most):
        poller.register(pipe, select.POLLIN)
    has_ended = False
    while not has_ended and not taken[result][1]:
        ready = [pipe for pipe, _ in poller.poll()]
        if IN in ready:
            raise Answerless
        if wakes in ready:
            os.read(wakes, CHUNK)
            has_ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        for pipe in most:
            if pipe in ready and not take(pipe, taken, most[pipe]):
                poller.unregister(pipe)
    for pipe in most:
        os.set_blocking(pipe, False)
        while take(pipe, taken, most[pipe]):
            continue
    return taken


def take(pipe: int, taken: dict[int, tuple[bytearray, bool]], most: int) -> bool:
    """Read once from the pipe and keep no more than `most`; False at its end."""
    try:
        chunk = os.read(pipe, CHUNK)
    except BlockingIOError:
        return False
    kept, too_much = taken[pipe]
    kept += chunk[: most - len(kept)]
    taken[pipe] = (kept, too_much or (len(kept) == most and bool(chunk)))
    return bool(chunk)


def end(pid: int) -> int:
    """Kill the fork and everything it started, wherever that hides, and return how the fork ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(ChildProcessError):
        while True:
            # What was started by what is dead has become our child.
            for orphan in children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(orphan, signal.SIGKILL)
            os.waitpid(-1, 0)
    return status


def children() -> list[int]:
    """Return our children, as far as this system tells."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:  # noqa: PTH123 - pathlib takes long to import
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def read_request() -> bytes | None:
    """Return the next request; None at the end."""
    head = read_exactly(8)
    return read_exactly(int.from_bytes(head, "big")) if head else None


def read_exactly(size: int) -> bytes | None:
    """Return that many bytes; None if there are no more so many."""
    found = bytearray()
    while len(found) < size:
        chunk = os.read(IN, size - len(found))
        if not chunk:
            return None
        found += chunk
    return bytes(found)


def answer(head: dict[str, Any], body: bytes) -> None:
    """Write one answer."""
    text = json.dumps(head).encode()
    write_all(OUT, b"".join((len(text).to_bytes(8, "big"), len(body).to_bytes(8, "big"), text, body)))


def write_all(pipe: int, data: bytes) -> None:
    """Write it all: a pipe may take less at once."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(pipe, rest) :]


# ---- the fork


def run_fork(request: bytes, result: int, printed: int) -> None:
    """Be the fork: never returns."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for old, new in ((nothing, 0), (printed, 1), (printed, 2)):
            os.dup2(old, new)
        os.closerange(3, result)
        os.closerange(result + 1, max(printed, nothing, 255) + 1)
        asked = json.loads(request)
        give_up(asked["limits"])
        write_all(result, outcome(asked["code"], asked["args"]))
    finally:
        os._exit(0)


def give_up(limits: dict[str, int]) -> None:
    """Give up for good what a task has no need of."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    lock_files()
    memory, cpu = limits["memory_mb"] * 1024 * 1024, limits["cpu_s"]
    wanted = {"AS": memory, "CPU": cpu, "FSIZE": 0, "CORE": 0}
    for name, most in wanted.items():
        with contextlib.suppress(ValueError, OSError):  # a system that knows no such limit, or has set a lower one
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    # Else a task that writes a file would be killed; so it meets an error that it can read.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    refuse_calls()


def outcome(code: str, args: dict[str, Any]) -> bytes:
    """Run the code and return `{result}` or `{error}` as JSON."""
    try:
        return json.dumps({"result": plain(run(code, args), "result")}, ensure_ascii=False).encode()
    except BaseException as failed:  # whatever the code raises is its outcome, `SystemExit` too
        return json.dumps({"error": described(failed)}).encode()
    finally:
        with contextlib.suppress(Exception):  # the code may have replaced or closed them
            sys.stdout.flush()
            sys.stderr.flush()


def run(code: str, args: dict[str, Any]) -> Any:
    """Return what `main` gives, or `result`."""
    names = {"__name__": "task", "__builtins__": __builtins__, **args}
    exec(compile(code, "<code>", "exec"), names)
    function = names.get("main")
    if callable(function):
        return function(**args)
    if "result" in names:
        return names["result"]
    raise NameError("the code neither defines `main` nor assigns `result`")


def plain(value: Any, place: str) -> Any:
    """Return the value as plain data, or say where in it something else stands."""
    if isinstance(value, int) and abs(value) >= NUMBER_MAX:
        raise ValueError(f"`{place}` has too many digits; give it as text")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(item, f"{place}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, dict):
        name = type(value).__name__
        raise TypeError(f"`{place}` is a `{name}`, which is no data; give text, numbers, lists or mappings")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"`{place}` has the key {key!r}; keys must be text")
    return {key: plain(item, f"{place}.{key}") for key, item in value.items()}


def described(failed: BaseException) -> dict[str, Any]:
    """Say what was raised, and where in the code."""
    frames = [frame for frame in traceback.extract_tb(failed.__traceback__) if frame.filename == "<code>"]
    line = frames[-1].lineno if frames else getattr(failed, "lineno", None)
    try:
        message = failed.msg if isinstance(failed, SyntaxError) else str(failed)
    except Exception:  # an exception of the code's own may not even be able to say what it is
        message = ""
    told = "".join(traceback.format_list(frames))[-TRACEBACK_CHARS:]
    return {"exception_type": type(failed).__name__, "message": message, "line": line, "traceback": told}


# ---- what the kernel is asked for


def libc() -> Any:
    """Return the system's C library."""
    return ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, where there is such a thing."""
    with contextlib.suppress(AttributeError):
        libc().prctl(option, value, 0, 0, 0)


def shut_network() -> bool:
    """Move to a network of our own, in which there is nothing; False if this system does not allow that."""
    try:
        unshare = libc().unshare
    except AttributeError:
        return False
    return any(unshare(flags) == 0 for flags in (CLONE_NEWUSER | CLONE_NEWNET, CLONE_NEWNET))


def landlock_version() -> int:
    """Return what the kernel knows of Landlock; 0 for nothing."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, int(libc().syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), LANDLOCK_VERSION)))


def lock_files() -> None:
    """Give up the rights to change files, to connect and to signal others, as far as the kernel knows how."""
    version = landlock_version()
    if not version:
        return
    rights = [sum(bits for since, bits in table.items() if version >= since) for table in (WRITES, CONNECTS, SCOPES)]
    known = 1 if version < 4 else 2 if version < 6 else 3
    handled = (ctypes.c_uint64 * known)(*rights[:known])
    call = libc().syscall
    rules = call(LANDLOCK_CREATE, ctypes.byref(handled), ctypes.c_size_t(ctypes.sizeof(handled)), 0)
    if rules < 0:
        raise OSError(ctypes.get_errno(), "Landlock refuses")
    nothing = os.open(os.devnull, os.O_PATH)
    beneath = WRITE_FILE.to_bytes(8, sys.byteorder) + nothing.to_bytes(4, sys.byteorder)
    call(LANDLOCK_ADD_RULE, rules, LANDLOCK_BENEATH, beneath, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if call(LANDLOCK_RESTRICT, rules, 0) != 0:
        raise OSError(ctypes.get_errno(), "Landlock refuses")
    os.close(nothing)
    os.close(rules)


def refuse_calls() -> None:
    """Let the kernel refuse the calls that no task has a need of, from this process and all it starts."""
    if not can_filter():
        return
    program = call_filter(os.uname().machine)
    held = ctypes.create_string_buffer(program, len(program))
    # The number of instructions, and where they are: two bytes, padding, an address.
    pointer = struct.pack("@HP", len(program) // 8, ctypes.addressof(held))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if libc().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, pointer, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp refuses")


def can_filter() -> bool:
    """Tell whether the kernel filters calls, of which it complains that there is no filter, and we know its calls."""
    if not sys.platform.startswith("linux") or os.uname().machine not in REFUSED_CALLS:
        return False
    is_refused = libc().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, None, 0, 0) != 0
    return is_refused and ctypes.get_errno() == errno.EFAULT


def call_filter(machine: str) -> bytes:
    """Return the filter for a machine, as the kernel reads it.

    An instruction is a code, how many to skip if it holds and if it does not, and an operand.
    """
    name, calls = REFUSED_CALLS[machine]
    refuse = (BPF_RETURN, 0, 0, SECCOMP_REFUSE)
    steps = [(BPF_LOAD, 0, 0, MACHINE_AT), (BPF_IF_EQUAL, 1, 0, name), refuse, (BPF_LOAD, 0, 0, CALL_AT)]
    steps += [(BPF_IF_GREATER, 0, 1, CALLS_MAX + 1), refuse]  # calls of another numbering
    for call in calls:
        steps += [(BPF_IF_EQUAL, 0, 1, call), refuse]
    return b"".join(struct.pack("=HBBI", *step) for step in (*steps, (BPF_RETURN, 0, 0, SECCOMP_ALLOW)))


if __name__ == "__main__":
    with contextlib.suppress(Answerless):
        main()
