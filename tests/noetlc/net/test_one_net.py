"""A playbook has one net: as source and as bundle, for `lint` and for `graph`, by our own searches and by networkx."""

from __future__ import annotations

import random
import textwrap
from pathlib import Path

import pytest

from noetlc.analysis.formulas import event_facts, text
from noetlc.analysis.guards import guard_formula
from noetlc.analysis.model import Model
from noetlc.analysis.routers import choices
from noetlc.compile import compile_playbooks
from noetlc.graph.analyse import analyse
from noetlc.graph.networkx_graph import networkx_reach
from noetlc.lint.check import check_source
from noetlc.net.code_guards import formula_of
from noetlc.net.findings import CONSTANT_GUARD, OTHER_EVENT, NetFindingKind, NetFindings
from noetlc.net.net import Net
from noetlc.net.program import nets_of
from noetlc.net.reach import reach
from noetlc.net.source import source_net
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.playbook_parser import parse_playbook
from noetlc.syntax.span import Source, Span
from noetlvm.bytecode.program import Program
from noetlvm.record import changed
from tests.noetlc.graph.random_playbooks import GUARDS, guard_code
from tests.noetlc.net.random_sources import ODD_GUARDS, random_source

ROOT = Path(__file__).parents[3]
FOLDERS = ("conformance/lint", "conformance/graph", "conformance/run", "conformance/canon", "examples")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.yaml"))
NET_CODES = {"P408", "P410", "P411", "P412", "P413", "P414", "P512"}
FEW, MANY = 80, 400
"""Random playbooks; many are among the long tests."""

DISAGREE = """
    - step: start
      tool:
        - choose:
            - when: "{{ workload.a }}"
              then:
                - x: {kind: noop}
            - else:
                then:
                  - y: {kind: noop}
      next:
        arcs:
          - step: finish
            when: "{{ event.name == 'step.done' }}"
          - step: mend
            when: "{{ event.name == 'step.failed' }}"
    - step: finish
      tool: {kind: noop}
    - step: mend
      tool: {kind: noop}
"""
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: a}\nworkload: {a: 1}\nworkflow:\n"


def model_of(source: str) -> Model | None:
    checked = check_source(Source("a.yaml", source))
    document = checked.document
    if document.root is None or document.is_damaged or checked.playbook is None:
        return None
    problems = document.problems + parse_playbook(document.root).problems
    return Model(checked.source, document, checked.playbook, problems)


def net_of(source: str) -> Net | None:
    model = model_of(source)
    found = source_net(model) if model else None
    return found.net if found else None


def program_of(source: str) -> Program | None:
    return compile_playbooks([("a.yaml", source.encode())]).program


def comparable(net: Net) -> Net:
    """Return what both readers know: a bundle has code and no descriptions, and races are all that reads are for."""
    has_races = any(step.inclusive for step in net.steps)
    written = frozenset(key for step in net.steps for key in step.writes) if has_races else frozenset()
    steps = [
        changed(
            step,
            pipeline=None,
            desc="",
            reads=step.reads & written,
            writes=step.writes & written,
            tools=tuple(sorted(step.tools)),
        )
        for step in net.steps
    ]
    return changed(net, steps=tuple(steps))


def assert_one_net(source: str) -> None:
    program = program_of(source)
    if program is None:
        return
    of_source, of_program = net_of(source), nets_of(program)[0]
    assert of_source is not None
    for one, other in zip(comparable(of_source).steps, comparable(of_program).steps, strict=True):
        assert one == other
    assert comparable(of_source) == comparable(of_program)


def lint_findings(source: str) -> set[tuple[str, str, int]]:
    (checked,) = compile_playbooks([("a.yaml", source.encode())]).files
    return {
        (finding.code, finding.message, checked.source.position(finding.span.start).line)
        for finding in checked.findings
        if finding.code in NET_CODES
    }


def graph_findings(net: Net) -> set[tuple[str, str]]:
    hidden = (CONSTANT_GUARD, OTHER_EVENT)  # lint reports them as what is wrong with the guard
    return {
        (finding.code, finding.message)
        for finding in analyse(net).findings
        if finding.code and finding.code not in hidden
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_source_and_bundle_have_one_net(path: Path) -> None:
    assert_one_net(path.read_text(encoding="utf-8", errors="replace"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_lint_and_graph_find_the_same(path: Path) -> None:
    source = path.read_text(encoding="utf-8", errors="replace")
    net = net_of(source)
    if net is not None and "noetlc: ignore" not in source:
        assert {(code, message) for code, message, _ in lint_findings(source)} == graph_findings(net)


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_random_playbooks_have_one_net_and_one_set_of_findings(count: int) -> None:
    rng = random.Random(9)
    compiled = 0
    for _ in range(count):
        source = random_source(rng)
        program = program_of(source)
        compiled += program is not None
        assert_one_net(source)
        net = net_of(source)
        assert net is not None
        found = {(code, message) for code, message, _ in lint_findings(source)}
        assert found == graph_findings(net), source
        if program is not None:
            assert found == graph_findings(nets_of(program)[0]), source
    assert compiled > count / 2


def test_a_choose_of_noops_cannot_fail_for_lint_and_for_graph() -> None:
    source = HEAD + textwrap.dedent(DISAGREE)
    expected = {("P411", "the arc from `start` to `mend` never fires: `start` cannot fail")}
    program = program_of(source)
    net = net_of(source)
    assert program is not None
    assert net is not None
    assert {(code, message) for code, message, _ in lint_findings(source)} == expected
    assert graph_findings(net) == graph_findings(nets_of(program)[0]) == expected


def test_guards_have_one_formula_as_source_and_as_code() -> None:
    for guard in (*GUARDS, *ODD_GUARDS):
        written = "{{ " + guard + " }}"
        scalar = Scalar(Span(0, 0), written, written, '"')
        for event in ("step.done", "loop.done", "step.failed"):
            facts = event_facts(event, "s1", event == "loop.done")
            assert text(guard_formula(scalar, facts)) == text(formula_of(guard_code(guard), facts)), guard
            for inclusive in (True, False):
                of_source = choices([guard_formula(scalar, facts)], inclusive)
                assert of_source == choices([formula_of(guard_code(guard), facts)], inclusive), guard


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
def test_networkx_and_our_own_searches_agree(count: int) -> None:
    rng = random.Random(11)
    for _ in range(count):
        net = net_of(random_source(rng))
        assert net is not None
        ours, theirs = reach(net), networkx_reach(net)
        assert list(ours.first_arcs.items()) == list(theirs.first_arcs.items())
        assert ours.arrived == theirs.arrived
        assert ours.cycles == theirs.cycles
        assert sorted(ours.components) == sorted(theirs.components)
        for number, members in enumerate(theirs.components):  # each component comes after those that it leads to
            targets = {theirs.component_of[arc.target] for step in members for arc in theirs.paths.onward[step]}
            assert all(target <= number for target in targets)
        for kind in NetFindingKind:
            one, other = NetFindings(ours).of_kind(kind), NetFindings(theirs).of_kind(kind)
            assert [(f.code, f.message, f.moves()) for f in one] == [(f.code, f.message, f.moves()) for f in other]


FORK = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: fork, path: fork}}
workflow:
  - step: start
    next: {{spec: {{mode: inclusive}}, arcs: [{{step: a}}, {{step: b}}]}}
  - step: a
    tool: {{kind: noop, spec: {{policy: {{rules: [{{else: {{then: {{do: continue, set_ctx: {{x: 1}}}}}}}}]}}}}}}
  - step: b
    spec: {{policy: {{admit: {{rules: {rules}}}}}}}
    tool: {{kind: shell, command: [echo, "{{{{ ctx.x }}}}"]}}
"""
ALLOW, DENY = "then: {allow: true}", "{else: {then: {allow: false}}}"


@pytest.mark.parametrize(
    ("guard", "waits"),
    [
        ("ctx.x is defined", True),
        ("ctx.x", True),
        ("ctx['x'] == 1", True),
        ("ctx.x > 0", True),
        ("ctx.x and ctx.y", True),
        ("ctx.x in [1, 2]", True),
        ("ctx.x == 1 or ctx.x == 2", True),
        ("ctx.x or ctx.y", False),
        ("ctx.x != 1", False),
        ("not ctx.x", False),
        ("ctx.x | default(1) == 1", False),
        ("x == 1", False),
    ],
)
def test_a_gate_that_waits_for_a_key_rules_out_its_race_in_source_and_bundle(guard: str, waits: bool) -> None:
    source = FORK.format(rules=f'[{{when: "{{{{ {guard} }}}}", {ALLOW}}}, {DENY}]')
    assert_one_net(source)
    program = program_of(source)
    assert program is not None
    found = graph_findings(nets_of(program)[0])
    assert [code for code, _ in found] == ([] if waits else ["P512"])


def test_a_gate_with_two_ways_in_waits_for_the_key_that_both_need() -> None:
    rules = f'[{{when: "{{{{ ctx.x == 1 }}}}", {ALLOW}}}, {{when: "{{{{ ctx.x == 2 and ctx.y }}}}", {ALLOW}}}, {DENY}]'
    source = FORK.format(rules=rules)
    assert_one_net(source)
    net = net_of(source)
    assert net is not None
    assert graph_findings(net) == set()
