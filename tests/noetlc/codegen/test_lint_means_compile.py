"""Lint without errors means that the compiler makes a bundle: over examples, conformance cases and changed ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

import pytest

from bench.generate_playbooks import playbook
from noetlc.compile import compile_playbooks
from noetlc.finding import Severity
from noetlc.rules.catalogue import all_rules, whole_playbook

ROOT = Path(__file__).resolve().parents[3]
CHANGED = 100
SIZE_ALONE = {"C004"}
"""The one error that is the compiler's own: what comes out does not fit a bundle."""


@cache
def written() -> tuple[str, ...]:
    """Every playbook that this project has: rules' examples, conformance cases, examples to start from."""
    examples = [whole_playbook(text) for rule in all_rules() for text in (rule.bad, rule.good)]
    folders = (ROOT / "conformance", ROOT / "examples")
    files = [path for folder in folders for path in sorted(folder.rglob("*.yaml"))]
    return (*examples, *(path.read_text(encoding="utf-8", errors="surrogateescape") for path in files))


def errors_of_the_compiler(text: str) -> set[str] | None:
    """Return the errors that only the compiler finds; None where lint finds some."""
    data = text.encode("utf-8", "surrogateescape")
    made = compile_playbooks([("playbook.yaml", data)])
    errors = {finding.code for finding in made.files[0].findings if finding.severity is Severity.ERROR}
    assert (made.program is None) is bool(errors)
    return errors if all(code.startswith("C") for code in errors) else None


def test_every_playbook_of_ours_compiles_or_has_lint_errors() -> None:
    found = [errors_of_the_compiler(text) for text in written()]
    assert found.count(set()) > len(found) // 2
    assert [codes for codes in found if codes] == []


@pytest.mark.parametrize("number", range(10))
def test_a_generated_playbook_compiles(number: int) -> None:
    assert errors_of_the_compiler(playbook(number, 400)) == set()


@pytest.mark.parametrize("seed", range(8))
def test_a_changed_playbook_compiles_or_has_lint_errors(seed: int) -> None:
    random = Random(seed)
    texts = [text for text in written() if len(text) < 4_000]
    lines = lines_by_key(texts)
    compiled = 0
    for _ in range(CHANGED):
        text = changed(random, random.choice(texts), lines)
        codes = errors_of_the_compiler(text)
        assert not codes or codes <= SIZE_ALONE, text
        compiled += codes == set()
    assert compiled > CHANGED // 5


def lines_by_key(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return all lines, without their indent, by the word that they begin with."""
    found: dict[str, list[str]] = {}
    for line in (line.strip() for text in texts for line in text.splitlines()):
        found.setdefault(_key(line), []).append(line)
    return found


def _key(line: str) -> str:
    return line.partition(":")[0]


def changed(random: Random, text: str, lines: dict[str, list[str]]) -> str:
    """Exchange a few lines for others with the same key, or leave one out."""
    result = text.splitlines() or [""]
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.randrange(len(result))
        line = result[at].strip()
        other = random.choice(lines.get(_key(line), [line])) if random.random() < 0.9 else ""
        result[at] = result[at][: len(result[at]) - len(result[at].lstrip())] + other
    return "\n".join(result) + "\n"
