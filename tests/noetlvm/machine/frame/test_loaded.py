"""A program that is ready to run: steps by name, places in the source, leases of loops."""

from __future__ import annotations

import pytest

from noetlvm.bytecode.program import LoopHeader
from noetlvm.expr.errors import ExpressionError, Fuel
from noetlvm.machine.loaded import locate, prepare
from noetlvm.machine.payload import Offload
from noetlvm.machine.scope import server_names
from noetlvm.record import changed
from tests.noetlvm.bytecode.programs import constant, pipeline, playbook, program, step, with_debug
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
