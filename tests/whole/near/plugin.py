"""The plugin of pytest that makes the record: `REACH=all pytest -p tests.whole.near.plugin`.

It also leaves out the tests that are not listed in the file that `NEAR_TESTS` names. It works with pytest-xdist: each
worker writes what its tests reach, and the process that started them puts it together.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from tests.whole.near.record import MODULE, PACKAGES, RECORD, ROOT, Record, Row, digests

_PREFIXES = tuple(f"{ROOT}{os.sep}{package}{os.sep}" for package in PACKAGES)
_STARTS = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec")
"""Audit events of a test that starts a process."""


class Recorder:
    """Notes the functions that tests call, in all threads of this process."""

    def __init__(self) -> None:
        self._record = Record()
        self._called: set[CodeType] = set()
        self._starts = False
        self._of_fixtures: dict[tuple[str, str], tuple[set[CodeType], bool]] = {}
        """By name and place of a fixture that several tests share: what setting it up called, and whether it starts a
        process."""
        self._numbers: dict[str, int] = {}
        self._number_of: dict[CodeType, int | None] = {}
        sys.addaudithook(self._on_audit)

    def _on_audit(self, event: str, _: object) -> None:
        if event in _STARTS:
            self._starts = True

    def _on_call(self, frame: FrameType, _event: str, _value: object) -> None:
        self._called.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._called, self._starts = set(), False
        began = time.perf_counter()
        threading.settrace(self._on_call)  # lines are not traced: it returns None
        sys.settrace(self._on_call)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            self._note(item, time.perf_counter() - began)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function":
            return (yield)
        around, self._called = self._called, set()
        starts, self._starts = self._starts, False
        try:
            return (yield)
        finally:
            self._of_fixtures[fixturedef.argname, fixturedef.baseid] = self._called, self._starts
            self._called, self._starts = around | self._called, starts or self._starts

    def _note(self, item: pytest.Item, seconds: float) -> None:
        called, starts = self._called.copy(), self._starts
        for (name, place), (codes, one_starts) in self._of_fixtures.items():
            if name in getattr(item, "fixturenames", ()) and item.nodeid.startswith(place):
                called |= codes
                starts = starts or one_starts
        numbers = {number for code in called if (number := self._number(code)) is not None}
        self._record.rows[item.nodeid] = Row(seconds, starts, sum(1 << number for number in numbers))

    def _number(self, code: CodeType) -> int | None:
        if code not in self._number_of:
            name = name_of(code)
            self._number_of[code] = self._numbers.setdefault(name, len(self._numbers)) if name else None
        return self._number_of[code]

    def finish(self) -> Record:
        self._record.functions = list(self._numbers)
        return self._record


def name_of(code: CodeType) -> str:
    """Return the function of the project that a code belongs to, or nothing."""
    if not code.co_filename.startswith(_PREFIXES):
        return ""
    outer = code.co_qualname.partition(".<locals>")[0]
    return f"{os.path.relpath(code.co_filename, ROOT)}:{MODULE if '<' in outer else outer}"


def _part_of(worker: str) -> Path:
    return RECORD.with_name(f"{worker}.part")


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("REACH"):
        config.pluginmanager.register(Recorder(), "reach-recorder")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not near."""
    if listed := os.environ.get("NEAR_TESTS"):
        near = set(Path(listed).read_text(encoding="utf-8").splitlines())  # tests, and files of tests
        chosen = [item for item in items if {item.nodeid, item.nodeid.partition("::")[0]} & near]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen


def pytest_sessionfinish(session: pytest.Session) -> None:
    recorder: Recorder | None = session.config.pluginmanager.get_plugin("reach-recorder")
    if recorder is None:
        return
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        recorder.finish().write(_part_of(worker))
        return
    is_whole = os.environ["REACH"] == "all"
    record = Record() if is_whole else Record.read() or Record()
    record.add(recorder.finish())
    for part in RECORD.parent.glob("*.part"):
        made = Record.read(part)
        assert made is not None
        record.add(made)
        part.unlink()
    record.prune()
    if is_whole:
        record.files = digests()
    record.write()
