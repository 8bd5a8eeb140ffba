"""Codes say nothing about severity, and the codes of old comments and configurations still mean what they meant."""

from pathlib import Path

import pytest

from noetlc.finding import TOPICS, current_codes
from noetlc.lint.ignores import find_ignores
from noetlc.rules.catalogue import all_rules
from noetlc.settings import settings_for
from tests.commands import Command

PLAYBOOK = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: twice, path: twice}
workflow:
  - step: start
    tool:
      - save: {kind: noop}
      - save: {kind: noop}
"""


def test_every_rule_has_a_code_of_a_known_topic() -> None:
    assert [rule.code for rule in all_rules() if rule.code[:2] not in TOPICS] == []
    assert len({rule.code for rule in all_rules()}) == len(all_rules())


@pytest.mark.parametrize(
    ("given", "current"),
    [
        ("E103", ("P103",)),
        ("W5", ("P5",)),
        ("L90", ("P90",)),
        ("E", ("P0", "P1", "P2", "P3")),
        ("P103", ("P103",)),
        ("W103", ("W103",)),
        ("nonsense", ("nonsense",)),
    ],
)
def test_an_old_code_or_prefix_means_the_rules_that_it_meant(given: str, current: tuple[str, ...]) -> None:
    assert current_codes(given) == current


def test_old_codes_are_read_in_ignore_comments() -> None:
    (ignore,) = find_ignores("a: 1  # noetlc: ignore[E103, W5]\n", ())
    assert (ignore.codes, ignore.problem) == (("P103", "P5"), None)


def test_old_codes_are_read_in_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("noetlc.toml").write_text('select = ["W"]\nignore = ["E103"]\nseverity = {L9 = "note"}\n')
    settings = settings_for(())
    assert (settings.select, settings.ignore, list(settings.severity)) == (("P4", "P5", "P6"), ("P103",), ["P9"])


def test_old_codes_are_read_on_the_command_line_and_by_explain(noetlc: Command) -> None:
    Path("twice.yaml").write_text(PLAYBOOK)
    assert noetlc("lint", "--select", "E103", "--format", "concise").out.count(" P103 ") == 1
    assert noetlc("lint", "--ignore", "e103,E103", "--format", "concise").code == 2
    assert noetlc("explain", "E103").out == noetlc("explain", "P103").out


def test_old_codes_are_read_in_a_baseline(noetlc: Command) -> None:
    Path("twice.yaml").write_text(PLAYBOOK)
    noetlc("lint", "--write-baseline", "--baseline", "base.json")
    base = Path("base.json")
    assert '"P103"' in base.read_text()
    base.write_text(base.read_text().replace('"P103"', '"E103"'))
    assert noetlc("lint", "--baseline", "base.json").code == 0
