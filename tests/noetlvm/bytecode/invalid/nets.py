"""Invalid nets: playbooks, steps, arcs, loops and credentials."""

from __future__ import annotations

from noetlvm.language.names import NAME_CHARS_MAX
from tests.noetlvm.bytecode.invalid.case import Case, programs

_LONG = "x" * (NAME_CHARS_MAX + 1)
_MAIN = '.playbook "main" "main"\n.entry "start"\n'
_START = _MAIN + '.step "start"\n'


def _loops(*lines: str) -> str:
    return _START + "\n".join(f".loop {line}\n.in ( CONST []; RETURN )" for line in lines)


PLAYBOOKS: list[Case] = programs(
    "metadata",
    ("V070", "none", ""),
    ("V072", "one without a path", '.playbook "" "main"\n.entry "start"\n.step "start"'),
    ("V072", "one without a name", '.playbook "main" ""\n.entry "start"\n.step "start"'),
    ("V072", "a path with a NUL", '.playbook "ma\\u0000in" "main"\n.entry "start"\n.step "start"'),
    ("V072", "a path that is too long", f'.playbook "{_LONG}" "main"\n.entry "start"\n.step "start"'),
    ("V072", "a name that is too long", f'.playbook "main" "{_LONG}"\n.entry "start"\n.step "start"'),
    ("V072", "a child without a path", _START + '\n.playbook "" "child"\n.entry "start"\n.step "start"'),
    ("V073", "a child with its parent's path", _START + '\n.playbook "main" "child"\n.entry "start"\n.step "start"'),
    (
        "V073",
        "two children with one path",
        _START + 2 * '\n.playbook "child" "child"\n.entry "start"\n.step "start"',
    ),
    (
        "V074",
        "children in the wrong order",
        _START + "".join(f'\n.playbook "{path}" "child"\n.entry "start"\n.step "start"' for path in "ba"),
    ),
)

STEPS: list[Case] = programs(
    "net",
    ("V071", "none", _MAIN),
    ("V071", "none in a child", _START + '\n.playbook "child" "child"\n.entry "start"'),
    ("V075", "two with one name", _START + '.step "start"'),
    ("V075", "two with one name, far apart", _START + '.step "a"\n.step "b"\n.step "a"'),
    ("V075", "two with one name in a child", _START + '\n.playbook "child" "child"\n.entry "a"\n.step "a"\n.step "a"'),
    ("V076", "one without a name", _START + '.step ""'),
    ("V076", "one that is too long", _START + f'.step "{_LONG}"'),
    ("V076", "one with a space", _START + '.step "load orders"'),
    ("V076", "one that could be an address", _START + '.step "a/admit"'),
    ("V076", "one that ends in a slash", _START + '.step "a/"'),
    ("V076", "one with a dot", _START + '.step "a.b"'),
    ("V076", "one with a hash", _START + '.step "child#start"'),
    ("V076", "one that begins with a digit", _START + '.step "2nd"'),
    ("V076", "one that begins with a hyphen", _START + '.step "-a"'),
    ("V076", "one with a line break at the end", _START + '.step "a\\n"'),
    ("V076", "one with template marks", _START + '.step "{{ a }}"'),
    ("V077", "an entry that does not exist", '.playbook "main" "main"\n.entry "begin"\n.step "start"'),
    ("V077", "an entry without a name", '.playbook "main" "main"\n.entry ""\n.step "start"'),
    ("V077", "the entry is a step of the parent", _START + '\n.playbook "child" "child"\n.entry "start"\n.step "a"'),
    ("V078", "a final step that does not exist", _MAIN + '.final "end"\n.step "start"'),
    ("V078", "a final step without a name", _MAIN + '.final ""\n.step "start"'),
)

ARCS: list[Case] = programs(
    "net",
    ("V079", "to no step", _START + '.arc "end"'),
    ("V079", "to a step without a name", _START + '.arc ""'),
    ("V079", "the second of two to no step", _START + '.arc "start"\n.arc "end"'),
    ("V079", "to a step with other capitals", _START + '.arc "Start"'),
    (
        "V079",
        "to a step of the parent",
        _START + '.step "end"\n.playbook "child" "child"\n.entry "a"\n.step "a"\n.arc "end"',
    ),
    ("V079", "to a step by its address", _START + '.arc "main#start"'),
    ("V080", "handles failures without a guard", _START + '.arc "start" handles_failure'),
    ("V080", "handles failures with a guard that reads none", _START + '.arc "start" handles_failure\n.when <more>'),
    (
        "V080",
        "handles failures that only its args read",
        _START + '.arc "start" handles_failure\n.when <more>\n.args ( NAME event; RECORD ["e"]; RETURN )',
    ),
    ("V080", "does not say that it handles failures", _START + '.arc "start"\n.when ( NAME event; TRUTH; RETURN )'),
)

LOOPS: list[Case] = programs(
    "net",
    ("V081", "no width", _loops('"item" width 0')),
    ("V081", "no width, in parallel", _loops('"item" width 0 parallel')),
    ("V081", "no width of the inner one", _loops('"item" width 1', '"inner" width 0 parallel')),
    ("V082", "two at once in order", _loops('"item" width 2')),
    ("V082", "two at once in order, inside", _loops('"item" width 2 parallel', '"inner" width 2')),
    ("V082", "a computed width in order", _loops('"item"') + "\n.width ( CONST 2; RETURN )"),
    ("V083", "an iterator without a name", _loops('"" width 1')),
    ("V083", "an iterator that is too long", _loops(f'"{_LONG}" width 1')),
    ("V083", "an iterator with a hyphen", _loops('"a-b" width 1')),
    ("V083", "an iterator with a dot", _loops('"a.b" width 1')),
    ("V083", "an iterator with a space", _loops('"a b" width 1')),
    ("V083", "an iterator that begins with a digit", _loops('"1a" width 1')),
    ("V083", "an iterator that hides the index", _loops('"index" width 1')),
    ("V083", "an iterator that hides the outer one", _loops('"parent" width 1')),
    ("V084", "two levels with one iterator", _loops('"item" width 1', '"item" width 1')),
    ("V084", "the first and third level with one iterator", _loops('"a" width 1', '"b" width 1', '"a" width 1')),
    ("V085", "a reducer that nobody has", _loops('"item" width 2 parallel reduce [["n", "product"]]')),
    ("V085", "a reducer without a name", _loops('"item" width 2 parallel reduce [["n", ""]]')),
    ("V085", "a reducer with capitals", _loops('"item" width 2 parallel reduce [["n", "Sum"]]')),
    ("V085", "the second of two reducers", _loops('"item" width 2 parallel reduce [["m", "sum"], ["n", "mean"]]')),
    ("V086", "reducers in the wrong order", _loops('"item" width 2 parallel reduce [["n", "sum"], ["m", "sum"]]')),
    ("V086", "two reducers of one key", _loops('"item" width 2 parallel reduce [["n", "sum"], ["n", "max"]]')),
    ("V087", "seventeen levels", _loops(*(f'"i{level}" width 1' for level in range(17)))),
)

CREDENTIALS: list[Case] = programs(
    "keychain",
    ("V088", "two with one name", _MAIN + '.credential "pg" "secret" {}\n.credential "pg" "secret" {}\n.step "start"'),
    (
        "V088",
        "two with one name and different kinds",
        _MAIN + '.credential "pg" "a" {}\n.credential "b" "b" {}\n.credential "pg" "c" {}\n.step "start"',
    ),
    ("V089", "one without a name", _MAIN + '.credential "" "secret" {}\n.step "start"'),
    ("V089", "one that is too long", _MAIN + f'.credential "{_LONG}" "secret" {{}}\n.step "start"'),
    ("V089", "one with a space", _MAIN + '.credential "my key" "secret" {}\n.step "start"'),
    ("V089", "one with a dot", _MAIN + '.credential "my.key" "secret" {}\n.step "start"'),
    ("V090", "one without a kind", _MAIN + '.credential "pg" "" {}\n.step "start"'),
    ("V090", "one of too long a kind", _MAIN + f'.credential "pg" "{_LONG}" {{}}\n.step "start"'),
    ("V090", "the second without a kind", _MAIN + '.credential "a" "secret" {}\n.credential "b" "" {}\n.step "start"'),
)

CASES = [*PLAYBOOKS, *STEPS, *ARCS, *LOOPS, *CREDENTIALS]
