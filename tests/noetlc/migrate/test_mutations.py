"""Whatever is in a file, migration ends, leaves YAML that can be read, and has nothing left to do afterwards."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from noetlc.cli.migrate import migrate_bytes
from noetlc.finding import Severity
from noetlc.lint.check import check_source
from noetlc.migrate.migration import migrate_text
from noetlc.migrate.report import MigrationStatus
from noetlc.settings import DialectChoice, Settings
from noetlc.syntax.span import Source
from noetlc.syntax.yaml_reader import read_document

TEXTS = [file.read_text("utf-8") for file in sorted((Path(__file__).parents[3] / "conformance/migrate").glob("*.yaml"))]
VALUES = ("[]", "{}", "null", "true", "3", "'x'", '"{{ a.b }}"', "*x", "&a", "|", "[[1], {a: b}]")
WORDS = ("step", "when", "then", "next", "tool", "kind", "eval", "do", "case", "vars", "set", "loop", "else")
MUTANTS = 60
AS_V10 = Settings(dialect=DialectChoice.V10)


def mutated(chance: random.Random) -> str:
    lines = chance.choice(TEXTS).splitlines(keepends=True)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines))
        kind = chance.randrange(4)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(at, chance.choice(chance.choice(TEXTS).splitlines(keepends=True)))
        elif kind == 2 and ":" in lines[at]:
            lines[at] = f"{lines[at].partition(':')[0]}: {chance.choice(VALUES)}\n"
        else:
            lines[at] = lines[at].replace(chance.choice(WORDS), chance.choice(WORDS), 1)
    return "".join(lines)


@pytest.mark.parametrize("seed", range(10))
def test_a_mutant_is_migrated_once_and_stays_readable(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(MUTANTS):
        text = mutated(chance)
        migration = migrate_text(text)
        if migration.changed:
            assert read_document(migration.after).problems == ()
            assert migrate_text(migration.after).after == migration.after


def errors(text: str) -> int:
    found = check_source(Source("x.yaml", text), AS_V10).findings
    return sum(finding.severity is Severity.ERROR for finding in found)


@pytest.mark.parametrize("seed", range(10))
def test_a_migrated_mutant_has_no_more_errors_than_before(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(MUTANTS):
        text = mutated(chance)
        report = migrate_bytes("x.yaml", text.encode(), AS_V10)
        if report.migration.changed:
            assert errors(report.migration.after) <= errors(text)


def test_what_an_older_construct_hid_is_corrected_first() -> None:
    steps = "    next:\n      - step: true\n        when: 3\n      - step: cleanup\n"
    text = (
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: x, path: x}\n"
        f"workflow:\n  - step: start\n    tool: {{kind: noop}}\n{steps}"
    )
    report = migrate_bytes("x.yaml", text.encode(), AS_V10)
    assert (report.status, report.migration.changed) == (MigrationStatus.HAND, False)
    assert {remark.code for remark in report.errors} == {"R916", "P021", "P102"}


def comments(text: str) -> list[str]:
    return sorted(line.partition("#")[2] for line in text.splitlines() if " #~" in f" {line}")


@pytest.mark.parametrize("text", TEXTS)
def test_no_comment_is_lost(text: str) -> None:
    """Every line that can have one gets a comment of its own."""
    document = read_document(text)
    inside = {number for span in document.scalar_spans for number in _further_lines(text, span.start, span.end)}
    lines = [
        line if number in inside or not line.strip() else f"{line} #~{number}"
        for number, line in enumerate(text.splitlines())
    ]
    commented = "\n".join(lines) + "\n"
    assert read_document(commented).problems == ()
    assert comments(migrate_text(commented).after) == comments(commented)


def _further_lines(text: str, start: int, end: int) -> range:
    """Return the lines of a scalar that a comment would change; of a block text, all but the first."""
    first, last = text.count("\n", 0, start), text.count("\n", 0, end)
    return range(first + 1, last + 1)
