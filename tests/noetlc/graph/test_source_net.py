"""The net that lint makes of a source is the program's own, but for endings that the source alone cannot rule out."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from noetlc.analysis.guard_formulas import guard_formula
from noetlc.graph.build import nets_of
from noetlc.graph.guards import formula_of
from noetlc.net.operands import event_facts
from noetlc.net.routers import choices

from noetlc.analysis.model import Model
from noetlc.compile import PlaybookFile, compile_playbooks
from noetlc.syntax.nodes import Scalar
from noetlc.syntax.playbook_parser import parse_playbook
from noetlc.syntax.span import Source, Span
from noetlc.syntax.yaml_reader import read_document
from tests.noetlc.graph.random_playbooks import GUARDS, guard_code

CASES = sorted((Path(__file__).parents[3] / "conformance" / "lint").glob("*.yaml"))


def model_of(path: Path) -> Model | None:
    source = Source(path.name, path.read_text(encoding="utf-8"))
    document = read_document(source.text)
    parsed = parse_playbook(document.root) if document.root else None
    return Model(source, document, parsed.playbook, ()) if parsed and parsed.playbook else None


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_lint_sees_the_net_of_the_program(path: Path) -> None:
    compiled = compile_playbooks([PlaybookFile(path.name, path.read_bytes())])
    if compiled.program is None:
        assert any(finding.severity.value == "error" for file in compiled.files for finding in file.findings)
        return
    model = model_of(path)
    assert model is not None
    assert model.net is not None
    for of_source, of_program in zip(model.net.net.steps, nets_of(compiled.program)[0].steps, strict=True):
        assert of_source.name == of_program.name
        assert (of_source.gate, of_source.inclusive, of_source.drops_denied) == (
            of_program.gate,
            of_program.inclusive,
            of_program.drops_denied,
        )
        known = {ending.event: ending.choices for ending in of_source.endings}
        assert {ending.event: known.get(ending.event) for ending in of_program.endings} == {
            ending.event: ending.choices for ending in of_program.endings
        }


def test_guards_mean_the_same_as_source_and_as_code() -> None:
    rng = random.Random(5)
    for _ in range(500):
        texts = rng.sample(GUARDS, 3)
        scalars = [Scalar(Span(0, 0), "{{ " + text + " }}", "{{ " + text + " }}", '"') for text in texts]
        for event in ("step.done", "loop.done", "step.failed"):
            facts = event_facts(event, "s", event == "loop.done")
            for inclusive in (True, False):
                of_source = choices([guard_formula(scalar, facts) for scalar in scalars], inclusive)
                of_code = choices([formula_of(guard_code(text), facts) for text in texts], inclusive)
                assert of_source == of_code, texts
