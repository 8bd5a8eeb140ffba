from __future__ import annotations

import pytest

from noetlc.syntax.input import looks_like_playbook

PLAYBOOKS = {
    "api version": "apiVersion: noetl.io/v2\n",
    "an older api version": "apiVersion: noetl.io/v1\n",
    "kind alone": "kind: Playbook\n",
    "kind with a comment": "kind: Playbook  # ours\n",
    "workflow with steps": "workflow:\n  - step: start\n",
    "workflow with steps at its own column": "workflow:\n- step: start\n",
    "workflow last and still empty": "metadata: {}\nworkflow:",
    "workflow that is wrongly a mapping": "workflow:\n  start: {}\n",
    "quoted keys and values": "\"apiVersion\": 'noetl.io/v2'\n",
    "comments and markers before it": "# etl\n%YAML 1.2\n---\n\n# more\nkind: 'Playbook'\n",
    "byte order mark": "\ufeffkind: Playbook\n",
    "windows line breaks": "metadata: 1\r\nkind: Playbook\r\nworkflow: []\r\n",
    "old mac line breaks": "metadata: 1\rkind: Playbook\r",
    "indented root": "  metadata: {}\n  kind: Playbook\n",
    "flow mapping": '{"apiVersion": "noetl.io/v2", "kind": "Playbook"}',
    "broken further down": "kind: Playbook\nworkflow: [\n",
}

OTHERS = {
    "nothing": "",
    "only comments": "# kind: Playbook\n",
    "a manifest": "apiVersion: apps/v1\nkind: Deployment\n",
    "an argo workflow": "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec: {}\n",
    "nested keys": "spec:\n  kind: Playbook\n  apiVersion: noetl.io/v2\n  workflow: []\n",
    "a list": "- kind: Playbook\n",
    "an ansible playbook": "- hosts: all\n  tasks: []\n",
    "a gitlab pipeline": "stages: [a]\nworkflow:\n  rules:\n    - if: $CI\n",
    "a gitlab pipeline with a comment": "workflow: # when\n\n  # why\n  name: x\n",
    "a longer kind": "kind: PlaybookRun\n",
    "a longer key": "workflows:\n  - a\n",
    "text that mentions it": "description: |\n  apiVersion: noetl.io/v2\n",
    "other json": '{"name": "x", "description": "noetl.io/v2"}',
}


@pytest.mark.parametrize("text", PLAYBOOKS.values(), ids=PLAYBOOKS.keys())
def test_a_playbook_is_recognised(text: str) -> None:
    assert looks_like_playbook(text.encode())


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS.keys())
def test_other_yaml_is_left_alone(text: str) -> None:
    assert not looks_like_playbook(text.encode())


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_playbook_in_utf_16_is_found_so_that_lint_can_object(encoding: str) -> None:
    assert looks_like_playbook("\ufeffkind: Playbook\n".encode(encoding))


@pytest.mark.parametrize(
    "data", [b"\0" * 100, b"\xff" * 100, b"\xff\xfe", b" \n" * 50_000, b"workflow:\n" + b"\n# x" * 50_000]
)
def test_any_bytes_get_an_answer(data: bytes) -> None:
    assert looks_like_playbook(data) in (True, False)
