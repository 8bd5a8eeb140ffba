"""A program that is ready to run: steps by name, places in the source, leases of loops."""

from __future__ import annotations

from typing import Any

import pytest

from noetlvm.bytecode.codec.encoder import encode
from noetlvm.bytecode.program import ExpressionCode, KeychainEntry, LoopHeader, Pipeline
from noetlvm.expr.errors import ExpressionError, Fuel
from noetlvm.machine.loaded import Evaluator, load_program, locate, prepare
from noetlvm.machine.payload import Offload
from noetlvm.machine.scope import server_names
from noetlvm.record import changed
from tests.noetlvm.bytecode.programs import (
    EMPTY,
    constant,
    expression,
    guard,
    pipeline,
    playbook,
    program,
    step,
    with_debug,
)
from tests.noetlvm.machine.frame.pipelines import program_of

PLAYBOOK = """
executor: { spec: { final_step: end, no_next_is_error: true, policy: { limits: { max_transitions: 9 } } } }
workload: { n: 1 }
workflow:
  - step: start
    spec:
      policy:
        admit:
          rules:
            - when: "{{ workload.n > 0 }}"
              then: { allow: true }
            - else: { then: { allow: false } }
    tool: { kind: noop }
    next:
      arcs:
        - step: end
          when: "{{ event.result.n > 'a' }}"
          args: { n: "{{ event.result.n }}" }
  - step: end
"""


def test_a_playbook_has_its_steps_by_name_and_its_limits() -> None:
    book = program_of(PLAYBOOK).main
    assert list(book.steps) == ["start", "end"]
    assert (book.entry_step, book.final_step, book.no_next_is_error) == ("start", "end", True)
    assert book.limits.max_transitions == 9
    assert book.steps["end"].pipeline is None
    assert book.workload == {"n": 1}


def test_expressions_are_functions_and_their_errors_have_places() -> None:
    book = program_of(PLAYBOOK).main
    names = server_names(Offload(), results={}, workload=book.workload, ctx={}, args={}, event={"result": {"n": 2}})
    step = book.steps["start"]
    assert step.admit is not None
    assert step.admit(names, Fuel()) is True
    (arc,) = step.arcs
    assert arc.args is not None
    assert arc.args(names, Fuel()) == {"n": 2}
    assert arc.guard is not None
    with pytest.raises(ExpressionError) as failed:
        arc.guard(names, Fuel())
    reported = arc.guard.failure(failed.value)
    assert reported["details"] == {"expression": "start/arc.1/when", "place": "playbook.yaml:20:36"}
    assert book.locate("start/arc.1/when", failed.value.at) == "playbook.yaml:20:36"


def test_a_boundary_event_is_read_through_its_references() -> None:
    offload = Offload()
    result = offload.shrink({"n": 5, "text": "x" * 100_000})
    event = {"result": result, "data": {"result": result}, "status": "success"}
    names = server_names(offload, results={"start": result}, event=event, iter=None)
    assert names["event"]["result"]["n"] == names["event"]["data"]["result"]["n"] == names["steps"]("start")["n"] == 5
    assert "iter" not in names


def test_places_of_further_playbooks_are_found_below_their_path() -> None:
    code = pipeline("END")
    made = program(playbook(step("start", code=code)), playbook(step("start", code=code), path="samples/z", name="z"))
    loaded = prepare(with_debug(made))
    assert locate(loaded, "start/tool", 0) == "sample.yaml:2:1"
    assert locate(loaded, "samples/z#start/tool", 0) == "sample.yaml:4:1"
    assert loaded.playbooks["samples/z"].locate("start/tool") == "sample.yaml:4:1"
    assert locate(loaded, "nowhere/tool") == ""


def test_a_stripped_bundle_has_addresses_for_places() -> None:
    loaded = prepare(program(playbook(step("start", code=pipeline("END")))))
    assert locate(loaded, "start/tool", 0) == ""
    code = loaded.main.steps["start"].pipeline
    assert code is not None
    assert code.locate(0) == "start/tool.0"


@pytest.mark.parametrize(
    ("levels", "unit"),
    [([], ""), ([True], "4"), ([False], ""), ([True, True], "4.2"), ([True, False], "4"), ([False, True], "4.2")],
)
def test_a_lease_covers_what_a_local_loop_runs(levels: list[bool], unit: str) -> None:
    header = LoopHeader(constant([1]), "item", True, 2, True, ())
    loops = tuple(
        changed(header, iterator=f"item_{level}", distributed=distributed) for level, distributed in enumerate(levels)
    )
    loaded = prepare(program(playbook(step("start", code=pipeline("END"), loops=loops))))
    path = ".".join(["4", "2"][: len(levels)])
    assert loaded.main.steps["start"].unit(path) == unit


def gate(code: ExpressionCode) -> Evaluator:
    admit = prepare(program(playbook(step("start", admit=code)))).main.steps["start"].admit
    assert admit is not None
    return admit


def call(kind: str, label: str = "a") -> tuple[tuple[object, ...], ...]:
    return ("ENTER", label), ("CALL", kind, EMPTY, EMPTY), ("CONTINUE", "next"), ("LABEL", "next")


def test_nothing_is_checked_again_unless_it_is_wished() -> None:
    made = program(playbook(step("start", code=pipeline("END"))))
    for loaded, is_checked in (
        (load_program(encode(made)), False),
        (prepare(made), False),
        (prepare(made, checked=True), True),
    ):
        code = loaded.main.steps["start"].pipeline
        assert code is not None
        assert code._setting.is_checked is is_checked


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (constant(5), 5),
        (expression(("NAME", "ctx"), "RETURN"), {"n": 1}),
        (expression(("CONST", 5), "NEG", "RETURN"), -5),
    ],
)
def test_an_expression_gives_its_value_whether_it_is_a_constant_or_not(code: ExpressionCode, value: Any) -> None:
    assert gate(code)({"ctx": {"n": 1}}, Fuel()) == value


@pytest.mark.parametrize(("instruction", "column"), [(None, 1), (0, 1), (1, 3), (2, 1), (9, 1)])
def test_an_instruction_without_a_place_of_its_own_has_that_of_the_first(instruction: int | None, column: int) -> None:
    loaded = prepare(with_debug(program(playbook(step("start", code=pipeline(("MARK", "a"), "END"))))))
    assert locate(loaded, "start/tool", instruction) == f"sample.yaml:2:{column}"


RULES = guard(
    *(("NAME", "ctx"), ("ATTR", "n"), ("JUMP_UNLESS", "second"), ("CONST", False), ("JUMP", "end")),
    *(("LABEL", "second"), ("CONST", False), ("LABEL", "end")),
)


@pytest.mark.parametrize(
    ("code", "n", "rule"),
    [
        (RULES, 1, 1),
        (RULES, 0, 2),
        (guard(("NAME", "ctx"), ("ATTR", "n")), 0, 0),
        (guard(("NAME", "ctx"), ("ATTR", "n")), 7, 0),
        (guard(("NAME", "ctx"), ("ATTR", "n")), "text", 0),
        (expression(("NAME", "ctx"), ("ATTR", "n"), ("CONST", 1), ("COMPARE", "=="), "RETURN"), 0, 0),
    ],
)
def test_the_rule_that_decides_is_known_where_a_gate_is_made_of_rules(code: ExpressionCode, n: Any, rule: int) -> None:
    assert gate(code).deciding_rule({"ctx": {"n": n, 1: 1}})[0] == rule


@pytest.mark.parametrize(
    ("code", "calls_first", "tasks"),
    [
        (pipeline(*call("http"), "END"), True, [("a", "http", 0)]),
        (pipeline(*call("noop"), "END"), False, [("a", "noop", 0)]),
        (pipeline(*call("playbook"), "END"), False, [("a", "playbook", 0)]),
        (pipeline(("MARK", "x"), *call("http", "b"), "END"), False, [("b", "http", 1)]),
        (None, False, []),
    ],
)
def test_a_step_knows_its_tasks_and_whether_it_begins_with_a_call_that_takes_time(
    code: Pipeline | None, calls_first: bool, tasks: list[tuple[str, str, int]]
) -> None:
    book = prepare(program(playbook(step("start", code=code)))).main
    found = book.steps["start"]
    assert (found.calls_first, found.calls_first) == (calls_first, calls_first)
    assert list(found.pipeline.tasks() if found.pipeline else ()) == tasks
    assert found.kinds() == book.kinds() == {kind for _, kind, _ in tasks}


@pytest.mark.parametrize(
    ("kinds", "keychain", "has_secrets"),
    [(["http", "noop"], (), False), (["http", "secrets"], (), True), ([], (KeychainEntry("a", "b", {}),), True)],
)
def test_a_program_has_secrets_if_one_of_its_playbooks_has(
    kinds: list[str], keychain: tuple[KeychainEntry, ...], has_secrets: bool
) -> None:
    steps = (step(kind, code=pipeline(*call(kind), "END")) for kind in kinds)
    secret = changed(playbook(step("start"), *steps), keychain=keychain)
    loaded = prepare(program(playbook(step("start"), path="samples/z"), secret))
    assert [book.has_secrets for book in loaded.playbooks.values()] == [has_secrets] * 2
    assert loaded.kinds() == set(kinds)
