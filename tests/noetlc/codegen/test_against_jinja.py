"""Statement templates give what Jinja2 gives, through code generation and both evaluators."""

from __future__ import annotations

import jinja2
import pytest

from noetlc.codegen.expressions import lower_template
from noetlc.syntax.template_parser import parse_template
from noetlvm.expr.errors import Fuel
from noetlvm.expr.interpret import compile_expression

DATA = {
    "a": [1, 2, 3, 4],
    "b": "xy",
    "m": {"k": 1, "z": [5]},
    "p": [[1, [2, 3]], [4, [5, 6]]],
    "t": True,
    "empty": [],
}
JINJA = jinja2.Environment(undefined=jinja2.ChainableUndefined)


@pytest.mark.parametrize(
    "template",
    [
        "{% for x in a %}{{ loop.index }}/{{ loop.length }}:{{ x }},{% endfor %}",
        "{% for x in a if x % 2 == 0 %}{{ loop.index }}{{ loop.last }}{{ x }},{% else %}none{% endfor %}",
        "{% for x in a if x > 9 %}{{ x }}{% else %}none{% endfor %}",
        "{% for x in a if x > 2 or loop %}{{ x }}{% endfor %}",
        "{% for x in empty %}{{ x }}{% else %}{{ x }}none{% endfor %}",
        "{% for i, (j, k) in p %}{{ i }}{{ j }}{{ k }};{% endfor %}",
        "{% for k, v in m.items() %}{{ k }}={{ v }}{% endfor %}",
        "{% for a in a %}{{ a }}{% endfor %}{{ a }}",
        "{% set q = 1 %}{% for x in a %}{{ q }}{% set q = x %}{{ q }}{% endfor %}{{ q }}",
        "{% for x in a %}{{ q }}{% set q = x %}{% endfor %}{{ q }}",
        "{% if t %}{% set q = 3 %}{% endif %}{{ q }}{{ missing }}",
        "{% if not t %}{% set b = 3 %}{% endif %}{{ b }}",
        "{% if a %}{% set b = 3 %}{% elif t %}x{% endif %}{{ b }}",
        "{% if empty %}{% set b = 3 %}{% elif t %}x{% else %}{% set b = 4 %}{% endif %}{{ b }}",
        "{% for x in a %}{% if x > 2 %}{% set b = x %}{% endif %}{{ b }}{% endfor %}{{ b }}",
        "{% for x in a %}{% for y in a if y > loop.index %}{{ loop.index }}{{ y }}{% endfor %}|{{ loop.revindex }}"
        "{% endfor %}",
        "{% for x in a %}{% for y in empty %}{% else %}{{ loop.index }}{% endfor %}{% endfor %}",
        "{% set z %}{% for x in a %}{{ x }}{% endfor %}{% endset %}{{ z | length }}{{ z }}",
        "{% set z | upper | replace('X', 'u') %}{% set y = b %}{{ y }}{% endset %}{{ z }}{{ y }}",
        "{% set q, (r, s) = p[0] %}{{ s }}{{ r }}{{ q }}",
        "x{{ 1 < a[0] + 1 < 3 < 2 }}{{ a[1:] }}{{ a[::-1] }}{{ m.k }}{{ m['z'][0] }}{{ m.q.r }}",
        "{{ a | map('string') | join('-') }} {{ 'a' ~ 1 ~ none }} {{ (1, 2) }} {{ a and 0 or 'z' }}",
        "{% for x in a %}{% if loop.first %}F{% elif loop.last %}L{% else %}{{ loop.previtem }}{% endif %}{% endfor %}",
        "{% if true %}{% set b = 1 %}{% else %}{% set b = 2 %}{% endif %}{{ b }}",
        "{% if false %}{% set b = 1 %}{% endif %}{{ b }}",
        "{{ 1 if false }}|{{ 'a' if empty else 'b' }}|{{ not empty and 1 < 2 }}|{{ 7 // 2 * 2.0 - -1 }}",
    ],
)
def test_same_text_as_jinja(template: str) -> None:
    expected = JINJA.from_string(template).render(**DATA)
    expression = lower_template(parse_template(template)).expression
    for checked in (False, True):
        evaluate = compile_expression(expression, checked=checked)
        assert evaluate({"ctx": DATA}, Fuel()) == expected
