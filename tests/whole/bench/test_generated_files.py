"""The benchmarks' inputs: valid, the same each time, and as long as they claim to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bench.generate_peer_files import cloudformation_template, github_workflow
from bench.generate_playbooks import playbook, write_playbooks
from noetlc.finding import Severity
from noetlc.lint.check import check_source
from noetlc.syntax.span import Source


@pytest.mark.parametrize("lines", [0, 40, 100, 600])
@pytest.mark.parametrize("number", range(6))
def test_a_playbook_lints_clean_of_errors(number: int, lines: int) -> None:
    findings = check_source(Source("generated.yaml", playbook(number, lines))).findings
    assert [finding for finding in findings if finding.severity is Severity.ERROR] == []


@pytest.mark.parametrize("generate", [playbook, cloudformation_template, github_workflow])
def test_a_file_is_the_same_each_time_and_differs_from_the_next(generate: Callable[[int, int], str]) -> None:
    assert generate(3, 100) == generate(3, 100)
    assert generate(3, 100) != generate(4, 100)


@pytest.mark.parametrize("generate", [playbook, cloudformation_template, github_workflow])
@pytest.mark.parametrize("lines", [100, 1_000])
def test_a_file_is_about_as_long_as_requested_and_no_longer(generate: Callable[[int, int], str], lines: int) -> None:
    for number in range(10):
        assert lines - 20 <= generate(number, lines).count("\n") <= lines


def test_most_templates_of_a_playbook_are_in_no_other() -> None:
    first, second = ({part for part in playbook(n, 600).split('"') if "{{" in part} for n in (1, 2))
    assert len(first & second) < len(first) / 2


@pytest.mark.parametrize("number", range(3))
def test_a_workflow_is_yaml_with_jobs_that_have_steps(number: int) -> None:
    workflow = yaml.safe_load(github_workflow(number, 100))
    assert len(workflow["jobs"]) > 2
    assert all(job["steps"] for job in workflow["jobs"].values())


@pytest.mark.parametrize("number", range(3))
def test_a_template_is_yaml_with_resources(number: int) -> None:
    root = yaml.compose(cloudformation_template(number, 100))
    assert isinstance(root, yaml.MappingNode)
    sections = {key.value: value for key, value in root.value}
    assert len(sections["Resources"].value) > 2


def test_playbooks_are_spread_over_folders(tmp_path: Path) -> None:
    files = write_playbooks(tmp_path, 51, 40)
    assert len(files) == 51
    assert {file.parent.name for file in files} == {"part_00", "part_01"}
    assert all(file.read_text(encoding="utf-8").startswith("# ") for file in files)
