"""What lint finds in Python code, and that it is true: the code is run, and fails exactly where a rule says so."""

from __future__ import annotations

import json
from random import Random
from textwrap import indent
from typing import Any

import pytest

from noetlc.finding import Severity
from noetlvm.tools.python_child import outcome
from tests.noetlc.rules.lint_text import fixed, lint, place

TASK = """\
- step: start
  tool:
    kind: python
    args: {args}
    code: |
{code}
"""
RULES = ("P219", "P701", "P702", "P703", "P704", "P705", "P706")
ARGS = {"total": 3, "rows": [{"n": 1}, {"n": 2}], "name": "a"}


def playbook(code: str, args: dict[str, Any] | str = ARGS) -> str:
    return TASK.format(args=json.dumps(args), code=indent(code, "      "))


def findings(code: str, args: dict[str, Any] | str = ARGS) -> list[tuple[str, int, int]]:
    """Return code, line and column of each finding, in lines of the source and columns from 1."""
    text = playbook(code, args)
    found = [(rule, place(finding, text)) for rule in RULES for finding in lint(text, rule)]
    return [(rule, line - 5, column - 6) for rule, (line, column) in found]


def has_error(code: str, args: dict[str, Any]) -> bool:
    return any(found.severity is Severity.ERROR for rule in RULES for found in lint(playbook(code, args), rule))


def fails(code: str, args: dict[str, Any]) -> bool:
    body, _ = outcome({"code": code, "args": args, "libs": {}, "context": {}, "key": "k"})
    return "error" in json.loads(body)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        # P701: names
        ("def main(total):\n    return totl", [("P701", 2, 12)]),
        ("result = json.dumps(rows)", [("P701", 1, 10)]),
        ("print(count)\ncount = 1\nresult = count", [("P701", 1, 7)]),
        ("def main():\n    print(x)\n    x = 1\n    return x", [("P701", 2, 11)]),
        ("result = [item for row in rows]", [("P701", 1, 11)]),
        ("def main():\n    try:\n        return x\n    except NameError:\n        return 1", []),
        ("result = __file__", [("P701", 1, 10)]),
        ("result = (total, name, rows, input_data, context, idempotency_key, __name__, len)", []),
        ("exec('x = 1')\nresult = x", []),
        ("from math import *\nresult = sqrt(4)", []),
        ("def main():\n    return {{ workload.a }} + x_{{ workload.b }}", []),
        # P702: parameters of `main`
        ("def main(total, extra):\n    return 1", [("P702", 1, 17)]),
        ("def main(total, /):\n    return 1", [("P702", 1, 10)]),
        ("async def main(*, extra):\n    return 1", [("P702", 1, 19)]),
        ("def main(total, extra=1, *rest, context, **more):\n    return 1", []),
        ("class main:\n    def __init__(self, **args): pass", []),
        # P703: no result
        ("x = total", [("P703", 1, 1)]),
        ("x = 1\nasync def mian(total):\n    return total", [("P703", 2, 11)]),
        ("if total:\n    result = 1", []),
        ("def f():\n    global result\n    result = 1\nf()", []),
        ("from json import dumps as main", []),
        # P704: results that are not data
        ("return {'a': [total, {1, 2}]}", [("P704", 1, 22)]),
        ("def main():\n    def f():\n        return {1}\n    return len(f())", []),
        ("from datetime import datetime as d\nresult = {'at': d.now()}", [("P704", 2, 17)]),
        ("import datetime\nresult = datetime.datetime.now().isoformat()", []),
        ("result = b'x'", [("P704", 1, 10)]),
        ("def set(x): return [x]\nresult = set(1)", []),
        ("def main():\n    yield {1}", []),
        # P705: keys of `input_data`
        ("result = input_data['totl']", [("P705", 1, 21)]),
        ("result = input_data.get('totl', 1)", [("P705", 1, 25)]),
        ("result = input_data['total']", []),
        ("input_data['x'] = 1\nresult = input_data['x']", []),
        # P706: what is not used
        ("import json\nimport os as o\nresult = (total, rows, name, json)", [("P706", 2, 1)]),
    ],
)
def test_what_is_found_and_where(code: str, found: list[tuple[str, int, int]]) -> None:
    assert [each for each in findings(code) if each[0] != "P706" or each in found] == found


def test_an_argument_that_is_not_read_is_noted_at_its_key() -> None:
    text = playbook("def main(total):\n    return total", {"total": 1, "rate": 2})
    (note,) = lint(text, "P706")
    assert (note.severity, place(note, text)) == (Severity.NOTE, (4, 24))
    assert lint(playbook("def main(**all):\n    return all"), "P706") == []


def test_nothing_is_said_of_names_where_only_a_run_knows_the_arguments() -> None:
    assert findings("def main(x):\n    return x + y", "{{ workload }}") == []


def test_the_fix_imports_a_module_of_the_standard_library() -> None:
    text = playbook("# a comment\nresult = json.dumps(total)")
    (finding,) = lint(text, "P701")
    whole = fixed(text, finding)
    assert "    code: |\n      import json\n      # a comment\n      result" in whole
    assert lint(whole, "P701") == []


STATEMENTS = (
    "{v} = total + {n}",
    "{v} = [row['n'] for row in rows]",
    "{v} = {{'k': name, 'n': {n}}}",
    "{v} = len(rows) if total else {n}",
    "for row in rows:\n    {v} = row['n']",
    "with contextlib.suppress(KeyError):\n    {v} = rows[0]['n']",
    "try:\n    {v} = int(name)\nexcept ValueError as error:\n    {v} = str(error)",
    "{v} = (lambda x: x * {n})(total)",
    "def f_{v}(x, y=total):\n    return x + y\n{v} = f_{v}({n})",
    "{v} = f'{{name}}-{{total:03d}}'",
    "{v} = sorted({{row['n'] for row in rows}})",
    "{v} = json.loads(json.dumps(rows))",
)


def right_code(random: Random) -> str:
    """Return code that runs without an error, in one of the three forms."""
    names = [f"v{number}" for number in range(random.randint(1, 5))]
    lines = [random.choice(STATEMENTS).format(v=name, n=random.randint(0, 9)) for name in names]
    body, value = "\n".join(lines), random.choice((names[-1], "{'all': [" + ", ".join(names) + "]}"))
    head = "import contextlib, json\n"
    match random.randrange(3):
        case 0:
            return f"{head}def main(total, rows, name):\n{indent(body, '    ')}\n    return {value}\n"
        case 1:
            return f"{head}{body}\nreturn {value}\n"
        case _:
            return f"{head}{body}\nresult = {value}\n"


def spoilt(random: Random, code: str) -> tuple[str, dict[str, Any]]:
    """Return code with one mistake that lint claims to find, and its arguments."""
    match random.randrange(4):
        case 0:
            return code.replace("return v", "return w").replace("result = v", "result = w").replace("[v0", "[w0"), ARGS
        case 1:
            return code.replace("import contextlib, json\n", "json.dumps(1)\n", 1), ARGS
        case 2:
            return f"def main(total, lines):\n    return total\n{code.partition(chr(10))[0]}\n", ARGS
        case _:
            return (
                f"import contextlib, json\ndef main(total):\n    return {{'a': {{total, {random.randint(0, 9)}}}}}\n",
                ARGS,
            )


def test_code_without_a_mistake_has_no_error_and_runs() -> None:
    for seed in range(150):
        code = right_code(Random(seed))
        assert (seed, fails(code, ARGS), has_error(code, ARGS)) == (seed, False, False)


def test_code_with_an_error_fails_when_it_runs() -> None:
    for seed in range(150):
        random = Random(seed)
        code, args = spoilt(random, right_code(random))
        assert (seed, has_error(code, args), fails(code, args)) == (seed, True, True)
