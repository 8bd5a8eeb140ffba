"""The JSON Schema says what the parser says: it accepts what is well-formed and refuses what is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from noetlc.finding import Severity
from noetlc.lint.check import check_bytes
from noetlc.rules.catalogue import all_rules, whole_playbook
from noetlc.schema import playbook_schema
from noetlc.syntax.nodes import plain
from noetlc.syntax.yaml_reader import read_document
from tests.whole.conformance.suite import Case, read_cases

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
STRUCTURE = {"P020", "P021", "P022", "P023", "P024", "P025", "P026", "P301", "P302", "P303", "P903", "P907", "P908"}
"""Codes of mistakes that a schema can see."""
VALIDATOR = jsonschema.Draft202012Validator(playbook_schema())


def accepts(data: bytes) -> bool:
    root = read_document(data.decode()).root
    return root is not None and VALIDATOR.is_valid(plain(root))


def codes(case: Case) -> set[str]:
    return {finding["code"] for finding in case.expect["findings"]}


CASES = read_cases("lint")


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(playbook_schema())


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.stem != "mistakes"], ids=lambda path: path.stem)
def test_examples_are_accepted(path: Path) -> None:
    assert accepts(path.read_bytes())


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_good_examples_of_rules_are_accepted(rule: Any) -> None:
    assert accepts(whole_playbook(rule.good).encode())


@pytest.mark.parametrize("case", [case for case in CASES if case.expect["exit"] == 0], ids=lambda case: case.id)
def test_conforming_playbooks_are_accepted(case: Case) -> None:
    assert accepts(case.data)


@pytest.mark.parametrize("case", [case for case in CASES if codes(case) & STRUCTURE], ids=lambda case: case.id)
def test_structural_mistakes_are_refused(case: Case) -> None:
    assert not accepts(case.data)


def properties(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield every key that the schema declares, with its schema."""
    if isinstance(schema, dict):
        for key, value in schema.get("properties", {}).items():
            if "const" not in value or key in ("apiVersion", "kind"):
                yield key, value
        for value in schema.values():
            yield from properties(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from properties(value)


def test_every_key_has_a_text_to_show() -> None:
    definitions = playbook_schema()["$defs"]
    conditions = [one["then"] for one in definitions["task"]["allOf"]]
    assert sum(1 for _ in properties(conditions)) > 60
    silent = [key for key, schema in properties(conditions) if "description" not in schema and key != "spec"]
    for name, definition in definitions.items():
        found = definition.get("properties", {}).items()
        silent += [f"{name}.{key}" for key, schema in found if not schema.get("description")]
    assert silent == []


STYLES = sorted((Path(__file__).parents[1] / "whole" / "styles").glob("*.yaml"))


@pytest.mark.parametrize("path", STYLES, ids=lambda path: path.stem)
def test_styles_without_errors_are_accepted(path: Path) -> None:
    findings = check_bytes(path.name, path.read_bytes()).findings
    if not any(finding.severity is Severity.ERROR for finding in findings):
        assert accepts(path.read_bytes())


@pytest.mark.parametrize(
    ("task", "is_right"),
    [
        ("{kind: http, url: 'https://example.com', auth: api, spec: {timeout: 5}}", True),
        ("{kind: http, url: 'https://example.com', auth: {source: api}, spec: {timeout: '{{ workload.t }}'}}", True),
        ("{kind: htpt, url: 'https://example.com'}", False),
        ("{kind: http, url: 3}", False),
        ("{kind: http, method: FETCH, url: 'https://example.com'}", False),
        ("{kind: http, url: 'https://example.com', auth: 3}", False),
        ("{kind: http, url: 'https://example.com', spec: {timeout: [1]}}", False),
        ("{kind: snowflake, query: SELECT 1}", True),
    ],
)
def test_kind_inputs_auth_and_settings_are_checked(task: str, is_right: bool) -> None:
    assert accepts(whole_playbook(f"- step: start\n  tool: {task}\n").encode()) == is_right


@pytest.mark.parametrize("value", ['"{{ iter.delay }}"', "2", "0.5"])
def test_a_template_may_stand_for_a_typed_value(value: str) -> None:
    text = f"""
- step: start
  loop: {{in: "{{{{ workload.items }}}}", iterator: item}}
  tool:
    - get:
        kind: http
        url: "{{{{ iter.item }}}}"
        params: "{{{{ ctx.params }}}}"
        spec: {{policy: {{rules: [{{else: {{then: {{do: retry, attempts: 2, delay: {value}}}}}}}]}}}}
"""
    assert accepts(whole_playbook(text).encode())
