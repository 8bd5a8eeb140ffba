"""What a template is found to read: paths, local names, what it is prepared to miss."""

from __future__ import annotations

import pytest

from noetlc.analysis.names import TemplateNames, names_in
from noetlc.syntax.template_parser import parse_template


def read(text: str) -> TemplateNames:
    return names_in(parse_template(text))


def paths(text: str) -> set[str]:
    return {".".join(use.path) for use in read(text).uses}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ ctx.a.b }}", {"ctx.a.b"}),
        ("{{ ctx['a'].b }}", {"ctx.a.b"}),
        ("{{ ctx.a[0].b }}", {"ctx.a"}),
        ("{{ ctx[args.key].b }}", {"ctx", "args.key"}),
        ("{{ ctx.a.get('b').c }}", {"ctx.a.b.c"}),
        ("{{ ctx.a.get(args.k, iter.d) }}", {"ctx.a", "args.k", "iter.d"}),
        ("{{ ctx.text.split(',')[0].x }}", {"ctx.text"}),
        ("{{ range(ctx.n) }}", {"ctx.n"}),
        ("{{ (ctx.a or args.b).c }}", {"ctx.a", "args.b"}),
        ("{{ ctx.a[iter.from:iter.to] }}", {"ctx.a", "iter.from", "iter.to"}),
        ("{{ {'k': ctx.a} | tojson(indent=args.n) }}", {"ctx.a", "args.n"}),
        ("{% for a in ctx.items %}{{ a.x }}{{ loop.index }}{{ b }}{% endfor %}{{ a.y }}", {"ctx.items", "b", "a.y"}),
        ("{% for a in x if a.ok %}{% else %}{{ a }}{% endfor %}", {"x", "a"}),
        ("{% set a = a %}{{ a }}", {"a"}),
        ("{% if x %}{% set y = 1 %}{% endif %}{{ y }}", {"x"}),
        ("{% for a in x %}{% set y = 1 %}{% endfor %}{{ y }}", {"x", "y"}),
        ("{% set a, b = c %}{{ a }}{{ b }}", {"c"}),
        ("{% set a %}{{ b }}{% set d = 1 %}{% endset %}{{ a }}{{ d }}", {"b", "d"}),
        ("{% raw %}{{ x }}{% endraw %}{# {{ y }} #}", set()),
    ],
)
def test_paths_read_from_outside(text: str, expected: set[str]) -> None:
    assert paths(text) == expected


@pytest.mark.parametrize(
    ("text", "optional"),
    [
        ("{{ ctx.a | default(1) }}", {"ctx.a"}),
        ("{{ ctx.a | default(ctx.b) }}", {"ctx.a"}),
        ("{{ ctx.a is defined and ctx.a.b > 1 and ctx.c }}", {"ctx.a", "ctx.a.b"}),
        ("{{ ctx.a if ctx.a is not none else 1 }}", {"ctx.a"}),
        ("{{ ctx.get('a', 0) }}", {"ctx.a"}),
        ("{{ ctx.a | int }}", set()),
    ],
)
def test_paths_that_may_be_absent(text: str, optional: set[str]) -> None:
    assert {".".join(use.path) for use in read(text).uses if use.is_optional} == optional


def test_computed_fields_are_dynamic() -> None:
    assert {use.name: use.is_dynamic for use in read("{{ ctx[args.key] }}").uses} == {"ctx": True, "args": False}


def test_places_are_those_of_the_names() -> None:
    text = "{{ ctx . a['b'] }}"
    (use,) = read(text).uses
    assert text[use.node.span.start : use.node.span.end] == "ctx"
    assert [text[field.span.start : field.span.end] for field in use.fields] == ["a", "'b'"]
    assert text[use.whole.span.start : use.whole.span.end] == "ctx . a['b']"


LABELS = """
- step: start
  tool:
    - { name: fetch, kind: python, code: "result = 1" }
    - { name: save, kind: python, code: "result = 1", args: { a: "{{ fetch.rows }}" } }
  next:
    arcs:
      - { step: other, when: "{{ fetch.rows }}" }
- step: other
  tool: { kind: python, code: "result = 1", args: { a: "{{ save }}" } }
"""


def test_a_label_is_a_name_in_the_tasks_of_its_own_pipeline_only() -> None:
    from tests.noetlc.rules.lint_text import lint, whole_playbook

    text = whole_playbook(LABELS)
    found = [text[slice(*finding.span)] for finding in lint(LABELS) if finding.code == "P215"]
    assert found == ["fetch", "save"]
