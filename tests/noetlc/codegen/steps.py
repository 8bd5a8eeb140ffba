"""Lowers steps that are written in canonical form already."""

from __future__ import annotations

from noetlc.codegen.program import Unit, link, lower_playbook
from noetlc.rules.catalogue import whole_playbook
from noetlc.syntax.playbook_parser import parse_playbook
from noetlc.syntax.span import Source
from noetlc.syntax.yaml_reader import read_document
from noetlvm.bytecode.program import Pipeline, Program, Transition
from tests.noetlc.codegen.listing import listing


def program_of(text: str) -> Program:
    """Return the program of a playbook or of a list of steps."""
    whole = whole_playbook(text)
    root = read_document(whole).root
    assert root is not None
    playbook = parse_playbook(root).playbook
    assert playbook is not None
    return link([lower_playbook(Unit(playbook, Source("playbook.yaml", whole), "playbook.yaml", {}))])


def step_of(text: str) -> Transition:
    """Return the first step of a list of steps."""
    return program_of(text).playbooks[0].steps[0]


def pipeline_of(tasks: str, loop: bool = False) -> Pipeline:
    """Return the pipeline of a list of labelled tasks, written at the margin."""
    head = "- step: start\n"
    head += '  loop: { in: "{{ workload.items }}", iterator: item }\n' if loop else ""
    indented = "".join(f"    {line}\n" for line in tasks.strip("\n").splitlines())
    pipeline = step_of(f"{head}  tool:\n{indented}").pipeline
    assert pipeline is not None
    return pipeline


def code_of(tasks: str, loop: bool = False) -> list[str]:
    """Return a pipeline's code; calls without the code of their inputs."""
    return [_short(line) for line in listing(pipeline_of(tasks, loop))]


def _short(line: str) -> str:
    return line.partition(" [")[0] if line.startswith("CALL") else line
