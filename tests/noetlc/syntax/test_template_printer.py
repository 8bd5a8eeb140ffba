"""Printing a template's tree: no more parentheses than needed, and text that reads back."""

from __future__ import annotations

import pytest

from noetlc.syntax.template_parser import parse_template
from tests.noetlc.syntax.whole_templates import print_template, same_tree


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("{{((a))+(b*c)}}", "{{ a + b * c }}"),
        ("{{ (a + b) * c }}", "{{ (a + b) * c }}"),
        ("{{ a - (b - c) }}", "{{ a - (b - c) }}"),
        ("{{ (a ** b) ** c }}", "{{ a ** b ** c }}"),
        ("{{ a ** (b ** c) }}", "{{ a ** (b ** c) }}"),
        ("{{ (-a)|abs }}", "{{ -a | abs }}"),
        ("{{ -(a|abs) }}", "{{ -(a | abs) }}"),
        ("{{ (a|first).b }}", "{{ (a | first).b }}"),
        ("{{ not (a is none) }}", "{{ a is not none }}"),
        ("{{ not (a and b) or c }}", "{{ not (a and b) or c }}"),
        ("{{ (a and b) and c }}", "{{ (a and b) and c }}"),
        ("{{ (a is defined) if b else (c if d else e) }}", "{{ (a is defined) if b else c if d else e }}"),
        ("{{ (a if b else c) if d else e }}", "{{ (a if b else c) if d else e }}"),
        ("{{ x is divisibleby 3 }}", "{{ x is divisibleby(3) }}"),
        ("{{ a.0, b[1:, ::2] }}", "{{ (a[0], b[1:, ::2]) }}"),
        ("{{ { {}: 1} }}", "{{ { {}: 1} }}"),
        ("{{ \"it's\" '\\t' }}", "{{ 'it\\'s\\t' }}"),
        ("{{ (1).real }}", "{{ (1).real }}"),
        ("{{ 1e999 ~ 0x10 ~ 2.50 }}", "{{ 1e999 ~ 16 ~ 2.5 }}"),
        ("{%- for (a, b) in c if d %}x{% endfor -%} ", "{% for a, b in c if d %}x{% endfor %}"),
        ("{% set x|trim|upper() %}a{% endset %}", "{% set x | trim | upper %}a{% endset %}"),
        ("{% raw %}{{ x }}{% endraw %}", "{% raw %}{{ x }}{% endraw %}"),
        ("a{# note #}b", "a{##}b"),
        ("a\n\n", "a\n\n"),
        ("{{ a", "{{ a }}"),
    ],
)
def test_a_tree_prints_plainly_and_reads_back(text: str, printed: str) -> None:
    template = parse_template(text)
    assert print_template(template) == printed
    assert same_tree(parse_template(printed), template)
