"""What the code of a `python` task cannot do, on this kernel and as older ones would have it."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from noetlvm.tools import python_child, python_pool, python_sandbox
from noetlvm.tools.call import Outcome, ToolCall
from noetlvm.tools.runner import ToolRunner

Run = Callable[..., Outcome]

AARCH64 = """
setxattr 5 lsetxattr 6 fsetxattr 7 removexattr 14 lremovexattr 15 fremovexattr 16 ioprio_set 30 truncate 45 fchmod 52
fchmodat 53 fchownat 54 fchown 55 openat 56 utimensat 88 ptrace 117 sched_setparam 118 sched_setscheduler 119
sched_setaffinity 122 setpriority 140 mq_open 180 msgget 186 semget 190 shmget 194 shmat 196 socket 198 bind 200
connect 203 sendto 206 sendmsg 211 add_key 217 request_key 218 keyctl 219 prlimit64 261 sendmmsg 269
process_vm_readv 270 process_vm_writev 271 sched_setattr 274 io_uring_setup 425 openat2 437 pidfd_getfd 438
fchmodat2 452 setxattrat 463 removexattrat 466 file_setattr 469 fcntl 25 flock 32 chroot 51 ioctl 29 prctl 167
mq_unlink 181 msgctl 187 msgrcv 188 msgsnd 189 semctl 191 semtimedop 192 semop 193 shmctl 195 perf_event_open 241
bpf 280 userfaultfd 282
"""
"""From include/uapi/asm-generic/unistd.h of Linux, which aarch64 uses."""

X86_64 = """
open 2 shmget 29 shmat 30 socket 41 connect 42 sendto 44 sendmsg 46 bind 49 semget 64 msgget 68 truncate 76 chmod 90
fchmod 91 chown 92 fchown 93 lchown 94 ptrace 101 utime 132 setpriority 141 sched_setparam 142 sched_setscheduler 144
setxattr 188 lsetxattr 189 fsetxattr 190 removexattr 197 lremovexattr 198 fremovexattr 199 sched_setaffinity 203
utimes 235 mq_open 240 add_key 248 request_key 249 keyctl 250 ioprio_set 251 openat 257 fchownat 260 futimesat 261
fchmodat 268 utimensat 280 prlimit64 302 sendmmsg 307 process_vm_readv 310 process_vm_writev 311 sched_setattr 314
io_uring_setup 425 openat2 437 pidfd_getfd 438 fchmodat2 452 setxattrat 463 removexattrat 466 file_setattr 469
fcntl 72 flock 73 chroot 161 ioctl 16 shmctl 31 semop 65 semctl 66 msgsnd 69 msgrcv 70 msgctl 71 prctl 157
semtimedop 220 mq_unlink 241 perf_event_open 298 bpf 321 userfaultfd 323
"""
"""From arch/x86/entry/syscalls/syscall_64.tbl of Linux."""


@pytest.mark.parametrize(("machine", "table"), [("aarch64", AARCH64), ("x86_64", X86_64)])
def test_the_numbers_of_refused_calls_are_those_of_the_kernel(machine: str, table: str) -> None:
    words = table.split()
    known = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    column = python_sandbox.MACHINES[machine][0]
    numbers = {name: numbers[column] for name, numbers in python_sandbox.REFUSED_CALLS.items()}
    numbers |= {name: numbers[column] for name, numbers, *_ in python_sandbox.REFUSED_IF}
    numbers["ioctl"] = python_sandbox.IOCTL[column]
    assert {name: number for name, number in numbers.items() if number is not None} == known


@pytest.mark.parametrize("machine", python_sandbox.MACHINES)
def test_the_filter_jumps_to_its_own_instructions_and_allows_at_its_end(machine: str) -> None:
    import struct

    steps = list(struct.iter_unpack("=HBBI", python_sandbox.call_filter(machine)))
    assert steps[-1] == (python_sandbox.BPF_RETURN, 0, 0, python_sandbox.SECCOMP_ALLOW)
    assert all(at + 1 + max(holds, fails) < len(steps) for at, (_, holds, fails, _) in enumerate(steps[:-1]))


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        # It lasts until it is killed.
        [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"],
        stdout=-1,
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait(60)


@pytest.mark.parametrize(
    "attempt",
    [
        "import resource\nresource.prlimit(PID, resource.RLIMIT_FSIZE, (0, 0))",
        "import os\nos.setpriority(os.PRIO_PROCESS, PID, 19)",
        "import os\nos.sched_setaffinity(PID, {0})",
        "import os\nos.sched_setscheduler(PID, os.SCHED_BATCH, os.sched_param(0))",
        "import os\nos.kill(PID, 9)",
        "import os, signal\nsignal.pidfd_send_signal(os.pidfd_open(PID), 9)",
        "ioprio_set: syscall(251, 1, PID, 0)",
        "import os\nos.truncate(FILE, 0)",
        "import os\nos.open(FILE, os.O_RDONLY | os.O_TRUNC)",
        "import os\nos.open(FILE, os.O_WRONLY)",
        "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.sendto(b'x', SOCKET)",
        "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.sendmsg([b'x'], [], 0, SOCKET)",
        "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.connect(SOCKET)",
        "import fcntl\nfcntl.lockf(open(FILE), fcntl.LOCK_SH, 8, 120)",
        "import fcntl\nfcntl.fcntl(open(FILE), 38, bytes(32))",
        "import fcntl\nfcntl.fcntl(open(FILE), 1024, fcntl.F_RDLCK)",
        "import fcntl\nfcntl.flock(open(FILE), fcntl.LOCK_SH)",
        "import os\nos.chroot('/tmp')",
        "shmget: syscall(29, 0, 4096, 0o1600)",
        "semget: syscall(64, 0, 1, 0o1600)",
        "msgget: syscall(68, 0, 0o1600)",
        "mq_open: syscall(240, b'noetl', 0o102, 0o600, None)",
        "add_key: syscall(248, b'user', b'noetl', b'x', 1, -4)",
        "shmctl: syscall(31, 0, 0, None)",
        "semctl: syscall(66, 0, 0, 0, None)",
        "msgsnd: syscall(69, 0, b'x' * 16, 1, 0)",
        "msgctl: syscall(71, 0, 0, None)",
        "FS_IOC_SETFLAGS: ioctl(os.open(FILE, 0), 0x40086602, bytes([64] + [0] * 7))",
        "FS_IOC_SETVERSION: ioctl(os.open(FILE, 0), 0x40087602, bytes(8))",
        "PR_SET_PDEATHSIG: prctl(1, 0, 0, 0, 0)",
    ],
)
def test_code_reaches_no_other_process_file_or_socket(
    run: Run, victim: subprocess.Popen[bytes], tmp_path: Path, attempt: str
) -> None:
    if "import" not in attempt:
        number = attempt.partition(": ")[2]
        attempt = (
            "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
            f"if libc.{number} < 0: raise OSError(ctypes.get_errno(), 'refused')"
        )
    file = tmp_path / "file"
    file.write_text("content")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.setblocking(False)
        code = attempt.replace("PID", str(victim.pid)).replace("FILE", repr(str(file)))
        outcome = run("python", {"code": f"{code.replace('SOCKET', repr(str(tmp_path / 's')))}\nresult = 'done'"})
        assert outcome["py"]["exception_type"] == "PermissionError", outcome
        with pytest.raises(BlockingIOError):
            listener.recv(10)
    assert file.read_text() == "content"
    assert victim.poll() is None


def test_code_limits_itself_and_talks_through_a_pair_of_sockets(run: Run) -> None:
    code = """
import os, resource, socket
def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
    a, b = socket.socketpair()
    a.send(b"x")
    with open(os.devnull, "w") as null:
        null.write("x")
    return [b.recv(1).decode(), resource.getrlimit(resource.RLIMIT_NOFILE)[0]]
"""
    assert run("python", {"code": code})["result"] == ["x", 50]


def test_code_reads_the_state_of_a_stream(run: Run) -> None:
    code = """
import fcntl, os, struct, termios
def main():
    reads, writes = os.pipe()
    os.write(writes, b"abc")
    os.set_inheritable(reads, True)
    waiting = struct.unpack("i", fcntl.ioctl(reads, termios.FIONREAD, bytes(4)))[0]
    return [os.isatty(reads), waiting, os.get_inheritable(reads)]
"""
    assert run("python", {"code": code})["result"] == [False, 3, True]


def test_code_has_no_rights_of_root_where_there_is_no_user_namespace(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many containers forbid namespaces, and their processes are root's."""
    with_child(tmp_path, monkeypatch, shut_network="lambda: False")
    code = "result = [line.split()[1] for line in open('/proc/self/status') if line.startswith(('CapEff', 'CapPrm'))]"
    assert run("python", {"code": code})["result"] == ["0" * 16, "0" * 16]


@pytest.mark.parametrize("start", ["forks()", "_thread.start_new_thread(forks, ())"])
def test_code_that_starts_too_many_processes_is_ended(run: Run, start: str) -> None:
    code = f"""
import _thread, os, time
def forks():
    for _ in range(2000):
        if os.fork() == 0:
            time.sleep(30)  # all of them are there at once
            os._exit(0)
    time.sleep(30)  # until it is ended
def main():
    {start}
    time.sleep(30)  # until it is ended
"""
    error = run("python", {"code": code}, {"timeout": 25})["error"]
    assert "too many processes" in error["message"] or "BlockingIOError" in error["message"]


def test_processes_are_counted_while_the_code_prints_all_the_time(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a limit of the kernel, as it is for root."""
    with_child(tmp_path, monkeypatch, shut_network="lambda: False")
    code = """
import os, time
def main():
    if os.fork() == 0:
        while True:
            os.write(1, b"x" * 4096)
    for _ in range(400):
        if os.fork() == 0:
            time.sleep(30)  # all of them are there at once
            os._exit(0)
        os.write(1, b"x" * 4096)
    return "all started"
"""
    outcome = run("python", {"code": code}, {"timeout": 25})
    assert "too many processes" in outcome["error"]["message"]


def with_landlock(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filters: bool = True) -> None:
    """Let children believe that the kernel has this version of Landlock."""
    filters_as = {} if filters else {"can_filter": "lambda: False"}
    with_child(tmp_path, monkeypatch, landlock_version=f"lambda: {version}", **filters_as)


def with_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **replaced: str) -> None:
    """Start children in which these functions are replaced."""
    script = tmp_path / "child.py"
    script.write_text(
        textwrap.dedent(f"""
            import contextlib, sys
            sys.path.insert(0, {str(Path(python_child.__file__).parent)!r})
            import python_child
            sys.path.pop(0)
            {"; ".join(f"python_child.python_sandbox.{name} = {text}" for name, text in replaced.items())}
            with contextlib.suppress(python_child.CallerGoneError):
                python_child.main()
        """)
    )
    monkeypatch.setattr(python_pool, "_CHILD", script)


@pytest.mark.parametrize("version", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("flags", ["os.O_RDONLY | os.O_TRUNC", "os.O_WRONLY", "os.O_WRONLY | os.O_TRUNC", "None"])
def test_no_file_is_truncated_whatever_the_version_of_landlock(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, flags: str
) -> None:
    with_landlock(version, tmp_path, monkeypatch)
    file = tmp_path / "file"
    file.write_text("content")
    attempt = f"os.truncate({str(file)!r}, 0)" if flags == "None" else f"os.open({str(file)!r}, {flags})"
    outcome = run("python", {"code": f"import os\n{attempt}\nresult = 1"})
    assert outcome["py"]["exception_type"] == "PermissionError"
    assert file.read_text() == "content"


@pytest.mark.parametrize(
    ("version", "filters", "said", "unsaid"),
    [
        (5, True, ["signalling other processes"], ["truncating", "files or", "network"]),
        (2, True, ["signalling other processes"], ["truncating"]),
        (2, False, ["signalling other processes", "truncating files", "limits and priorities"], []),
        (0, True, ["making, changing and removing files"], []),
        (6, True, [], ["signalling", "truncating"]),
    ],
)
def test_what_an_older_kernel_cannot_prevent_is_logged_before_the_first_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    version: int, filters: bool, said: list[str], unsaid: list[str],
) -> None:  # fmt: skip
    with_landlock(version, tmp_path, monkeypatch, filters)

    async def once() -> Outcome:
        runner = ToolRunner()
        try:
            return await runner.run(ToolCall("python", {"code": "result = 1"}, {}, "e/1#1"))
        finally:
            await runner.close()

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(once())["result"] == 1
    seen = [record.getMessage() for record in caplog.records]
    assert all(any(words in message for message in seen) for words in said), seen
    assert not any(words in message for message in seen for words in unsaid), seen
