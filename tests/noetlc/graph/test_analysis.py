"""The analyses on small playbooks whose answers a person can see."""

from __future__ import annotations

import textwrap

import networkx as nx
import pytest

from bench.generate_nets import generate_net
from noetlc.compile import compile_playbooks
from noetlc.graph.analyse import analyse, path_witness
from noetlc.graph.ordering import always_after, always_before
from noetlc.graph.report import GraphReport
from noetlc.net.findings import NetFindingKind
from noetlc.net.moves import branch_may_end
from noetlc.net.net import Net, Reason
from noetlc.net.program import nets_of
from noetlc.net.program import program_net as build_net
from noetlc.net.reach import reach
from noetlc.rules.catalogue import whole_playbook


def net_of(steps: str) -> Net:
    text = whole_playbook(textwrap.dedent(steps))
    compiled = compile_playbooks([("net.yaml", text.encode())])
    assert compiled.program is not None, [finding for file in compiled.files for finding in file.findings]
    return nets_of(compiled.program)[0]


def report_of(steps: str) -> GraphReport:
    return analyse(net_of(steps), "net.yaml")


FORK = """
- step: start
  next:
    spec: {mode: inclusive}
    arcs:
      - step: left
      - step: right
- step: left
  next:
    arcs: [{step: join}]
- step: right
  next:
    arcs: [{step: join}]
- step: join
"""


def test_a_fork_gives_two_tokens_and_they_meet_without_waiting() -> None:
    report = report_of(FORK)
    assert report.max_tokens == 2
    assert report.step_tokens == {"start": 1, "left": 1, "right": 1, "join": 2}
    assert ("left", "right") in report.concurrent
    assert ("join", "join") in report.concurrent
    assert report.always_before["join"] == "start"
    assert report.always_after["start"] == "join"


def test_a_step_with_a_time_limit_can_fail_whatever_it_does() -> None:
    step = """
    - step: start
      spec: {policy: {lifecycle: {deadline_s: 60}}}
      next: {arcs: [{step: rescue, when: "{{ event.status == 'error' }}"}]}
    - step: rescue
    """
    assert report_of(step).unreachable == ()
    unlimited = step.replace("lifecycle: {deadline_s: 60}", "failure: {mode: best_effort}")
    assert [one.step for one in report_of(unlimited).unreachable] == ["rescue"]


def test_guards_that_exclude_each_other_make_no_fork() -> None:
    report = report_of("""
    - step: start
      next:
        spec: {mode: inclusive}
        arcs:
          - {step: left, when: "{{ workload.kind | default('a') == 'a' }}"}
          - {step: right, when: "{{ workload.kind | default('a') == 'b' }}"}
    - step: left
    - step: right
    """)
    assert report.max_tokens == 1
    assert report.concurrent == ()


def test_a_text_that_reads_false_is_neither_a_guard_nor_its_negation() -> None:
    report = report_of("""
    - step: start
      next:
        arcs:
          - {step: left, when: "{{ workload.full | default(false) }}"}
          - {step: right, when: "{{ not (workload.full | default(false)) }}"}
          - {step: other}
    - step: left
    - step: right
    - step: other
    """)
    assert "other" in report.reachable  # S9: `'false'` is false as a guard and true inside `not`


def test_a_guard_and_its_negation_leave_nothing_to_a_third_arc() -> None:
    report = report_of("""
    - step: start
      next:
        arcs:
          - {step: left, when: "{{ workload.kind | default('a') == 'a' }}"}
          - {step: right, when: "{{ workload.kind | default('a') != 'a' }}"}
          - {step: other}
    - step: left
    - step: right
    - step: other
    """)
    assert [(dead.arc, dead.reason) for dead in report.dead_arcs] == [(3, Reason.SHADOWED)]
    assert [one.step for one in report.unreachable] == ["other"]


def test_a_step_that_cannot_fail_never_takes_its_error_arc() -> None:
    report = report_of("""
    - step: start
      tool: {kind: noop}
      next:
        arcs:
          - {step: rescue, when: "{{ event.name == 'step.failed' }}"}
    - step: rescue
    """)
    assert [(dead.step, dead.reason) for dead in report.dead_arcs] == [("start", Reason.EVENT)]


def test_a_computed_input_can_fail() -> None:
    report = report_of("""
    - step: start
      tool: {kind: noop, note: "{{ workload.note | default('') | int }}"}
      next:
        arcs:
          - {step: rescue, when: "{{ event.name == 'step.failed' }}"}
    - step: rescue
    """)
    assert report.dead_arcs == ()


def test_a_policy_that_never_fails_has_no_failure() -> None:
    net = net_of("""
    - step: start
      tool:
        - get:
            kind: http
            url: https://example.org
            spec:
              policy:
                rules:
                  - {when: "{{ outcome.status == 'error' }}", then: {do: break}}
                  - else: {then: {do: continue}}
    """)
    assert [ending.event for ending in net.steps[0].endings] == ["step.done"]


def test_a_gate_that_never_opens_is_why_a_step_never_runs() -> None:
    report = report_of("""
    - step: start
      next:
        arcs: [{step: late}]
    - step: late
      spec:
        policy:
          admit:
            rules:
              - else: {then: {allow: false}}
      tool: {kind: noop}
    """)
    assert [(one.step, one.reason) for one in report.unreachable] == [("late", Reason.GATE)]
    assert report.can_complete
    assert report.findings[0].witness[-1].event == "token.rejected"


def test_an_endless_cycle_is_a_trap_and_the_way_round_is_shown() -> None:
    report = report_of("""
    - step: start
      tool: {kind: http, url: https://example.org}
      next:
        arcs: [{step: again}]
    - step: again
      next:
        arcs: [{step: start}]
    """)
    assert not report.can_complete
    (trap,) = (finding for finding in report.findings if finding.kind is NetFindingKind.TRAP)
    assert [firing.step for firing in trap.witness] == ["start", "again"]
    assert report.longest_path is None
    assert report.shortest_path == ()


def test_the_final_step_runs_after_all_others_and_needs_no_arc() -> None:
    text = whole_playbook(f"{FORK}- step: summary\n")
    text = text.replace("workflow:", "executor: {spec: {final_step: summary}}\nworkflow:", 1)
    compiled = compile_playbooks([("net.yaml", text.encode())])
    assert compiled.program is not None
    assert "summary" in analyse(nets_of(compiled.program)[0]).reachable


def test_a_witness_has_the_lines_of_steps_and_arcs() -> None:
    witness = path_witness(net_of(FORK), None, "join")
    assert witness is not None
    first = witness[0]
    assert first.step == "start"
    assert first.where is not None
    assert [place.line - first.where.line for place in first.arcs_where if place] == [4, 5]


def test_no_way_leads_to_what_cannot_be_reached() -> None:
    assert path_witness(net_of(FORK), "join", "left") is None
    assert path_witness(net_of(FORK), "join", "nowhere") is None


def test_numbers_stop_growing_at_many() -> None:
    steps = []
    for number in range(40):
        arcs = f"{{step: s{number + 1}}}, {{step: s{number + 1}}}"
        steps.append(f"- step: s{number}\n  next: {{spec: {{mode: inclusive}}, arcs: [{arcs}]}}")
    report = report_of("\n".join([*steps, "- step: s40"]))
    assert report.max_tokens == 1_000_000_000
    assert report.max_tokens_witness == ()


@pytest.mark.parametrize("size", [50, 1_000])
def test_order_is_what_networkx_says(size: int) -> None:
    found = reach(build_net(generate_net(size)))
    graph = nx.DiGraph((step, arc.target) for step in found.arrived for arc in found.paths.onward[step])
    before = nx.immediate_dominators(graph, found.net.entry)
    assert {step: above for step, above in always_before(found).items() if above is not None} == {
        step: above for step, above in before.items() if step != found.net.entry
    }
    ends = [(step, "end") for step in found.arrived if branch_may_end(found.net.steps[step])]
    backwards = nx.DiGraph([*graph.edges, *ends]).reverse()
    after = nx.immediate_dominators(backwards, "end")
    assert {step: above for step, above in always_after(found).items() if above is not None} == {
        step: above for step, above in after.items() if step != "end" and above != "end"
    }
    cycles = [sorted(one) for one in nx.strongly_connected_components(graph) if len(one) > 1]
    assert found.cycles == sorted(cycles)


def test_work_grows_with_the_net_and_not_faster() -> None:
    """Counted in calls, not in seconds: ten times the net takes about ten times the calls."""
    calls = [_calls(size) for size in (300, 3_000)]
    assert calls[1] < 14 * calls[0]


def _calls(size: int) -> int:
    import cProfile
    import pstats

    playbook = generate_net(size)
    profile = cProfile.Profile()
    profile.runcall(lambda: analyse(build_net(playbook)))
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]
