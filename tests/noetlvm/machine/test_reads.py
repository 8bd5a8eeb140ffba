"""A command carries what the code of its step can read, and nothing else."""

from __future__ import annotations

import pytest

from noetlvm.machine.reads import Reads, part
from tests.noetlvm.machine.control.drive import Drive, loaded

NOTHING: frozenset[str] = frozenset()
PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: x, path: x}}
workload: {{word: 1}}
keychain:
  - {{name: api, kind: environment}}
  - {{name: other, kind: environment}}
workflow:
  - step: start
    tool:
      - call: {task}
"""


def reads(task: str) -> Reads:
    pipeline = loaded(PLAYBOOK.format(task=task)).steps["start"].pipeline
    assert pipeline is not None
    return pipeline.reads


@pytest.mark.parametrize(
    ("template", "ctx", "workload", "steps"),
    [
        ("nothing", NOTHING, NOTHING, NOTHING),
        ("{{ ctx.a }}", {"a"}, NOTHING, NOTHING),
        ("{{ ctx['a'] }} {{ ctx.b.c }}", {"a", "b"}, NOTHING, NOTHING),
        ("{{ ctx[args.which] }}", None, NOTHING, NOTHING),
        ("{{ ctx | length }}", None, NOTHING, NOTHING),
        ("{{ ctx.get('a') }}", None, NOTHING, NOTHING),
        ("{{ workload.url }}", NOTHING, {"url"}, NOTHING),
        ("{% for key in workload %}{{ key }}{% endfor %}", NOTHING, None, NOTHING),
        ("{{ word }}", {"word"}, {"word"}, {"word"}),
    ],
)
def test_templates_read_the_keys_that_they_name(
    template: str, ctx: set[str] | None, workload: set[str] | None, steps: set[str]
) -> None:
    found = reads(f'{{kind: noop, x: "{template}"}}')
    assert (found.ctx, found.workload, found.steps) == (ctx, workload, steps)


@pytest.mark.parametrize(
    ("task", "entries"),
    [
        ("{kind: http, url: http://x}", NOTHING),
        ("{kind: http, url: http://x, auth: api}", {"api"}),
        ('{kind: http, url: "http://{{ ctx.host }}", auth: api}', {"api"}),
        ('{kind: http, url: "http://{{ ctx.host }}", auth: {entry: api, as: bearer}}', {"api"}),
        ('{kind: http, url: http://x, headers: {x: "{{ keychain.other.token }}"}}', {"other"}),
        ('{kind: http, url: http://x, auth: "{{ ctx.which }}"}', {"api", "other"}),
        ("{kind: http, url: http://x, auth: \"{{ 'api' if ctx.a else 'other' }}\"}", {"api", "other"}),
        ('{kind: http, url: http://x, auth: {entry: "{{ ctx.which }}"}}', {"api", "other"}),
    ],
)
def test_keychain_entries_are_those_that_the_step_can_use(task: str, entries: set[str]) -> None:
    found = reads(task).keychain
    assert {name for name in ("api", "other") if found is None or name in found} == entries


def test_a_part_of_a_mapping_has_the_named_keys_only() -> None:
    whole = {"a": 1, "b": 2}
    assert part(whole, frozenset("ac")) == {"a": 1}
    assert part(whole, None) is whole
    assert part(whole, frozenset("abc")) is whole


@pytest.mark.parametrize(
    ("task", "whole"),
    [
        ("{kind: python, code: 'result = context'}", True),
        ("{kind: python, script: {uri: ./count.py}}", True),
        ("{kind: python, code: '{{ workload.word }}'}", True),
        ("{kind: python, code: 'x = {{ workload.word }}; result = context'}", True),
        ("{kind: python, code: 'result = 1'}", False),
        ("{kind: shell, command: [echo, context]}", False),
    ],
)
def test_code_that_may_read_its_context_gets_all_of_it(task: str, whole: bool) -> None:
    found = reads(task)
    assert [found.ctx is None, found.workload is None, found.steps is None] == [whole] * 3
    assert found.keychain is not None


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("{kind: http, url: http://x}", ()),
        ("{kind: http, url: http://x, auth: other}", ("other",)),
        ('{kind: http, url: https://x, headers: {A: "{{ keychain[args.which] }}"}}', ("api", "other")),
    ],
)
def test_a_command_names_the_secrets_that_its_step_reads(task: str, names: tuple[str, ...]) -> None:
    drive = Drive(PLAYBOOK.format(task=task)).start()
    assert drive.control.work(drive.ready[0]).keychain == names
