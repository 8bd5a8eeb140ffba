"""A command carries what the code of its step can read, and nothing else."""

from __future__ import annotations

import pytest

from noetlvm.machine.reads import Reads, part, reads_of
from tests.noetlvm.bytecode.programs import EMPTY, Row, expression, pipeline
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


def reads_of_code(*rows: Row) -> Reads:
    """Return what code reads that the compiler does not write so."""
    return reads_of(pipeline(("CALL", "python", expression(*rows, "RETURN"), EMPTY)).code)


def test_a_constant_index_is_a_key() -> None:
    assert reads_of_code(("NAME", "ctx"), ("CONST", "a"), "ITEM").ctx == {"a"}
    assert reads_of_code(("NAME", "ctx"), ("CONST", 1), "ITEM").ctx is None


@pytest.mark.parametrize(
    ("rows", "is_constant"),
    [
        # One of two sources is computed.
        ([("CONST", "x"), ("NAME", "iter"), ("RECORD", ["code", "script"])], False),
        ([("NAME", "iter"), ("CONST", "x"), ("RECORD", ["other", "code"])], True),
        # What an instruction takes is no longer there.
        ([("CONST", "x"), ("NAME", "iter"), ("ATTR", "a"), ("RECORD", ["code", "other"])], True),
        ([("NAME", "iter"), ("ATTR", "a"), ("CONST", "x"), ("RECORD", ["code", "other"])], False),
        # Past a branch nothing is known.
        ([("CONST", "x"), ("CONST", True), ("JUMP_IF", 3), ("RECORD", ["code"])], False),
        ([("JUMP", 1), ("CONST", "x"), "ADD", ("RECORD", ["code", "other"])], False),
    ],
)
def test_source_is_computed_unless_it_is_seen_to_be_constant(rows: list[Row], is_constant: bool) -> None:
    assert (reads_of_code(*rows).ctx is not None) is is_constant


def test_a_part_is_in_the_order_of_its_keys() -> None:
    keys = [f"key_{number:02}" for number in range(50)]
    assert list(part(dict.fromkeys([*reversed(keys), "more"], 1), frozenset(keys))) == keys
