"""PNML: by the book, read back by other people's tools, and the same token game as the net."""

from __future__ import annotations

import importlib.util
import warnings
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from noetlc.analysis.formulas import STEP_DONE
from noetlc.graph.analyse import analyse
from noetlc.graph.formats import pnml
from noetlc.net.net import Boundary, Gate, Net, NetArc, NetStep, StepKind
from tests.noetlc.graph.pictures.playbooks import chain_report, hostile_report, playbook, report_of
from tests.noetlc.graph.pictures.pnml_grammar import NAMESPACE, violations

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from noetlc.graph.report import GraphReport


@dataclass(frozen=True)
class ReadNet:
    """A net as a reader understood it. Nodes go by their ids."""

    places: frozenset[str]
    transitions: frozenset[str]
    arcs: frozenset[tuple[str, str, int]]
    marking: tuple[tuple[str, int], ...]


def read_by_hand(path: Path) -> ReadNet:
    root = ET.parse(path).getroot()
    tag = f"{{{NAMESPACE}}}"
    arcs = {
        (str(arc.get("source")), str(arc.get("target")), int(arc.findtext(f"{tag}inscription/{tag}text", "1")))
        for arc in root.iter(f"{tag}arc")
    }
    marked = {
        str(place.get("id")): int(place.findtext(f"{tag}initialMarking/{tag}text", "0"))
        for place in root.iter(f"{tag}place")
    }
    return ReadNet(
        frozenset(marked),
        frozenset(str(node.get("id")) for node in root.iter(f"{tag}transition")),
        frozenset(arcs),
        tuple(sorted((place, tokens) for place, tokens in marked.items() if tokens)),
    )


def read_by_snakes(path: Path) -> ReadNet:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it imports modules that Python is about to drop
        import snakes.nets
        import snakes.pnml

        net = snakes.pnml.loads(path.read_text(encoding="utf-8"))
    arcs = set()
    for transition in net.transition():
        arcs |= {(place.name, transition.name, _weight(arc)) for place, arc in transition.input()}
        arcs |= {(transition.name, place.name, _weight(arc)) for place, arc in transition.output()}
    return ReadNet(
        frozenset(place.name for place in net.place()),
        frozenset(transition.name for transition in net.transition()),
        frozenset(arcs),
        tuple(sorted((place, len(tokens)) for place, tokens in net.get_marking().items())),
    )


def _weight(arc: object) -> int:
    """Return how many tokens an arc of SNAKES moves: a value is one, a bundle of values as many as it holds."""
    parts = getattr(arc, "_components", None)
    return len(parts) if parts is not None else 1


def read_by_pm4py(path: Path) -> ReadNet:
    from pm4py.objects.petri_net.importer.variants.pnml import import_net

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it misses a final marking, which P/T nets do not have
        net, marking, _ = import_net(str(path), parameters={"auto_guess_final_marking": False})
    return ReadNet(
        frozenset(place.name for place in net.places),
        frozenset(transition.name for transition in net.transitions),
        frozenset((arc.source.name, arc.target.name, arc.weight) for arc in net.arcs),
        tuple(sorted((place.name, tokens) for place, tokens in marking.items())),
    )


INDEPENDENT: dict[str, Callable[[Path], ReadNet]] = {"snakes": read_by_snakes, "pm4py": read_by_pm4py}


def wide_net(arcs: int) -> Net:
    """Return a net whose first step may fire any set of arcs, two of them to the same step."""
    nowhere = (Boundary(STEP_DONE, ()),)
    ways = tuple(NetArc(0, index, 1 + index // 2, f"guard {index}", False) for index in range(arcs))
    done = Boundary(STEP_DONE, tuple(((), (index,)) for index in range(arcs)))
    first = NetStep(0, "first", StepKind.ROUTING, True, Gate.OPEN, False, (done,), ways)
    rest = [
        NetStep(number, f"end_{number}", StepKind.ROUTING, False, Gate.UNSURE, True, nowhere, ())
        for number in range(1, 2 + arcs // 2)
    ]
    return Net("wide", "tests/wide", (first, *rest), 0)


def examples() -> dict[str, GraphReport]:
    return {
        "playbook": report_of(playbook(20)),
        "chain": chain_report(60),
        "hostile": hostile_report(),
        "few combinations": analyse(wide_net(3)),
        "many combinations": analyse(wide_net(12)),
    }


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pnml")
    written = {}
    for name, report in examples().items():
        written[name] = folder / f"{name}.pnml"
        written[name].write_text(pnml.render(report), encoding="utf-8")
    return written


def test_documents_keep_to_the_published_grammar(documents: dict[str, Path]) -> None:
    for path in documents.values():
        assert violations(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('<position x="', '<position z="'),
        ("<text>1</text>\n        </inscription>", "<text>0</text>\n        </inscription>"),
        ('<dimension x="32"', '<dimension x="3200"'),
        ('<page id="page">', ""),
        ('id="arc2"', 'id="arc1"'),
        ('target="step1"', 'target="nowhere"'),
    ],
)
def test_the_check_of_the_grammar_sees_mistakes(good: str, bad: str, documents: dict[str, Path]) -> None:
    text = documents["chain"].read_text(encoding="utf-8")
    assert good in text
    broken = text.replace(good, bad, 1)
    if "<page" in good:
        broken = broken.replace("</page>", "")
    assert violations(broken)


def test_other_tools_read_the_same_net(
    documents: dict[str, Path], record_property: Callable[[str, object], None]
) -> None:
    """Every independent reader on this machine is used, and one of our own."""
    present = [name for name in INDEPENDENT if importlib.util.find_spec(name)]
    for name, path in documents.items():
        own = read_by_hand(path)
        assert own.places
        assert own.marking == (("step0", 1),)
        assert len(own.arcs) == path.read_text(encoding="utf-8").count("<arc "), name
        for reader in present:
            assert INDEPENDENT[reader](path) == own, (reader, name)
    record_property(
        "pnml", f"read back by {', '.join(present)}" if present else "read back by the tests' own reader only"
    )


def reachable_places(net: ReadNet) -> set[str]:
    """Play the token game as far as single tokens go: every transition here takes one token from one place."""
    inputs = {transition: place for place, transition, _ in net.arcs if transition in net.transitions}
    outputs: dict[str, list[str]] = {}
    for source, target, _ in net.arcs:
        if source in net.transitions:
            outputs.setdefault(inputs[source], []).append(target)
    ahead = [place for place, _ in net.marking]
    seen = set(ahead)
    while ahead:
        for place in outputs.get(ahead.pop(), ()):
            if place not in seen:
                seen.add(place)
                ahead.append(place)
    return seen


def test_the_places_that_get_tokens_are_the_reachable_steps(documents: dict[str, Path]) -> None:
    for name, report in examples().items():
        reached = reachable_places(read_by_hand(documents[name]))
        steps = {step.name for step in report.net.steps if f"step{step.index}" in reached}
        assert steps == set(report.reachable), name


def test_an_ending_with_many_choices_stays_small() -> None:
    made = pnml.petri_net(wide_net(12))
    assert len(made.nodes) < 60
    assert sum(node.is_place for node in made.nodes) == 8 + 12


def test_an_ending_with_few_choices_is_one_firing_for_each_combination() -> None:
    made = pnml.petri_net(wide_net(3))
    assert sum(name.id.startswith("step0.") for name in made.nodes) == 8
    assert 2 in {weight for _, _, weight in made.arcs}


def test_a_gate_that_drops_is_a_transition_to_nowhere() -> None:
    made = pnml.petri_net(wide_net(3))
    dropped = next(at for at, node in enumerate(made.nodes) if node.id == "step1.dropped")
    assert [arc for arc in made.arcs if dropped in arc[:2]] == [(1, dropped, 1)]
