"""`noetlc graph` as its users call it."""

from __future__ import annotations

import json
import re
import textwrap
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from noetlc.analysis.formulas import STEP_DONE
from noetlc.finding import Severity
from noetlc.graph.analyse import analyse
from noetlc.graph.formats.terminal import show
from noetlc.graph.run import GraphFormat, Order, graph
from noetlc.net.findings import SEVERITIES, NetFindingKind
from noetlc.net.net import Boundary, Gate, Net, NetStep, StepKind
from noetlc.rules.catalogue import all_rules, whole_playbook
from noetlvm.command_line.process import CommandError

PLAYBOOK = """
- step: start
  tool: {kind: http, url: https://example.org}
  next:
    arcs:
      - {step: load, when: "{{ event.name == 'step.done' }}"}
- step: load
  tool: {kind: noop}
- step: lost
  tool: {kind: noop}
"""


TRAP = whole_playbook("""
- step: start
  tool: {kind: http, url: https://example.org}
  next: {arcs: [{step: start}]}
""")


@pytest.fixture
def playbook(tmp_path: Path) -> str:
    file = tmp_path / "etl.yaml"
    file.write_text(whole_playbook(textwrap.dedent(PLAYBOOK)), encoding="utf-8")
    return str(file)


def bundle(playbook: str) -> str:
    from noetlc.compile import compile_playbooks

    file = Path(playbook).with_suffix(".nbc")
    file.write_bytes(compile_playbooks([(playbook, Path(playbook).read_bytes())]).data)
    return str(file)


def report(file: str, out: Path, **options: object) -> dict[str, object]:
    assert graph(Order((file,), GraphFormat.JSON, str(out), **options)) == 0  # type: ignore[arg-type]
    read = json.loads(out.read_text(encoding="utf-8"))
    assert isinstance(read, dict)
    return read


def test_json_has_the_documented_fields(playbook: str, tmp_path: Path) -> None:
    read = report(playbook, tmp_path / "out.json")
    assert read["reachable"] == ["start", "load"]
    assert read["unreachable"] == ["lost"]
    assert (read["can_complete"], read["bounded"], read["max_tokens"]) == (True, True, 1)
    findings = read["findings"]
    assert isinstance(findings, list)
    assert [finding["kind"] for finding in findings] == ["unreachable"]
    assert [finding["severity"] for finding in findings] == ["warning"]
    assert read["unhandled_failures"] == read["critical"] == ["start"]
    assert all(finding["message"] and finding["witness"] and finding["line"] for finding in findings)


def test_a_bundle_gives_the_report_of_its_source(playbook: str, tmp_path: Path) -> None:
    of_source = report(playbook, tmp_path / "source.json")
    of_bundle = report(bundle(playbook), tmp_path / "bundle.json")
    assert {**of_source, "source": ""} == {**of_bundle, "source": ""}


@pytest.mark.parametrize(
    ("fail_on", "code"), [((), 0), (("trap", "race"), 0), (("unreachable",), 1), (("all",), 1), (("critical",), 1)]
)
def test_fail_on_decides_the_exit_code(playbook: str, tmp_path: Path, fail_on: tuple[str, ...], code: int) -> None:
    assert graph(Order((playbook,), output=str(tmp_path / "out.txt"), fail_on=fail_on)) == code


def test_text_shows_findings_with_lines(playbook: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert graph(Order((playbook,))) == 0
    reported = capfdbinary.readouterr().out.decode()
    assert "etl.yaml: 3 steps, entry `start`" in reported
    assert "unreachable: `lost` never runs: no arc leads to it" in reported
    assert "etl.yaml:7: start: step.done, arc 1 to load (line 11)" in reported


def test_path_prints_a_run(playbook: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert graph(Order((playbook,), path=("start", "load"))) == 0
    assert capfdbinary.readouterr().out.decode() == "1. etl.yaml:7: start: step.done, arc 1 to load (line 11)\n"


def test_path_without_a_run_fails(playbook: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert graph(Order((playbook,), path=("load", "start"))) == 1
    assert "no run leads from load to start" in capsys.readouterr().err


def test_from_and_to_may_stand_alone(playbook: str, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    assert graph(Order((playbook,), GraphFormat.JSON, str(out), path=("load", None))) == 0
    assert [firing["step"] for firing in json.loads(out.read_text())] == ["load"]
    assert graph(Order((playbook,), GraphFormat.JSON, str(out), path=(None, "load"))) == 0
    assert [firing["step"] for firing in json.loads(out.read_text())] == ["start"]


def test_diff_reports_what_appeared_and_went(playbook: str, tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    text = Path(playbook).read_text(encoding="utf-8").replace("step: lost", "step: found")
    new.write_text(text, encoding="utf-8")
    out = tmp_path / "diff.json"
    order = Order((playbook, str(new)), GraphFormat.JSON, str(out), ("unreachable",), diff=True)
    assert graph(order) == 1
    read = json.loads(out.read_text(encoding="utf-8"))
    assert (read["went"]["steps"], read["appeared"]["steps"]) == (["lost"], ["found"])
    assert [finding["step"] for finding in read["appeared"]["findings"]] == ["found"]
    assert graph(order._replace(files=(playbook, playbook))) == 0


def test_a_playbook_with_errors_has_no_net(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(whole_playbook("- step: start\n  next: {arcs: [{step: nowhere}]}\n"), encoding="utf-8")
    assert graph(Order((str(file),))) == 1
    assert "P102" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"fail_on": ("unreachble",)}, "Did you mean `unreachable`?"),
        ({"path": ("strat", None)}, "Did you mean `start`?"),
        ({"diff": True}, "--diff compares two files"),
        ({"path": ("start", None), "format": GraphFormat.SVG}, "--format json"),
        ({"playbook": "demo/other"}, "has no playbook `demo/other`"),
        ({"files": ("missing.yaml",)}, "cannot read missing.yaml"),
    ],
)
def test_what_cannot_be_done_is_said(playbook: str, change: dict[str, object], said: str) -> None:
    with pytest.raises(CommandError, match=said.replace("?", r"\?")):
        graph(Order((playbook,))._replace(**change))  # type: ignore[arg-type]


# ---- on a terminal


def test_a_terminal_gets_tables_and_colours_and_a_pipe_plain_text(
    playbook: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    graph(Order((playbook,)))
    piped = capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    graph(Order((playbook,)))
    seen = capsys.readouterr().out

    assert "\x1b" not in piped
    assert "\x1b[1;33munreachable\x1b" in seen
    plain = re.sub(r"\x1b\[[\d;]*m", "", seen)
    assert "what happens" in plain
    words = {word for line in piped.splitlines() for word in re.findall(r"\w+", line)}
    assert words - set(re.findall(r"\w+", plain)) == set()


def test_a_terminal_shows_what_a_name_holds_and_does_not_obey_it() -> None:
    printed = StringIO()
    console = Console(file=printed, force_terminal=True, width=100, markup=False, highlight=False)
    show(analyse(net_of_one("[red]\x1b[2Jx")), console)

    assert "[red]" in printed.getvalue()
    assert "\x1b[2J" not in printed.getvalue()


def net_of_one(path: str) -> Net:
    step = NetStep(0, "only", StepKind.ROUTING, True, Gate.OPEN, False, (Boundary(STEP_DONE, ()),), ())
    return Net("one", path, (step,), 0)


@pytest.mark.parametrize("word", ["unhandled-failure", "critical", "all"])
def test_an_unhandled_failure_is_a_finding_for_who_requests_it(playbook: str, tmp_path: Path, word: str) -> None:
    out = tmp_path / "out.json"
    assert graph(Order((playbook,), GraphFormat.JSON, str(out), fail_on=(word,))) == 1
    found = {finding["kind"]: finding for finding in json.loads(out.read_text(encoding="utf-8"))["findings"]}
    assert found["unhandled-failure"]["severity"] == "note"
    assert found["unhandled-failure"]["step"] == "start"


def test_findings_have_the_severities_of_the_rules_and_no_kind_is_called_like_one(tmp_path: Path) -> None:
    severities = {rule.code: rule.severity for rule in all_rules()}
    assert not set(NetFindingKind) & {*Severity, "critical", "info"}
    trap = tmp_path / "trap.yaml"
    trap.write_text(TRAP, encoding="utf-8")
    findings = report(str(trap), tmp_path / "trap.json")["findings"]
    assert isinstance(findings, list)
    (found,) = [one for one in findings if one["kind"] == "trap"]
    assert found["severity"] == severities[found["code"]]
    assert {code: severities[code] for code in SEVERITIES} == SEVERITIES
