"""Editing a document leaves everything else byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from noetlc.migrate.document import DocumentReader, DocumentWriter, Draft, Leaf, Map, mapping, sequence
from noetlc.migrate.migration import migrate_text
from noetlc.syntax.nodes import Mapping, plain
from noetlc.syntax.yaml_reader import read_document

ROOT = Path(__file__).parents[3]
FILES = sorted([*(ROOT / "conformance").glob("*/*.yaml"), *(ROOT / "examples").rglob("*.yaml")])


def read(text: str) -> Map:
    document = read_document(text)
    assert document.root is not None
    root = DocumentReader(text).read(document.root)
    assert isinstance(root, Map)
    return root


def rebuild(node: Draft) -> None:
    """Have every collection rewritten from its parts."""
    if not isinstance(node, Leaf):
        node._original = None
        for part in node.parts:
            rebuild(part.value)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_document_that_is_written_part_by_part_is_the_same(file: Path) -> None:
    text = file.read_bytes().decode("utf-8", "replace")
    document = read_document(text)
    if document.problems or not isinstance(document.root, Mapping):
        assert migrate_text(text).after == text
        return
    root = read(text)
    rebuild(root)
    assert DocumentWriter(text).write(root) == text


def test_a_renamed_key_keeps_its_comments_and_its_value() -> None:
    text = "a:   1 # one\n# before b\nb: [x,   y] # two\nc: |\n    text\n"
    root = read(text)
    pair = root.pair("b")
    assert pair
    pair.key = "new"
    assert DocumentWriter(text).write(root) == text.replace("b: [x", "new: [x")


def test_a_moved_block_is_reindented_with_its_comments() -> None:
    text = "outer:\n  kept: 0\n  # why\n  inner:\n    - one # first\n    - |\n      two\n      lines\n"
    root = read(text)
    outer = root.map("outer")
    assert outer
    pair = outer.remove("inner")
    assert pair
    outer.put("deep", mapping(("first", 1), pair))
    assert DocumentWriter(text).write(root) == (
        "outer:\n  kept: 0\n  deep:\n    first: 1\n    # why\n    inner:\n"
        "      - one # first\n      - |\n        two\n        lines\n"
    )


def test_new_values_are_quoted_where_they_must_be() -> None:
    text = "a: 1\n"
    root = read(text)
    root.put("b", sequence("plain", "true", "{{ x }}", "it's", 'say "x"', "a: b", "two\nlines", ""))
    written = DocumentWriter(text).write(root)
    node = read_document(written).root
    assert node is not None
    assert plain(node) == {"a": 1, "b": ["plain", "true", "{{ x }}", "it's", 'say "x"', "a: b", "two\nlines", ""]}


def test_line_breaks_of_windows_stay() -> None:
    text = "apiVersion: noetl.io/v2\r\nkind: Playbook\r\nmetadata: { name: x, path: x }\r\nworkflow:\r\n"
    text += "  - step: start # one\r\n    tool: { kind: noop }\r\n    next: [{ step: start }]\r\n"
    after = migrate_text(text).after
    assert after != text
    assert "\n" not in after.replace("\r\n", "")


def test_an_anchor_is_edited_once_and_its_alias_stays() -> None:
    text = (ROOT / "conformance/migrate/io-anchors.yaml").read_text("utf-8")
    after = migrate_text(text).after
    assert after == text.replace("input:", "args:")


def test_untouched_lines_stay_byte_for_byte() -> None:
    text = (ROOT / "conformance/migrate/io-comments-and-layout.yaml").read_text("utf-8")
    after = migrate_text(text).after
    left = text.splitlines(keepends=True)
    assert [line.strip() for line in after.splitlines(keepends=True) if line not in left] == [
        "args:",
        "set_ctx:",
        'n: "{{ outcome.result }}"',
    ]
    assert len(after.splitlines()) == len(left)


HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: x, path: x}\nworkflow:\n"

CHILD = """\
- step: start
  tool:
    kind: playbook
    path: a
    spec: {policy: {rules: [{else: {then: {do: continue, %s}}}]}}
"""
LAYOUTS = {
    "comments stay before and beside their construct": (
        """\
- step: start
  tool:
    - one:
        kind: noop

        # what becomes of it
        eval:   # rules
          # always
          - else: {do: break}
  # where it leads
  next:   # arcs
    # the only one
    - step: finish   # the end
- step: finish
""",
        """\
- step: start
  tool:
    - one:
        kind: noop

        # what becomes of it
        spec:
          policy:
            rules:   # rules
              # always
              - else: { then: {do: break} }
  # where it leads
  next:
    arcs:   # arcs
      # the only one
      - step: finish   # the end
        when: "{{ event.name == 'step.done' }}"
- step: finish
""",
    ),
    "an anchor stays beside its key, and an alias of rules or arcs finds its place": (
        """\
- step: start
  tool:
    - one: {kind: noop, eval: &rules [{else: {do: continue}}]}
    - two: {kind: noop, eval: *rules}
  next: &arcs
    - step: finish
- step: other
  tool: {kind: noop}
  next: *arcs
- step: finish
""",
        """\
- step: start
  tool:
    - one: {kind: noop, spec: { policy: { rules: &rules [{else: { then: {do: continue} }}] } }}
    - two: {kind: noop, spec: { policy: { rules: *rules } }}
  next:
    arcs: &arcs
      - step: finish
        when: "{{ event.name == 'step.done' }}"
- step: other
  tool: {kind: noop}
  next: { arcs: *arcs }
- step: finish
""",
    ),
    "a `spec` from a merge key is not lost": (
        """\
- step: start
  tool:
    - one: &one {kind: noop, spec: {timeout: 5}}
    - two:
        <<: *one
        eval: [{else: {do: break}}]
""",
        """\
- step: start
  tool:
    - one: &one {kind: noop, spec: {timeout: 5}}
    - two:
        <<: *one
        spec:
          timeout: 5
          policy:
            rules: [{else: { then: {do: break} }}]
""",
    ),
    "quoted keys stay quoted": (
        '- {"step": "start", "tool": {"kind": "noop"}, "next": [{"step": "finish"}]}\n- step: finish\n',
        '- {"step": "start", "tool": {"kind": "noop"}, "next": { arcs: [{"step": "finish", '
        "when: \"{{ event.name == 'step.done' }}\"}] }}\n- step: finish\n",
    ),
    "what has no counterpart stays as a comment": (
        """\
- step: start
  tool: {kind: noop}
  case:
    - then:
        result:
          from: rows
        next: finish
- step: finish
""",
        """\
# not migrated (R901):
#   result:
#     from: rows
- step: start
  tool: {kind: noop}
  next:
    arcs:
      - step: finish
        when: "{{ event.name == 'step.done' }}"
- step: finish
""",
    ),
    "a field of what a child returned": (
        CHILD % "set: {ctx.n: '{{ output.result.n }}'}",
        CHILD % "set_ctx: {n: '{{ outcome.result.result.n }}'}",
    ),
    "a field of a child's result": (
        CHILD % "set: {ctx.n: '{{ output.result.ctx }}'}",
        CHILD % "set_ctx: {n: '{{ outcome.result.ctx }}'}",
    ),
    "a last line without a line break stays one": (
        "- step: start\n  tool: {kind: noop}\n  next: [finish]\n- step: finish",
        "- step: start\n  tool: {kind: noop}\n"
        "  next: { arcs: [{ step: finish, when: \"{{ event.name == 'step.done' }}\" }] }\n- step: finish",
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_rewritten_construct_is_laid_out_as_its_author_would(name: str) -> None:
    before, after = LAYOUTS[name]
    assert migrate_text(HEAD + before).after == HEAD + after


def test_json_stays_json() -> None:
    task = {"kind": "noop", "eval": [{"expr": "{{ outcome.status == 'success' }}", "do": "break"}]}
    steps = [{"step": "start", "tool": [{"one": task}], "next": [{"step": "finish"}]}, {"step": "finish"}]
    playbook = {"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "x", "path": "x"}}
    text = json.dumps(playbook | {"workflow": steps})
    migrated = json.loads(migrate_text(text).after)
    assert [*migrated] == [*playbook, "workflow"]
    assert [*migrated["workflow"][0]["next"]] == ["arcs"]
