"""The runner: inputs that do not fit, drivers that are missing, tools that fail in ways of their own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from noetlc.codegen.expressions import lower_template
from noetlc.syntax.template_parser import parse_template
from noetlvm.data.references import Reference, ReferringList, ReferringMap
from noetlvm.expr.errors import ErrorKind, ExpressionError, Fuel
from noetlvm.expr.interpret import compile_expression
from noetlvm.language import tool_kinds
from noetlvm.limits import KIND_CHARS_MAX
from noetlvm.tools import noop, runner, shell
from noetlvm.tools.call import Outcome, Resources, ToolCall, ok
from noetlvm.tools.runner import ToolRunner, find_tool

Run = Callable[..., Outcome]


def test_noop_needs_no_time() -> None:
    call = ToolCall("noop", {"any": 1}, {}, "key")
    assert ToolRunner().at_once(call) == ok()
    assert asyncio.run(ToolRunner().run(call)) == ok()


def test_other_tools_have_to_be_run() -> None:
    assert ToolRunner().at_once(ToolCall("shell", {}, {}, "key")) is None


@pytest.mark.parametrize(
    ("kind", "inputs", "message"),
    [
        ("shell", {}, "give exactly one of `command`, `cmds`, not 0"),
        ("http", {"url": None}, "`url` is missing or null"),
        ("shell", {"command": 3}, "`command` must be string or array, but it is integer"),
        ("shell", {"command": "x", "cmd": "y"}, "`cmd` is another name of `command`, which is given too"),
        ("http", {"url": "x", "method": "FETCH"}, "`method` is 'FETCH'; give one of GET, POST"),
        ("http", {"url": "x", "json": 1, "body": "y"}, "give at most one of `json`, `form`, `body`, not 2"),
        ("http", {"url": "x", "auth": "nobody"}, "`auth`: the keychain has no entry `nobody`"),
        ("postgres", {"command": "x", "host": "h", "port": True}, "`port` must be integer, but it is boolean"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(run: Run, kind: str, inputs: dict[str, Any], message: str) -> None:
    outcome = run(kind, inputs)
    assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == ("input", False)
    assert outcome["error"]["message"].startswith(message)


@pytest.mark.parametrize("timeout", ["20", "20.5"])
def test_a_timeout_that_is_the_text_of_a_number_is_that_number(run: Run, timeout: str) -> None:
    assert run("shell", {"command": "echo hello"}, {"timeout": timeout})["result"]["stdout"] == "hello\n"


def test_an_input_that_the_kind_does_not_have_changes_nothing(run: Run) -> None:
    assert run("shell", {"command": "echo hello", "colour": "red"})["result"]["stdout"] == "hello\n"


@pytest.mark.parametrize("kind", ["playbook", "workbook", "no-such-kind"])
def test_a_kind_that_no_worker_runs_is_an_error(run: Run, kind: str) -> None:
    assert run(kind, {})["error"]["message"].startswith(f"the tool `{kind}` cannot be run")


@pytest.mark.parametrize(
    ("kind", "module", "inputs"),
    [
        ("http", "httptools", {"url": "http://127.0.0.1/"}),
        ("postgres", "psycopg", {"command": "SELECT 1", "host": "h"}),
        ("duckdb", "duckdb", {"command": "SELECT 1"}),
    ],
)
def test_a_missing_driver_is_an_error_that_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch, kind: str, module: str, inputs: dict[str, Any]
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    for loaded in [name for name in sys.modules if name.startswith(f"noetlvm.tools.{kind}_")]:
        monkeypatch.delitem(sys.modules, loaded)
    error = run(kind, inputs)["error"]
    assert error["kind"] == "dependency"
    assert f"pip install 'noetlc[{kind}]'" in error["message"]


@pytest.mark.parametrize("raised", [ValueError("no"), TimeoutError("its own"), RecursionError("deep")])
def test_a_tool_that_raises_makes_an_error_outcome(
    run: Run, monkeypatch: pytest.MonkeyPatch, raised: Exception
) -> None:
    async def fail(_call: ToolCall, _stored: Resources) -> Outcome:
        raise raised

    monkeypatch.setattr(shell, "run", fail)
    error = run("shell", {"command": "x"})["error"]
    assert error["kind"] == "tool"
    assert error["message"] == f"{type(raised).__name__}: {raised}"


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (None, "tool", "the tool `shell` returned no outcome, but a `NoneType`"),
        ({"status": "fine"}, "tool", "the tool `shell` returned no outcome, but a `dict`"),
        ({"status": "error"}, "tool", "the tool `shell` returned no outcome, but a `dict`"),
        ({"status": "error", "error": {}}, "tool", "it failed without a message"),
        ({"status": "error", "error": {"kind": "k" * KIND_CHARS_MAX, "message": 7}}, "k" * KIND_CHARS_MAX, "7"),
        ({"status": "error", "error": {"kind": "k" * (KIND_CHARS_MAX + 1), "message": "m"}}, "tool", "m"),
    ],
)
def test_a_tool_that_gives_no_outcome_makes_an_error_outcome(
    run: Run, monkeypatch: pytest.MonkeyPatch, given: Any, kind: str, message: str
) -> None:
    async def give(_call: ToolCall, _stored: Resources) -> Outcome:
        found: Outcome = given
        return found

    monkeypatch.setattr(shell, "run", give)
    outcome = run("shell", {"command": "x"})
    assert (outcome["status"], outcome["result"]) == ("error", None)
    assert outcome["error"] == {"kind": kind, "retryable": False, "message": message, "details": {}}


def test_a_tool_that_gives_only_a_status_has_no_result(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def give(_call: ToolCall, _stored: Resources) -> Outcome:
        return {"status": "ok"}

    monkeypatch.setattr(shell, "run", give)
    assert run("shell", {"command": "x"}) == ok()


def test_stored_results_in_inputs_are_read(run: Run) -> None:
    stored = {"a" * 64: ["x", "y"], "b" * 64: "z"}
    first, second = (Reference("results", key, 1, "") for key in stored)
    load = lambda reference: stored[reference.key]  # noqa: E731
    args = {"m": ReferringMap({"v": first}, load), "l": ReferringList([second], load)}
    assert run("python", {"code": "result = [m, l]", "args": args})["result"] == [{"v": ["x", "y"]}, ["z"]]


def test_a_stored_result_that_is_lost_is_an_error(run: Run) -> None:
    def load(_: Reference) -> Any:
        raise ExpressionError(ErrorKind.STORED, "it is gone")

    args = ReferringMap({"v": Reference("results", "a" * 64, 1, "")}, load)
    error = run("python", {"code": "result = 1", "args": args})["error"]
    assert (error["kind"], error["message"]) == ("stored", "it is gone")


def test_everything_open_is_closed_even_if_one_thing_cannot_be() -> None:
    closed = []

    class Thing:
        def __init__(self, name: str) -> None:
            self.name = name

        async def close(self) -> None:
            closed.append(self.name)
            if self.name == "a":
                raise OSError("stuck")

    async def use() -> None:
        left = Resources()
        assert left.get("a", lambda: Thing("a")) is left.get("a", lambda: Thing("other"))
        left.get("b", lambda: Thing("b"))
        await left.close()

    asyncio.run(use())
    assert sorted(closed) == ["a", "b"]


def test_a_plugin_is_run_by_what_stands_beside_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import EntryPoint

    entry = EntryPoint("noop2", "noetlvm.tools.noop:KIND", tool_kinds.ENTRY_POINT_GROUP)
    monkeypatch.setattr(tool_kinds, "_entry_points", lambda: (entry,))
    monkeypatch.setattr(tool_kinds, "find_kind", lambda name: noop.KIND if name == "noop2" else None)
    assert find_tool("noop2") is noop.run
    assert find_tool("noop3") is None


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            {"a": {1: 2, "1": 3}},
            "`outcome` has a mapping with the key 1, and keys are text; write `'1'`, or `| string`",
        ),
        ([{(1, 2): 3}], "`outcome` has a mapping with a tuple as a key, and keys are text; use text"),
    ],
)
def test_the_result_of_a_plugin_has_text_as_keys(
    run: Run, monkeypatch: pytest.MonkeyPatch, result: Any, message: str
) -> None:
    async def give(_call: ToolCall, _stored: Resources) -> Outcome:
        return {"status": "ok", "result": result}

    monkeypatch.setattr(noop, "run", give)
    monkeypatch.setattr(tool_kinds, "_BUILTIN", {name: "" for name in tool_kinds._BUILTIN if name != "noop"})
    monkeypatch.setattr(runner, "find_kind", lambda _name: noop.KIND)
    monkeypatch.setattr(runner, "find_tool", lambda _name: give)
    outcome = run("noop", {})
    assert outcome["error"]["message"] == f"the tool `noop` returned no plain data: {message}"


@pytest.mark.parametrize(
    ("kind", "inputs", "read", "value"),
    [
        ("http", {"url": "http://127.0.0.1:1/"}, "outcome.http.status | default(200)", 200),
        ("python", {"code": "result = 1"}, "outcome.py.exception_type | default('none')", "none"),
    ],
)
def test_what_does_not_apply_to_an_outcome_has_its_default(
    run: Run, kind: str, inputs: dict[str, Any], read: str, value: object
) -> None:
    evaluate = compile_expression(lower_template(parse_template(f"{{{{ {read} }}}}")).expression)
    assert evaluate({"outcome": run(kind, inputs)}, Fuel()) == value
