"""A command's process ends early, and yet loses nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import metadata

import pytest

from noetlvm.command_line.declared import CommandProgram
from noetlvm.command_line.process import CANNOT_RUN, EXTRAS, run_program
from noetlvm.language.tool_kinds import builtin_kinds


def process(text: str, stdout: int | None = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    program = (
        f"import atexit, sys, threading, time\nfrom noetlvm.command_line.process import begin, leave, settle\n{text}"
    )
    return subprocess.run(
        [sys.executable, "-c", program], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )


def test_what_was_printed_and_the_exit_code_come_out() -> None:
    done = process("print('x' * 100_000, end=''); sys.stderr.write('y'); leave(3); print('never')")
    assert (done.returncode, len(done.stdout), done.stderr) == (3, 100_000, "y")


def test_exit_functions_run_first_and_may_print() -> None:
    done = process("atexit.register(print, 'last'); print('first'); leave(0)")
    assert (done.returncode, done.stdout) == (0, "first\nlast\n")


@pytest.mark.parametrize(("module", "said"), [
    ("uvicorn", "noetlvm: this needs the package `uvicorn`: pip install 'noetlc[server]'\n"),
    ("nats.aio", "noetlvm: this needs the package `nats`: pip install 'noetlc[nats]'\n"),
    ("noetlvm.lost", "noetlvm: internal error: ModuleNotFoundError: "),
])  # fmt: skip
def test_a_package_that_is_not_installed_is_named_with_its_extra(
    module: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load() -> CommandProgram:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr(sys, "argv", ["noetlvm", "server"])
    assert run_program("noetlvm", "1", load) == CANNOT_RUN
    assert capsys.readouterr().err.startswith(said)


def test_every_extra_that_a_message_names_exists() -> None:
    offered = metadata("noetlc").get_all("Provides-Extra") or []
    assert set(EXTRAS.values()) <= set(offered)


def test_commands_and_tool_kinds_name_the_same_extra_of_a_package() -> None:
    packages = {kind.package: kind.extra for kind in builtin_kinds().values()}
    assert {package: extra for package, extra in EXTRAS.items() if packages.get(package, extra) != extra} == {}


def test_a_thread_that_is_still_at_work_ends_it() -> None:
    # The thread ends after `leave` has begun, or before: the answer is the same.
    done = process("threading.Thread(target=lambda: (time.sleep(0.2), print('done'))).start(); leave(4)")
    assert (done.returncode, done.stdout) == (4, "done\n")


def test_every_watcher_sees_the_end() -> None:
    done = process("sys.setprofile(lambda *_: None)\ntry:\n    leave(5)\nfinally:\n    print('seen')")
    assert (done.returncode, done.stdout) == (5, "seen\n")


def test_output_that_is_not_read_is_reported_as_python_does() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ours, pythons = (process(f"print('x')\n{end}", writing) for end in ("leave(0)", "sys.exit(0)"))
    os.close(writing)
    assert ours.returncode == pythons.returncode != 0
    assert ours.stderr == pythons.stderr != ""


def test_garbage_is_looked_for_rarely_at_first_and_more_often_in_a_long_run() -> None:
    done = process(
        "import gc; usual = gc.get_threshold(); begin(); patient = gc.get_threshold(); settle(); "
        "print(patient > gc.get_threshold() > usual, gc.get_freeze_count() > 0)"
    )
    assert done.stdout == "True True\n"


def test_a_process_that_did_not_begin_as_a_command_keeps_its_ways() -> None:
    done = process("import gc; before = gc.get_freeze_count(); settle(); print(gc.get_freeze_count() - before)")
    assert done.stdout == "0\n"  # Python 3.12 freezes objects by itself
