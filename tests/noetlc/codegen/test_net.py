"""Steps to transitions, and playbooks to programs."""

from __future__ import annotations

import pytest

from noetlvm.bytecode.program import DebugMap, Mark, addresses
from tests.noetlc.codegen.listing import listing
from tests.noetlc.codegen.steps import program_of, step_of

END = "- step: end\n"


def gate(*rows: str, on_deny: str = "wait") -> str:
    listed = ", ".join(rows)
    return f"- step: start\n  spec: {{ policy: {{ admit: {{ on_deny: {on_deny}, rules: [{listed}] }} }} }}\n"


def test_a_step_without_a_gate_admits_everybody() -> None:
    step = step_of("- step: start\n")
    assert step.admit is None
    assert step.pipeline is None
    assert step.arcs == ()
    assert step.settings == {}


def test_a_gate_that_always_opens_is_no_gate() -> None:
    assert step_of(gate("{ else: { then: { allow: true } } }")).admit is None


def test_a_gate_is_one_guard_that_lets_nobody_in_where_no_rule_holds() -> None:
    step = step_of(gate('{ when: "{{ ctx.ok }}", then: { allow: true } }', on_deny="drop"))
    assert step.drops_denied
    assert step.admit is not None
    assert "; ".join(listing(step.admit)) == (
        "NAME 'ctx'; ATTR 'ok'; TRUTH; JUMP_UNLESS 6; CONST True; JUMP 7; CONST False; TRUTH; RETURN"
    )


def test_a_loop_is_sequential_local_and_one_wide_unless_it_says_otherwise() -> None:
    (loop,) = step_of("- step: start\n  loop: { in: [1, 2], iterator: n }\n").loops
    assert (loop.iterator, loop.parallel, loop.width, loop.distributed, loop.reducers) == ("n", False, 1, False, ())
    assert listing(loop.collection) == ["CONST [1, 2]", "RETURN"]


def test_a_parallel_loop_is_distributed_and_32_wide_unless_it_says_otherwise() -> None:
    (loop,) = step_of("- step: start\n  loop: { in: [1], iterator: n, spec: { mode: parallel } }\n").loops
    assert (loop.parallel, loop.width, loop.distributed) == (True, 32, True)


def test_what_a_loop_says_counts() -> None:
    policy = "{ exec: local, reducers: { total: sum, best: max } }"
    spec = f"{{ mode: parallel, max_in_flight: 4, policy: {policy} }}"
    (loop,) = step_of(f"- step: start\n  loop: {{ in: [1], iterator: n, spec: {spec} }}\n").loops
    assert (loop.width, loop.distributed) == (4, False)
    assert loop.reducers == (("best", "max"), ("total", "sum"))


def test_an_inner_loop_sees_the_iteration_around_it_and_the_outer_one_none() -> None:
    inner = '{ in: "{{ iter.city.hotels }}", iterator: hotel }'
    outer, nested = step_of(
        f'- step: start\n  loop: {{ in: "{{{{ iter.x }}}}", iterator: city, loop: {inner} }}\n'
    ).loops
    assert listing(outer.collection)[0] == "BARE 'iter'"
    assert listing(nested.collection) == ["NAME 'iter'", "ATTR 'city'", "ATTR 'hotels'", "REQUIRE 'in'", "RETURN"]


def test_an_arc_whose_guard_reads_the_event_handles_failures() -> None:
    step = step_of(
        "- step: start\n  next:\n    spec: { mode: inclusive }\n    arcs:\n"
        "      - { step: end, when: \"{{ event.name == 'step.failed' }}\" }\n"
        '      - { step: end, when: "{{ ctx.a }}", args: { n: "{{ ctx.n }}" } }\n'
        "      - { step: end, args: {} }\n" + END
    )
    assert step.inclusive
    assert [arc.handles_failure for arc in step.arcs] == [True, False, False]
    assert [arc.guard is None for arc in step.arcs] == [False, False, True]
    assert [arc.args is None for arc in step.arcs] == [True, False, True]


def test_hints_are_handed_on_as_written() -> None:
    step = step_of(
        "- step: start\n"
        "  spec: { policy: { lifecycle: { timeout_s: 5 }, failure: { mode: best_effort }, tracing: { level: 2 } } }\n"
        "  loop: { in: [1], iterator: n, spec: { policy: { ordering: strict } } }\n"
        "  next: { spec: { policy: { dedupe: true } }, arcs: [{ step: end, spec: { weight: 3 } }] }\n" + END
    )
    assert step.best_effort
    assert step.settings == {
        "lifecycle": {"timeout_s": 5},
        "tracing": {"level": 2},
        "loops": [{"ordering": "strict"}],
        "router": {"policy": {"dedupe": True}},
        "arcs": [{"weight": 3}],
    }


HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: n, path: a/n, owner: me }\n"


@pytest.mark.parametrize(
    ("rest", "entry"),
    [
        ("workflow: [{ step: a }, { step: start }]\n", "start"),
        ("workflow: [{ step: a }, { step: b }]\n", "a"),
        ("executor: { spec: { entry_step: b } }\nworkflow: [{ step: start }, { step: b }]\n", "b"),
    ],
)
def test_the_first_token_goes_to_the_entry_step_else_start_else_the_first(rest: str, entry: str) -> None:
    assert program_of(HEAD + rest).playbooks[0].entry_step == entry


def test_what_surrounds_the_net_is_preserved() -> None:
    playbook = program_of(
        HEAD
        + "keychain: [{ name: k, kind: env, variable: K }]\n"
        + "executor: { profile: local, version: 1, spec: { final_step: b, no_next_is_error: true,"
        + " policy: { limits: { max_transitions: 9 } } } }\n"
        + "workload: { z: 1, a: [x] }\nworkflow: [{ step: a }, { step: b }]\n"
    ).playbooks[0]
    assert (playbook.name, playbook.path, playbook.metadata) == ("n", "a/n", {"owner": "me"})
    assert (playbook.final_step, playbook.no_next_is_error) == ("b", True)
    assert playbook.executor == {
        "profile": "local", "version": 1, "spec": {"policy": {"limits": {"max_transitions": 9}}},
    }  # fmt: skip
    assert list(playbook.workload.items()) == [("z", 1), ("a", ["x"])]
    (credential,) = playbook.keychain
    assert (credential.name, credential.kind, credential.settings) == ("k", "env", {"variable": "K"})


def test_the_debug_map_leads_from_every_address_to_the_line() -> None:
    program = program_of(
        HEAD + "workflow:\n  - step: start\n    tool:\n      - fetch:\n          kind: http\n"
        '          url: "{{ ctx.url }}"\n'
    )
    debug = program.debug
    assert isinstance(debug, DebugMap)
    assert [entry.address for entry in debug.entries] == [address.name for address in addresses(program)]
    marks = {entry.address: (entry.construct, entry.marks[0]) for entry in debug.entries}
    assert marks["start"] == ("step", Mark(0, 5, 11))
    assert marks["start/tool.1.1"] == ("task fetch", Mark(0, 9, 20))
    for address, entry in zip(addresses(program), debug.entries, strict=True):
        assert len(entry.marks) == address.marks
