"""A command carries what the code of its step can read, and nothing else."""

from __future__ import annotations

import pytest

from noetlvm.machine.reads import Reads, part
from tests.noetlvm.machine.control.drive import loaded

NOTHING: frozenset[str] = frozenset()


def reads(task: str) -> Reads:
    found = loaded(
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: x, path: x}\nworkload: {word: 1}\n"
        "keychain:\n  - {name: api, kind: environment}\n  - {name: other, kind: environment}\n"
        f"workflow:\n  - step: start\n    tool:\n      - call: {task}\n"
    )
    pipeline = found.steps["start"].pipeline
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
