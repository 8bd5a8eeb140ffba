"""What the process of a `python` task may not do: rules for files, a filter of system calls, limits.

`python_child` loads it by its path, so it imports nothing of this package either.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import signal
import struct
import sys
from typing import Any

PROCESSES_MAX = 64
"""Processes that one task may have at a time."""

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
