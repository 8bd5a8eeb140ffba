"""Attempts to leave the python task's sandbox: each must fail, and leave no trace outside."""

from __future__ import annotations

IPC_KEY = 0x5A5A
"""Of every System V object that an attempt makes."""

WRITES: dict[str, str] = {
    "open for writing": "open(victim, 'w').write('x')",
    "open for appending": "open(victim, 'a').write('x')",
    "create beside": "open(folder + '/made', 'w').write('x')",
    "create in /tmp": "open('/tmp/noetlvm-audit', 'w').write('x')",
    "create in /dev/shm": "open('/dev/shm/noetlvm-audit', 'w').write('x')",
    "create in /var/tmp": "open('/var/tmp/noetlvm-audit', 'w').write('x')",
    "os.open for writing": "os.write(os.open(victim, os.O_WRONLY), b'x')",
    "os.open truncating": "os.open(victim, os.O_RDWR | os.O_TRUNC)",
    "O_TMPFILE": "os.open(folder, os.O_TMPFILE | os.O_RDWR)",
    "truncate by path": "os.truncate(victim, 0)",
    "ftruncate": "os.ftruncate(os.open(victim, os.O_RDONLY), 0)",
    "rename": "os.rename(victim, victim + '2')",
    "replace": "os.replace(folder + '/victim', folder + '/other')",
    "unlink": "os.unlink(victim)",
    "rmdir": "os.rmdir(folder + '/empty')",
    "mkdir": "os.mkdir(folder + '/made')",
    "makedirs": "os.makedirs(folder + '/made/deeper')",
    "symlink": "os.symlink(victim, folder + '/link')",
    "hard link": "os.link(victim, folder + '/link')",
    "mkfifo": "os.mkfifo(folder + '/fifo')",
    "mknod": "os.mknod(folder + '/node')",
    "chmod": "os.chmod(victim, 0o777)",
    "fchmod": "os.fchmod(os.open(victim, os.O_RDONLY), 0o777)",
    "chown": "os.chown(victim, 12345, 12345)",
    "utime": "os.utime(victim, (1, 1))",
    "setxattr": "os.setxattr(victim, 'user.audit', b'x')",
    "mmap shared": "import mmap; mmap.mmap(os.open(victim, os.O_RDWR), 0)[0:1] = b'x'",
    "shutil.copy": "import shutil; shutil.copy(victim, folder + '/copy')",
    "shutil.rmtree": "import shutil; shutil.rmtree(folder)",
    "pathlib": "import pathlib; pathlib.Path(victim).write_text('x')",
    "sqlite file": "import sqlite3; sqlite3.connect(folder + '/made.db').execute('create table t (a)')",
    "dbm": "import dbm.dumb; dbm.dumb.open(folder + '/made', 'n')['a'] = 'b'",
    "tempfile": "import tempfile; tempfile.NamedTemporaryFile(dir=folder, delete=False)",
    "logging file": "import logging; logging.FileHandler(folder + '/made.log').stream.write('x')",
    "own /proc/self/mem": "open('/proc/self/mem', 'r+b')",
    "parent's mem": "open(f'/proc/{os.getppid()}/mem', 'r+b')",
    "oom score of the engine": "open(f'/proc/{pid}/oom_score_adj', 'w').write('1000')",
    "comm of a process": "open(f'/proc/{pid}/comm', 'w').write('x')",
    "sysctl": "open('/proc/sys/kernel/core_pattern', 'w').write('x')",
    "cgroup": "open('/sys/fs/cgroup/audit', 'w').write('x')",
}
"""A statement that changes a file; it must raise."""

NETWORK: dict[str, str] = {
    "TCP": "import socket; socket.create_connection(('127.0.0.1', port), 1)",
    "UDP": "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', port))",
    "TCP listener": "import socket; socket.create_server(('127.0.0.1', 0))",
    "IPv6": "import socket; socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
    "raw": "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "packet": "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "netlink": "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "unix stream": "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect(unix)",
    "unix datagram": "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', unix)",
    "socketpair to a path": (
        "import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x', unix)"
    ),
    "socketpair sendmsg to a path": (
        "import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendmsg([b'x'], [], 0, unix)"
    ),
    "socketpair connect": (
        "import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.connect(unix)"
    ),
    "abstract unix": "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect('\\0audit')",
    "vsock": "import socket; socket.socket(40, socket.SOCK_STREAM)",
    "bluetooth": "import socket; socket.socket(31, socket.SOCK_RAW)",
    "urllib": "import urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{port}/', timeout=1)",
    "http.client": "import http.client; http.client.HTTPConnection('127.0.0.1', port, timeout=1).request('GET', '/')",
    "getaddrinfo and connect": (
        "import socket; i = socket.getaddrinfo('localhost', port)[0]; socket.socket(*i[:3]).connect(i[4])"
    ),
    "asyncio": ("import asyncio; asyncio.run(asyncio.wait_for(asyncio.open_connection('127.0.0.1', port), 1))"),
}
"""A statement that reaches a socket; it must raise, and nothing may arrive."""

PROCESSES: dict[str, str] = {
    "kill": "os.kill(pid, 9)",
    "kill the parent": "os.kill(os.getppid(), 9)",
    "killpg": "os.killpg(os.getpgid(pid), 9)",
    "stop": "os.kill(pid, 19)",
    "pidfd": "import signal; signal.pidfd_send_signal(os.pidfd_open(pid), 9)",
    "ptrace attach": "libc.ptrace(16, pid, 0, 0) == 0 or fail()",
    "process_vm_readv": "libc.process_vm_readv(pid, 0, 0, 0, 0, 0) == 0 or fail()",
    "prlimit of the engine": "import resource; resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))",
    "prlimit of the parent": "import resource; resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))",
    "setpriority": "os.setpriority(os.PRIO_PROCESS, pid, 19)",
    "setpriority of the user": "os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_PROCESS, 0))",
    "sched_setaffinity": "os.sched_setaffinity(pid, {0})",
    "sched_setscheduler": "os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))",
    "ioprio_set": "libc.syscall(251, 1, pid, 3 << 13) == 0 or fail()",
    "shmget": f"libc.shmget({IPC_KEY}, 4096, 0o1666) >= 0 or fail()",
    "semget": f"libc.semget({IPC_KEY}, 1, 0o1666) >= 0 or fail()",
    "msgget": f"libc.msgget({IPC_KEY}, 0o1666) >= 0 or fail()",
    "mq_open": "libc.syscall(240, b'audit', 0o102, 0o600, 0) >= 0 or fail()",
    "add_key": "libc.syscall(248, b'user', b'audit', b'x', 1, -3) >= 0 or fail()",
    "keyctl": "libc.syscall(250, 0, -3, 1) >= 0 or fail()",
    "environment of the parent": "assert b'AUDIT_SECRET' in open(f'/proc/{os.getppid()}/environ', 'rb').read()",
    "environment of a process": "assert b'AUDIT_SECRET' in open(f'/proc/{pid}/environ', 'rb').read()",
    "own environment": "os.environ['AUDIT_SECRET']",
    "maps of a process": "open(f'/proc/{pid}/maps').read(1)",
    "descriptors of a process": "os.open(f'/proc/{pid}/fd/1', os.O_RDONLY)",
    "mount": "libc.mount(b'none', b'/mnt', b'tmpfs', 0, 0) == 0 or fail()",
    "umount": "libc.umount2(b'/proc', 2) == 0 or fail()",
    "pivot_root": "libc.syscall(155, b'/', b'/') == 0 or fail()",
    "reboot": "libc.reboot(0) == 0 or fail()",
    "sethostname": "libc.sethostname(b'audit', 5) == 0 or fail()",
    "settimeofday": "import time; time.clock_settime(time.CLOCK_REALTIME, 0)",
    "swapon": "libc.swapon(victim.encode(), 0) == 0 or fail()",
    "init_module": "libc.syscall(175, 0, 0, 0) == 0 or fail()",
    "bpf": "libc.syscall(321, 0, 0, 0) >= 0 or fail()",
    "perf_event_open": "libc.syscall(298, 0, 0, -1, -1, 0) >= 0 or fail()",
    "userfaultfd": "libc.syscall(323, 0) >= 0 or fail()",
    "io_uring": "libc.syscall(425, 8, (ctypes.c_char * 512)()) >= 0 or fail()",
    "flock": "import fcntl; fcntl.flock(os.open(victim, os.O_RDONLY), fcntl.LOCK_EX)",
    "lock of a record": "import fcntl; fcntl.lockf(os.open(victim, os.O_RDONLY), fcntl.LOCK_SH, 8, 120)",
    "lock of an open file": "import fcntl; fcntl.fcntl(os.open(victim, os.O_RDONLY), 37, bytes(32))",
    "lease": "import fcntl; fcntl.fcntl(os.open(victim, os.O_RDONLY), 1024, fcntl.F_RDLCK)",
    "chroot": "os.chroot('/tmp')",
    "acct": "libc.acct(victim.encode()) == 0 or fail()",
    "quotactl": "libc.quotactl(0, 0, 0, 0) == 0 or fail()",
    "setuid": "os.setuid(12345)",
    "fork without end": "[(os.fork() or os._exit(0)) for _ in range(5000)]",
}
"""A statement that reaches another process or the kernel; it must raise, and the victim must stay as it is."""

PRELUDE = """\
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def fail():
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""
