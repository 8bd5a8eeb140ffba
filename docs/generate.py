"""Writes what is made from the code: pages on rules, tools, expressions, events, instructions, commands; pictures.

`python docs/generate.py` writes them; `--check` fails where one is stale, and shows the lines. The code is that of the
checkout that this file is in, whichever environment runs it.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from functools import partial
from importlib import import_module
from itertools import chain, pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the environment may have installed another checkout

from noetlc.assembly.lexer import CHOICES
from noetlc.cli.app import PROGRAM as COMPILER
from noetlc.compile import COMPILER_CODES
from noetlc.finding import TOPICS, Severity
from noetlc.graph.analyse import analyse
from noetlc.graph.formats.palette import DARK, LIGHT, style_in
from noetlc.graph.formats.svg import svg
from noetlc.graph.picture import draw, picture_of
from noetlc.graph.reading import read_nets
from noetlc.migrate.constructs import CONSTRUCTS, Effect
from noetlc.migrate.dialect import TITLES, Dialect
from noetlc.rules.catalogue import all_rules
from noetlc.rules.rule import Rule
from noetlc.settings import KEYS
from noetlvm.bytecode import limits
from noetlvm.bytecode.codec import layout
from noetlvm.bytecode.codec.container import CHECKSUM_BYTES, FORMAT_MAJOR, FORMAT_MINOR, MAGIC, REQUIRED, SECTIONS
from noetlvm.bytecode.codec.malformed import MALFORMED
from noetlvm.bytecode.isa import ISA_VERSION, OPCODES, Area, Opcode, Operand
from noetlvm.bytecode.verify.operands import INVALID
from noetlvm.cli.app import PROGRAM as MACHINE
from noetlvm.language.events import EVENTS, EventKind
from noetlvm.language.filters import FILTERS, FUNCTIONS, REJECTED_FILTERS, REJECTED_FUNCTIONS, REJECTED_TESTS, TESTS
from noetlvm.language.methods import METHODS, REJECTED_METHODS, Signature
from noetlvm.language.scopes import FIELDS, VISIBLE
from noetlvm.language.tool_kinds import ToolKind, builtin_kinds
from noetlvm.sim.checker import INVARIANTS
from noetlvm.sim.faults import EMBEDDED, FAULTS

FOLDER = Path(__file__).resolve().parent
MADE_BY = "<!-- Made by docs/generate.py from the code. Do not edit. -->\n\n"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(header)]
    lines.append(["---"] * len(lines[0]))
    lines.extend([cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def yaml_block(text: str) -> str:
    shown = text.strip("\n").encode("utf-8", "backslashreplace").decode("utf-8")
    return f"```yaml\n{shown}\n```\n\n"


def rules_page() -> str:
    rules = all_rules()
    page = "# Rules\n\nThis page lists every rule of `noetlc lint`: the reason for it, a wrong example and a corrected "
    page += "one. `noetlc explain CODE` prints the same. The first digit of a code is its topic. The code does not "
    page += "determine the severity, which can be [configured](configuration.md). Older codes that begin with `E`, `W` "
    page += "or `L` are accepted for the same rules: `E103` is `P103`.\n\n"
    for family, title in TOPICS.items():
        members = [rule for rule in rules if rule.code.startswith(family)]
        page += f"## {family}: {title}\n\n"
        page += table(
            ("code", "name", "severity", "finding"),
            ((f"[{rule.code}](#{anchor(rule)})", rule.name, rule.severity.value, rule.summary) for rule in members),
        )
    page += "## C: the compiler\n\nAdditional findings of `noetlc compile`.\n\n"
    page += table(("code", "meaning"), ((f"`{code}`", text) for code, text in COMPILER_CODES.items()))
    return page + "".join(rule_section(rule) for rule in rules)


def anchor(rule: type[Rule]) -> str:
    return f"{rule.code}-{rule.name}".lower()


def rule_section(rule: type[Rule]) -> str:
    section = f"## {rule.code} {rule.name}\n\n{rule.summary} Severity: {rule.severity.value}.\n\n"
    section += " ".join(rule.why.split()) + "\n\n"
    section += "Instead of\n\n" + yaml_block(rule.bad) + "write\n\n" + yaml_block(rule.good)
    return section + (f"Enforces {', '.join(rule.covers)}.\n\n" if rule.covers else "")


def tools_page() -> str:
    page = (
        "# Tools\n\nThis page is the reference of the built-in tool kinds, for people who write playbooks: the inputs, "
    )
    page += "settings and result of each. `noetlvm tools KIND` prints the same.\n\n"
    return page + "".join(tool_section(kind) for kind in builtin_kinds().values())


def tool_section(kind: ToolKind) -> str:
    section = f"## {kind.name}\n\n{kind.summary}\n\n{yaml_block(kind.example)}Result: {kind.result}.\n\n"
    if kind.takes_auth:
        section += "`auth` names a keychain entry, see [keychain.md](keychain.md).\n\n"
    for choice in kind.choices:
        section += f"Give {choice.rule} of {', '.join(f'`{name}`' for name in choice.names)}.\n\n"
    if kind.spellings:
        names = ", ".join(f"`{name}` for `{meant}`" for name, meant in kind.spellings.items())
        section += f"Other accepted names: {names}.\n\n"
    if kind.inputs:
        section += table(
            ("input", "type", "required", "default", "meaning"),
            (
                (
                    f"`{item.name}`",
                    " or ".join(item.types) if len(item.types) < 7 else "anything",
                    "yes" if item.required else "",
                    f"`{item.default}`" if item.default is not None else "",
                    item.doc,
                )
                for item in kind.inputs
            ),
        )
    if kind.settings:
        section += table(
            ("setting (`spec`)", "type", "default", "meaning"),
            (
                (
                    f"`{item.name}`",
                    " or ".join(item.types),
                    f"`{item.default}`" if item.default is not None else "",
                    item.doc,
                )
                for item in kind.settings
            ),
        )
    return section


def expressions_page() -> str:
    page = "# Expressions\n\nThis page lists the names, filters, tests, functions and methods that a template may use. "
    page += "[Differences from Jinja2](expression-differences.md) are on another page.\n\n## Names by position\n\n"
    page += table(
        ("position", "visible names"),
        ((position.value, " ".join(f"`{name}`" for name in sorted(names))) for position, names in VISIBLE.items()),
    )
    page += "## Names and fields\n\n" + table(
        ("name", "meaning", "values"),
        ((f"`{name}`", field.doc, ", ".join(f"`{v}`" for v in field.values)) for name, field in FIELDS.items()),
    )
    page += signatures("Filters", FILTERS.values()) + signatures("Tests", TESTS.values())
    page += signatures("Functions", FUNCTIONS.values())
    page += signatures("Methods", (method.signature for method in METHODS.values()))
    rejected = {**REJECTED_FILTERS, **REJECTED_TESTS, **REJECTED_FUNCTIONS, **REJECTED_METHODS}
    page += "## Not supported\n\n" + table(
        ("name", "use instead"), ((f"`{name}`", hint) for name, hint in rejected.items())
    )
    return page


def signatures(title: str, rows: Iterable[Signature]) -> str:
    return f"## {title}\n\n" + table(
        ("name", "arguments", "meaning"), ((f"`{row.name}`", arguments(row), row.doc) for row in rows)
    )


def arguments(row: Signature) -> str:
    names = [name if index < row.required else f"[{name}]" for index, name in enumerate(row.parameters)]
    names += ["…"] if row.variadic else []
    return f"`{', '.join(names)}`" if names else ""


def events_page() -> str:
    page = "# Events\n\nThis page is for people who read the log of an execution, by `noetlvm events` or in a program. "
    page += "It lists every event and the fields of its `data`. The envelope is defined in formal §10.1. If the status "
    page += "*varies*, it is success unless the event reports a failure.\n\n"
    page += table(
        ("event", "CamelCase", "reported by", "about", "status", "meaning"),
        (
            (
                f"[`{event.name}`](#{event.name.replace('.', '')})" if event.payload else f"`{event.name}`",
                f"`{event.camel}`",
                event.plane.value,
                event.entity.value,
                event.status.value if event.status else "*varies*",
                event.summary + (f" Not recorded: `{event.folded_into}` has its data." if event.folded_into else ""),
            )
            for event in EVENTS.values()
        ),
    )
    return page + "".join(event_section(event) for event in EVENTS.values() if event.payload)


def event_section(event: EventKind) -> str:
    return f"## {event.name}\n\n" + table(
        ("field", "always", "meaning"),
        ((f"`{field.name}`", "" if field.optional else "yes", field.doc) for field in event.payload),
    )


def instruction_set_page() -> str:
    page = (
        f"# Instruction set\n\nThis page is the reference of all opcodes (version {ISA_VERSION}), for people who read "
    )
    page += (
        "the output of `noetlc disasm` or implement the machine. There are two kinds of code. An expression is stack "
    )
    page += (
        "code that computes a value. A pipeline is the code of one step's tasks; expressions are its operands. In the "
    )
    page += "column for the stack, the number of popped values is before the arrow and that of pushed values after "
    page += "it.\n\n"
    for area in Area:
        page += f"## The {area} machine\n\n" + instruction_table(area)
    page += "## Operands\n\n" + table(
        ("operand", "meaning", "words"),
        (
            (f"`{kind}`", meaning, " ".join(f"`{word}`" for word in CHOICES.get(kind, ())))
            for kind, meaning in attribute_docs(Operand).items()
        ),
    )
    return page


def bundle_format_page() -> str:
    page = f"# The bundle format\n\nThis page defines the encoding of a bundle (format {FORMAT_MAJOR}.{FORMAT_MINOR}, "
    page += (
        f"instruction set {ISA_VERSION}), for people who write tools that read bundles. A `.nbc` file is a container "
    )
    page += "of sections. Each section is a sequence of msgpack values that any msgpack library can read. The same "
    page += "program always has the same bytes.\n\n"
    page += "## Container\n\n"
    page += table(
        ("bytes", "content"),
        (
            ("4", f"magic: `{MAGIC.hex(' ')}`"),
            (
                "1",
                f"major version of the format: {FORMAT_MAJOR}. A reader also reads 4, which has no checksum, "
                "refuses any other and advises to compile again",
            ),
            ("1", f"minor version of the format: {FORMAT_MINOR}. A reader accepts any"),
            ("1", f"instruction set: {ISA_VERSION}. A reader refuses any other"),
            ("1", f"length of the checksum: {CHECKSUM_BYTES[FORMAT_MAJOR]}; in format 4: 0"),
            ("LEB128", f"number of sections, at most {limits.SECTIONS_MAX}"),
            ("…", "for each section: its number and its length in LEB128, then its payload"),
            (
                str(CHECKSUM_BYTES[FORMAT_MAJOR]),
                "checksum: the SHA-256 of all bytes before it. A reader checks it first",
            ),
        ),
    )
    page += "Sections are in the order of their numbers, each at most once. "
    page += "A reader skips an unknown section with an odd "
    page += "number and refuses one with an even number. The id of a bundle is the SHA-256 of the header and of all "
    page += "sections but `debug`, so that `noetlc strip` does not change it. For the id, the header is that of format "
    page += "4, so that a program has the same id in both formats.\n\n"
    page += table(
        ("number", "section", "required"),
        ((str(number), f"`{name}`", "yes" if name in REQUIRED else "") for name, number in SECTIONS.items()),
    )
    page += "An empty section that is not required is left out.\n\n## Sections\n\n"
    page += dedent(str(layout.__doc__)).partition("describes them all.\n\n")[2] + "\n"
    page += (
        "## Code\n\nThe code of an expression begins with its number of slots, that of a pipeline with its number of "
    )
    page += "counters, in LEB128. The instructions follow: the opcode in one byte, then each operand as an unsigned "
    page += "number in LEB128. "
    page += "[The instruction set](instruction-set.md) lists the opcodes and their operands.\n\n"
    page += table(("operand", "number"), ((f"`{kind}`", OPERAND_NUMBERS[kind]) for kind in Operand))
    page += "## Bits\n\n"
    bits = ("DROPS_DENIED BEST_EFFORT INCLUSIVE HAS_PIPELINE", "PARALLEL DISTRIBUTED", "HANDLES_FAILURE")
    rows = zip(("step", "loop", "arc"), bits, strict=True)
    page += table(
        ("of a", "bit", "meaning"),
        ((owner, str(getattr(layout, name)), name.lower()) for owner, names in rows for name in names.split()),
    )
    page += "## Canonical form\n\n"
    page += "A reader accepts exactly one encoding of each program. Values and numbers have their shortest form. Keys, "
    page += "constants and expressions are not duplicated, and none is unused. Pools are in the order of first use. "
    page += "There are no extra bytes. "
    page += "Integers beyond 64 bits are extension 1 with decimal digits; NaN has the bits `7ff8000000000000`.\n\n"
    page += "## Limits\n\n" + table(
        ("limit", "value"), ((f"`{name}`", f"{value:,}") for name, value in _bundle_limits())
    )
    page += "## Refusals\n\nA bundle is malformed if its bytes cannot be decoded:\n\n"
    page += table(("code", "meaning"), ((f"`{fault.value}`", text) for fault, text in MALFORMED.items()))
    page += "A bundle is invalid if it can be decoded but its program is not safe to run:\n\n"
    return page + table(("code", "meaning"), ((f"`{code}`", text) for code, text in INVALID.items()))


def _bundle_limits() -> Iterable[tuple[str, int]]:
    return ((name, value) for name, value in vars(limits).items() if name.endswith("_MAX"))


_CONSTANT, _EXPRESSION = "index of a constant", "index of an expression"
OPERAND_NUMBERS: dict[Operand, str] = {
    Operand.CONST: _CONSTANT,
    Operand.TEXT: f"{_CONSTANT}, a text",
    Operand.WORDS: f"{_CONSTANT}, a list of texts",
    Operand.EXPR: _EXPRESSION,
    Operand.OPTIONAL_EXPR: f"0 for none, or 1 plus the {_EXPRESSION}",
    Operand.TARGET: "index of an instruction of the same code",
    Operand.COUNT: "the number itself",
    Operand.LIMIT: f"twice the number, or twice the {_EXPRESSION} plus 1",
    Operand.SLOT: "index of a slot or counter",
    Operand.SPREAD: "1 for a list, 2 for a mapping, 3 for both",
    **{kind: f"index in: {', '.join(f'`{word}`' for word in words)}" for kind, words in CHOICES.items()},
    **dict.fromkeys((Operand.FILTER, Operand.TEST, Operand.FUNCTION, Operand.METHOD), f"{_CONSTANT}, its name"),
}


def instruction_table(area: Area) -> str:
    return table(
        ("number", "name", "operands", "stack", "formula", "meaning"),
        (
            (
                str(row.number),
                f"`{row.name}`",
                " ".join(f"`{kind}`" for kind in row.operands),
                stack_effect(row) if area is Area.EXPRESSION else "",
                f"`{row.formula}`" if row.formula else "",
                row.doc,
            )
            for row in OPCODES
            if row.area is area
        ),
    )


def stack_effect(row: Opcode) -> str:
    """Say how many values are popped and pushed; `|` divides the way on from the way to the target."""
    counted = [f"{f'{factor} · ' if factor > 1 else ''}{row.operands[index]}" for index, factor in row.counts]
    pops = " + ".join([str(row.pops)] * bool(row.pops or not counted) + counted)
    # UNPACK is the one instruction that pushes as many values as its operand says.
    pushes = "count" if row.name == "UNPACK" else str(row.pushes)
    return f"{pops} → {pushes}" + (f" | {row.target_pushes}" if row.target_pushes is not None else "")


def attribute_docs(kind: type[Operand]) -> dict[Operand, str]:
    """Read the strings that stand under an enumeration's members; Python does not keep them."""
    body = cast(ast.ClassDef, ast.parse(dedent(inspect.getsource(kind))).body[0]).body
    docs = {}
    for member, text in pairwise(body):
        if isinstance(member, ast.Assign) and isinstance(text, ast.Expr) and isinstance(member.targets[0], ast.Name):
            docs[kind[member.targets[0].id]] = str(cast(ast.Constant, text.value).value)
    return docs


CONFIGURATION = """# Configuration

This page lists every configuration key and environment variable of `noetlc` and `noetlvm`.

`noetlc lint`, `compile`, `canon`, `graph`, `migrate` and `noetlvm run` read `noetlc.toml`, or the table `[tool.noetlc]`
of `pyproject.toml`. They use the nearest such file in the folder that contains all given paths, or in a folder above
it; `--config FILE` names another file. An unknown key or a wrong value stops the command.

"""

CONFIGURATION_EXAMPLE = """## Example

```toml
select = ["P"]
ignore = ["P505"]
fail-on = "warning"
min-severity = "warning"
exclude = ["vendor/**"]
baseline = "known.json"
tool-kinds = ["our_tool"]
severity = { P214 = "warning", P020 = "warning" }

[per-file-ignores]
"tests/**" = ["P5"]
```

If several codes or prefixes match a rule, the longest one applies. The options `--select`, `--ignore`, `--fail-on`,
`--min-severity`, `--baseline` and `--max-document-bytes` override the file; `--select` also discards its `ignore`.

## Ignoring a rule in a playbook

`# noetlc: ignore[P020]` at the end of a line ignores the rule on that line. `# noetlc: ignore-file[P5]` at the top of a
file ignores all rules with that prefix in the file.

## Severities and the compiler

Configured severities and ignores apply to all commands: an error stops `compile`, `canon`, `graph` and `run`; a warning
is printed; a note is printed by `lint` only. The compiler depends on most rules whose severity is error, and stops on
their findings even if you ignore them or lower their severity. It does not stop on findings of these rules if you do:
{tolerated}.

## Environment variables

| variable | meaning |
| --- | --- |
| `NOETLC_CACHE` | folder of the lint cache and of parse tables |
| `NOETLC_DEBUG`, `NOETLVM_DEBUG` | `1` shows the traceback of an internal error |
| `NOETLVM_CHECKSUMS` | `off` writes events without checksums ([damage](store.md#damage)) |
| `NOETLVM_DB` | database of `noetlvm` if `--db` is not given; the default is a file in the folder `XDG_STATE_HOME` |
| `NOETLVM_INPUTS` | `off` for `run`, `resume`, `retry` and `worker`: the log does not record the inputs of tools |
| `NOETLVM_SERVER`, `NOETLVM_TOKEN` | server to use if neither `--server` nor `--db` is given, and its token |
| `NO_COLOR` | if set, output has no colours |
"""


def configuration_page() -> str:
    rows = ((f"`{name}`", key.default, key.about) for name, key in KEYS.items())
    tolerated = [rule.code for rule in all_rules() if rule.severity is Severity.ERROR and not rule.stops_compiler]
    page = CONFIGURATION + table(("key", "default", "meaning"), rows)
    return page + CONFIGURATION_EXAMPLE.replace("{tolerated}", ", ".join(tolerated))


def command_line_page() -> str:
    page = "# Command line\n\nThis page contains the `--help` text of every command.\n\n"
    for program in (COMPILER, MACHINE):
        page += f"## {program.name}\n\n" + help_of(program.name)
        for command in program.commands:
            page += f"## {program.name} {command}\n\n" + help_of(program.name, command)
    return page


def help_of(*words: str) -> str:
    program, *rest = words
    environment = {**os.environ, "COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    environment["PYTHONPATH"] = str(FOLDER.parent)
    command = [sys.executable, "-m", program, *rest, "--help"]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=True)
    text = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
    return f"```text\n{text}\n```\n\n"


_MIGRATE_INTRO = """\
# Migration to canonical v10

This page is for people whose playbooks are written in another dialect of the language. It lists how `noetlc migrate`
rewrites each construct and which constructs you have to change yourself.

`noetlc migrate` rewrites playbooks as canonical v10 without changing their meaning. It changes only the lines that must
change, and reports the constructs that it cannot rewrite. It does not change a playbook that is already canonical.

```console
$ noetlc migrate flows --check              # for CI: exit code 1 if a file is not canonical
$ noetlc migrate old.yaml --diff            # show the changes
$ noetlc migrate flows --write              # migrate a folder and list the constructs to change by hand
$ noetlc migrate flows --report markdown    # report every file and construct; `json` for programs
$ noetlc migrate old.yaml --explain 42      # explain what happens to line 42, and why
```

`noetlc lint` reports a file of another dialect with one finding (P900). With `--dialect io`, `eval` or `case` it checks
the file as it would be after migration, and reports the findings at the lines of the original. The fix of the findings
P901 to P911 is the migration of the file (`--fix --unsafe-fixes`).

- Comments are preserved. If the construct of a comment is rebuilt, the comment moves to the line before its step.
- An anchor is edited once, and its aliases remain.
- A construct without a counterpart remains in the file, where lint reports it, or becomes a comment before its step.
- If the result would have more errors than the file, the file is not changed, and the errors are reported at its lines
  (R916).

The column "checked by" names a case in `conformance/migrate` or an entry of `tests/noetlc/migrate/test_by_hand.py`.
Each case of an older dialect is also run by a small interpreter of that dialect, and both runs must take the same path.

"""


def migrate_page() -> str:
    page = _MIGRATE_INTRO + "## Dialects\n\n"
    page += table(("`--dialect`", "dialect"), ((f"`{dialect}`", TITLES[dialect]) for dialect in Dialect))
    cases = migrate_cases()
    for effect, title in (
        (Effect.REWRITTEN, "Rewritten constructs"),
        (Effect.NOTED, "Rewritten or removed constructs that you should review"),
        (Effect.HAND, "Constructs that you have to change"),
    ):
        rows = [row for row in CONSTRUCTS.values() if row.effect is effect]
        becomes = [] if effect is Effect.HAND else ["becomes"]
        page += f"## {title}\n\n" + table(
            (
                "code",
                "written",
                *becomes,
                "what to do" if effect is Effect.HAND else "preserved meaning",
                "checked by",
            ),
            (
                (
                    row.code,
                    row.written,
                    *([row.becomes] if becomes else []),
                    row.meaning,
                    cases.get(row.code) or f"`test_by_hand.py[{row.code}]`",
                )
                for row in rows
            ),
        )
    return page


def migrate_cases() -> dict[str, str]:
    """Return, for each construct, the first conformance case that shows it."""
    found: dict[str, str] = {}
    for file in sorted((FOLDER.parent / "conformance" / "migrate").glob("*.expect.json")):
        for code in json.loads(file.read_text(encoding="utf-8"))["codes"]:
            found.setdefault(code, f"`{file.name.removesuffix('.expect.json')}`")
    return found


LIMITS: dict[str, tuple[str, ...]] = {
    "Reading a playbook": ("noetlc.syntax.input", "noetlc.canon.errors"),
    "A bundle": ("noetlvm.bytecode.limits", "noetlvm.language.names"),
    "One evaluation of a template": ("noetlvm.expr.errors",),
    "A run": ("noetlvm.limits",),
}
"""The modules of each section: limits are defined where they are checked."""

_PRICES = ("_COST", "NODE_STEPS", "CALL_STEPS")
"""Numbers that are no limits: what counts how much towards one."""

_LIMITS_INTRO = """\
# Limits

This page lists every limit on the size, depth and work of playbooks, bundles and runs. The name of a limit is the name
of its constant in the code. Input that exceeds a limit is refused with a message. In a run, the task or step fails with
`error.kind: limit`, or with `fuel` for a limit on work.

A playbook can set `max_payload_bytes` (to a smaller value only), `max_transitions`, `max_step_runs` and `max_children`
under `executor.spec.limits`.

"""


def limits_page() -> str:
    page = _LIMITS_INTRO
    for title, modules in LIMITS.items():
        rows = [row for module in modules for row in limits_of(module)]
        page += f"## {title}\n\n" + table(("limit", "value", "applies to"), rows)
    return page


def limits_of(module: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and description of each number of a module that has a description."""
    tree = ast.parse(Path(str(import_module(module).__file__)).read_text(encoding="utf-8"))
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef) and "Limits" in node.name)]
    for assigned, described in chain.from_iterable(map(pairwise, bodies)):
        target = assigned.targets[0] if isinstance(assigned, ast.Assign) else getattr(assigned, "target", None)
        number = number_of(getattr(assigned, "value", None))
        text = (
            described.value.value
            if isinstance(described, ast.Expr) and isinstance(described.value, ast.Constant)
            else ""
        )
        if isinstance(target, ast.Name) and number is not None and text and not target.id.endswith(_PRICES):
            shown = size(number) if "bytes" in target.id.lower() else f"{number:,}"
            yield f"`{target.id}`", shown, " ".join(str(text).split())


def number_of(value: ast.expr | None) -> int | None:
    """Return the number that `8 * 1024 * 1024` or `4 << 20` is."""
    if isinstance(value, ast.Constant):
        return value.value if type(value.value) is int else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.LShift):
        left, right = number_of(value.left), number_of(value.right)
        if left is not None and right is not None:
            return left << right if isinstance(value.op, ast.LShift) else left * right
    return None


def size(number: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= unit and number % unit == 0:
            return f"{number // unit:,} {name}"
    return f"{number:,} bytes"


SIMULATION = """# Simulation

This page is for developers who change servers, workers or the machine: how to run the simulator, how to read a failure,
and which invariants it checks.

`noetlvm sim` runs the production code of servers, workers, dispatch and machine in one thread, with a simulated clock,
network and store. Each seed determines a random playbook and a random schedule of faults. A checker, which shares no
code with the machine, then reads the logs. The same seed always gives the same bytes.

    noetlvm sim --seeds 100..199 --jobs 2

The exit code is 0 if no invariant is broken; the run stops with exit code 1 at the first seed that breaks one.
`--embedded` simulates the embedded engine instead: one process that is server and worker, crashes, and is resumed by
the next process.

## What is real and what is simulated
| real | simulated |
| --- | --- |
| `service/driver`, `dispatcher`, `hub`, `worker_exchange`: messages, leases, reports | the WebSocket, with latency |
| `worker/remote_worker`, `commands`, `pipeline_run` | tools: outcome and duration follow from the seed |
| `engine` (`--embedded`): resume, retry, requests of other processes | the process that calls the engine |
| `rounds`, `machine`, the memory store | faults of the store: a call fails or blocks, a transaction is the last one |
| asyncio code | the event loop: time passes only when no callback is ready; a stopped process runs nothing |

The HTTP routes, PostgreSQL, SQLite and NATS are not simulated; tests with real processes cover them
([chaos](chaos.md)). A connection behaves like TCP: if a message is lost, the connection is lost too. Wake-ups can be
lost individually. The clocks of the store and of workers jump and drift; monotonic time does not. Servers make a
snapshot every few events instead of every few thousand, so that a server that restarts or loses a race often starts
from a snapshot.

## How to read a failure
The first lines show the broken invariant and the command that reproduces it:

    seed 4711 breaks 2 times; first: effects: `0001/1#2` runs 2 times under 1 leases (execution 0001, event 22)
    reproduce: noetlvm sim --seeds 4711..4711

The smallest scenario that still breaks the same invariant follows: the numbers of servers and workers, the faults with
their times, and the playbooks as JSON (which is valid YAML). Some faults (crashes around a commit, messages, wake-ups,
slow or failing calls of the store) take effect at the next call or message of their target; the others take effect at
their time.

Read the log of `execution` up to `event`, and look for the last `step.scheduled` with a lease. After the correction,
add the seed to `tests/whole/sim/corpus.json` and write a focused test, because a seed gives another scenario as soon as
the generation of playbooks or schedules changes.

## Long campaigns
`--for 8h` runs seeds for that time. A campaign can be run in parts: `--report FILE` creates a report, or appends the
next seeds to it. The result is the same as that of one long run.

    noetlvm sim --seeds 0.. --for 8m --jobs 2 --report report.json
    noetlvm sim --seeds 8192.. --for 8m --jobs 2 --report report.json

A part stops at a seed that breaks an invariant, and the report lists that seed. Start the next part after it.

## Mutants
`tests/whole/sim/mutants.py` plants deliberate bugs, one at a time, and names the conformance case or test that detects
each. The seeds 0 to 24 detect most of them too; `UNSEEN` in `test_mutants.py` lists the others. The test fails if the
text that a mutant replaces is no longer in the source. A bug that never ends is detected by the limit on the number of
callbacks. `tests/whole/sim/test_checker.py` damages logs of simulations (runs, iterations, children, retried
executions) and expects the checker to reject each.

"""


SIMULATION_RUN = """The table shows the last recorded campaign. It ran in parts of at most eight minutes (`--report`)
beside other work: the seeds to 7167 at the commit 8ebc097, those to 26879 at b1c7855, the others at a614786. All three
commits give the same bytes for the seeds 0 to 399. The embedded seeds ran after these commits.

The faults `read_fails`, `slow_read` and `retry` were added after this campaign, so they have no share in the table.
They use separate random sources, so all other faults of a seed are unchanged.

Later runs, in which no seed broke an invariant:

| seeds | commit | command |
| --- | --- | --- |
| 70000 to 74999 | f2334b1 | `noetlvm sim --seeds 70000..74999 --jobs 2` (54 seeds a second on two idle cores) |
| 100000 to 106143 | 0ed232c | `noetlvm sim --seeds 100000..106143` |
| 0 to 23770 | f690347 | `noetlvm sim --seeds 0.. --for 8m --jobs 2` |
| 0 to 22674 | 99617f3 | `noetlvm sim --seeds 0.. --for 8m --jobs 2`, the first run with `retry` |
| 0 to 12143 | 14107a6 | `noetlvm sim --seeds 0..100000 --for 6m --jobs 1`, the first with `stopped` and `outcomes` |

The seed 22675 then needed 3,959 virtual seconds where 3,600 were allowed; the limit is four hours now.
The seeds 773 (`--embedded`), 2296, 3255, 4787, 23771 and 60225 showed defects, which are corrected; they are in the
corpus.

"""


def simulation_page() -> str:
    service, embedded = (
        json.loads((FOLDER / name).read_text(encoding="utf-8"))
        for name in ("simulation-report.json", "simulation-embedded-report.json")
    )
    page = SIMULATION + "## Invariants\n\n"
    page += table(("invariant", "statement"), ((f"`{name}`", text) for name, text in INVARIANTS.items()))
    page += "## Faults\n\n" + SIMULATION_RUN
    sums = ("count", "executions", "events", "virtual_seconds")
    names = ("seeds", "executions", "events", "virtual seconds", "seeds that broke an invariant")
    counts = [[f"{one[key]:,}" for key in sums] + [str(len(one["failing"]))] for one in (service, embedded)]
    page += table(("", "service", "`--embedded`"), zip(names, *counts, strict=True))
    shares = {name: [_share(one, name) for one in (service, embedded)] for name in FAULTS}
    rows = ((f"`{name}`", kind.summary, *shares[name]) for name, kind in FAULTS.items())
    return page + table(("fault", "effect", "share of seeds", "`--embedded`"), rows)


def _share(report: dict[str, Any], kind: str) -> str:
    """Return in how many seeds of a report a fault took effect; empty where it does not exist, or did not yet."""
    is_there = kind in report["faults"] and (kind in EMBEDDED or not report["embedded"])
    return f"{report['faults'][kind]['share']} %" if is_there else ""


def net_picture(colours: Mapping[str, str]) -> str:
    """Return what `noetlc graph` draws of the README's example, in one set of colours: a page selects the picture."""
    (net,) = read_nets(str(FOLDER.parent / "examples" / "orders.yaml")).nets
    return svg(draw(picture_of(analyse(net))), title=net.name, style=style_in(colours))


PAGES: dict[str, Callable[[], str]] = {
    "limits.md": limits_page,
    "rules.md": rules_page,
    "tools.md": tools_page,
    "expressions.md": expressions_page,
    "events.md": events_page,
    "instruction-set.md": instruction_set_page,
    "bundle-format.md": bundle_format_page,
    "command-line.md": command_line_page,
    "migrate.md": migrate_page,
    "configuration.md": configuration_page,
    "simulation.md": simulation_page,
    "net-light.svg": partial(net_picture, LIGHT),
    "net-dark.svg": partial(net_picture, DARK),
}


SHOWN_MAX = 10
"""Lines of a stale page that `--check` shows."""


def differences(name: str, now: str, then: str) -> Iterator[str]:
    """Yield the lines in which a page differs from what the code says, with their numbers in the page."""
    old, new = now.splitlines(), then.splitlines()
    for tag, first, last, low, high in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from (f"docs/{name}:{number + 1}: - {old[number]}" for number in range(first, last))
            yield from (f"docs/{name}:{first + 1}: + {line}" for line in new[low:high])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page is stale")
    check = parser.parse_args().check
    stale = []
    for name, make in PAGES.items():
        text = (MADE_BY if name.endswith(".md") else "") + make().rstrip("\n") + "\n"
        path = FOLDER / name
        if not check:
            path.write_text(text, encoding="utf-8")
            continue
        now = path.read_text(encoding="utf-8") if path.is_file() else ""
        if now != text:
            stale.append(name)
            found = list(differences(name, now, text))
            print(*found[:SHOWN_MAX], sep="\n")
            if len(found) > SHOWN_MAX:
                print(f"docs/{name}: {len(found) - SHOWN_MAX} lines more")
    if stale:
        sys.exit(f"stale pages: {', '.join(stale)}; run `make docs`")


if __name__ == "__main__":
    main()
