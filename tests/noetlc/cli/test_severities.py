"""Severities and ignores count alike in lint, compile, graph and run; what they let pass compiles if it can."""

from __future__ import annotations

import gc
import json
import time
from pathlib import Path

import pytest

from noetlc.compile import compile_playbooks
from noetlc.finding import Severity
from noetlc.lint.check import check_bytes
from noetlc.rules.catalogue import all_rules, whole_playbook
from noetlc.rules.rule import Rule
from noetlc.settings import Settings
from noetlvm import bridge
from tests.commands import Command

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: a}\n"
UNKNOWN_KEY = f"{HEADER}workflow:\n  - step: start\n    owner: me\n    tool: {{kind: noop}}\n"
UNKNOWN_STEP = (
    f"{HEADER}workflow:\n  - step: start\n    tool: {{kind: noop}}\n    next: {{arcs: [{{step: n}}, {{step: end}}]}}\n"
    "  - step: end\n    tool: {kind: noop}\n"
)
TOLERANT = [rule for rule in all_rules() if rule.severity is Severity.ERROR and not rule.stops_compiler]


@pytest.mark.parametrize("rule", TOLERANT, ids=lambda rule: rule.code)
def test_what_a_lowered_severity_lets_through_compiles(rule: type[Rule]) -> None:
    data = whole_playbook(rule.bad).encode()
    errors = {finding.code for finding in check_bytes("a.yaml", data).findings if finding.severity is Severity.ERROR}
    assert rule.code in errors
    assert compile_playbooks([("a.yaml", data)]).program is None
    lowered = compile_playbooks([("a.yaml", data)], Settings(severity=dict.fromkeys(errors, Severity.WARNING)))
    assert lowered.program is not None
    assert rule.code in {finding.code for finding in lowered.files[0].findings}


def test_a_warning_raised_to_an_error_stops_the_compiler() -> None:
    data = f"{HEADER}workflow:\n  - step: start\n".encode()
    assert compile_playbooks([("a.yaml", data)]).program is not None
    raised = compile_playbooks([("a.yaml", data)], Settings(severity={"P401": Severity.ERROR}))
    assert raised.program is None
    assert [(each.code, each.severity) for each in raised.files[0].findings] == [("P401", Severity.ERROR)]


@pytest.mark.parametrize("lowered", ["configuration", "comment"])
def test_lint_compile_graph_and_run_agree(noetlc: Command, lowered: str) -> None:
    text = UNKNOWN_KEY if lowered == "configuration" else UNKNOWN_KEY.replace("me\n", "me  # noetlc: ignore[P020]\n")
    Path("a.yaml").write_text(text)
    if lowered == "configuration":
        Path("noetlc.toml").write_text('severity = { P020 = "warning" }\n')
    assert noetlc("lint", "a.yaml").code == 0
    assert noetlc("compile", "a.yaml").code == 0
    assert noetlc("graph", "a.yaml").code == 0
    assert bridge.compile_playbooks(["a.yaml"])


def test_a_warning_raised_to_an_error_stops_every_command(noetlc: Command) -> None:
    Path("a.yaml").write_text(f"{HEADER}workflow:\n  - step: start\n")
    Path("strict.toml").write_text('severity = { P401 = "error" }\n')
    for command in ("lint", "compile", "graph"):
        assert noetlc(command, "a.yaml").code == 0
        assert noetlc(command, "a.yaml", "--config", "strict.toml").code == 1
    Path("strict.toml").rename("noetlc.toml")
    with pytest.raises(bridge.CompilationError):
        bridge.compile_playbooks(["a.yaml"])


LOST = f"{HEADER}workflow:\n  - step: start\n    tool: {{kind: noop}}\n  - step: lost\n    tool: {{kind: noop}}\n"


@pytest.mark.parametrize("silenced", ["not", "configuration", "comment"])
def test_graph_leaves_out_net_findings_that_are_silenced(noetlc: Command, silenced: str) -> None:
    comment = "  # noetlc: ignore[P410]" if silenced == "comment" else ""
    Path("a.yaml").write_text(LOST.replace("step: lost", f"step: lost{comment}"))
    if silenced == "configuration":
        Path("noetlc.toml").write_text('ignore = ["P410"]\n')
    answer = noetlc("graph", "a.yaml", "--format", "json", "--fail-on", "unreachable")
    report = json.loads(answer.out)
    assert report["unreachable"] == ["lost"]
    assert [each["kind"] for each in report["findings"]] == (["unreachable"] if silenced == "not" else [])
    assert answer.code == (1 if silenced == "not" else 0)


def test_an_error_that_leaves_nothing_to_compile_stops_every_command(noetlc: Command) -> None:
    Path("a.yaml").write_text(UNKNOWN_STEP)
    Path("noetlc.toml").write_text('severity = { P102 = "warning" }\n')
    assert noetlc("lint", "a.yaml").code == 0
    answer = noetlc("compile", "a.yaml")
    assert answer.code == 1
    assert "error[P102]" in answer.err
    with pytest.raises(bridge.CompilationError):
        bridge.compile_playbooks(["a.yaml"])


def test_what_cannot_be_compiled_in_spite_of_a_lowered_severity_is_that_error(noetlc: Command) -> None:
    Path("a.yaml").write_text(f"{HEADER}workflow:\n  - step: start\n    tool: {{kind: workbook}}\n")
    Path("noetlc.toml").write_text('severity = { P113 = "note", P107 = "note" }\n')
    answer = noetlc("compile", "a.yaml")
    assert answer.code == 1
    assert "error[P1" in answer.err
    assert "Traceback" not in answer.err


def test_the_lowest_severity_to_report_is_an_option(noetlc: Command) -> None:
    Path("a.yaml").write_text(f"{UNKNOWN_KEY}  - step: lost\n    tool: {{kind: noop}}\n")
    found = [each["severity"] for each in json.loads(noetlc("lint", "--format", "json").out)]
    assert set(found) > {"error"}
    less = json.loads(noetlc("lint", "--format", "json", "--min-severity", "error").out)
    assert {each["severity"] for each in less} == {"error"}


def test_compiling_is_linear_in_findings() -> None:
    def seconds(count: int) -> float:
        keys = "".join(f"    key_{number}: 1  # noetlc: ignore[P020]\n" for number in range(count))
        data = f"{HEADER}workflow:\n  - step: start\n{keys}    tool: {{kind: noop}}\n".encode()
        times = []
        for _ in range(3):  # the best of three: the garbage collector of a large test process interferes
            gc.collect()
            begun = time.process_time()
            assert compile_playbooks([("a.yaml", data)]).program is not None
            times.append(time.process_time() - begun)
        return min(times)

    seconds(10)  # imports
    assert seconds(1_600) < 8 * max(seconds(400), 0.01)
