"""Invalid pipelines: tasks in the wrong state, directives to the wrong place, labels, paths."""

from __future__ import annotations

from noetlvm.language.names import NAME_CHARS_MAX
from tests.noetlvm.bytecode.invalid.case import Case, pipelines, retry_text

_LONG = "x" * (NAME_CHARS_MAX + 1)
_TASK = 'ENTER "a"; CALL "noop" <{}> <{}>; '
"""A task that was called: two instructions."""

BETWEEN_TASKS: list[Case] = pipelines(
    ("V050", "MARK in a task that was entered", 'ENTER "a"; !MARK "m"; CALL "noop" <{}> <{}>; BREAK'),
    ("V050", "MARK in a task that was called", _TASK + '!MARK "m"; BREAK'),
    ("V050", "RESET in a task", '.slots 1; ENTER "a"; !RESET 0; CALL "noop" <{}> <{}>; BREAK'),
    ("V050", "ROUND in a task", ".slots 1; " + _TASK + "!ROUND 0 9; BREAK"),
    ("V050", "GOTO in a task that was entered", 'ENTER "a"; !GOTO end; end: END'),
    ("V050", "GOTO in a task that was called", _TASK + "!GOTO end; end: END"),
    ("V050", "END in a task that was entered", 'ENTER "a"; !END'),
    ("V050", "END in a task that was called", _TASK + "!END"),
    ("V050", "END after a rule", _TASK + "UNLESS <ok> end; BREAK; end: !END"),
    ("V050", "END after an error", _TASK + "ON_ERROR end; BREAK; end: !END"),
    ("V050", "the next mark after a rule that did not match", _TASK + 'UNLESS <ok> m; BREAK; m: !MARK "m"; END'),
)

CALLS: list[Case] = pipelines(
    ("V051", "CALL first of all", '!CALL "noop" <{}> <{}>; BREAK'),
    ("V051", "CALL after a mark", 'MARK "m"; !CALL "noop" <{}> <{}>; BREAK'),
    ("V051", "CALL twice", _TASK + '!CALL "noop" <{}> <{}>; BREAK'),
    ("V051", "CALL behind a condition between tasks", 'UNLESS <true> go; END; go: !CALL "noop" <{}> <{}>; BREAK'),
    ("V051", "CALL after the rules", _TASK + 'UNLESS <ok> no; BREAK; no: !CALL "noop" <{}> <{}>; FAIL'),
    ("V062", "a kind without a name", 'ENTER "a"; !CALL "" <{}> <{}>; BREAK'),
    ("V062", "a kind of too long a name", f'ENTER "a"; !CALL "{_LONG}" <{{}}> <{{}}>; BREAK'),
)

WITHOUT_OUTCOME: list[Case] = pipelines(
    ("V052", "ON_ERROR before the call", 'ENTER "a"; !ON_ERROR no; CALL "noop" <{}> <{}>; BREAK; no: FAIL'),
    ("V052", "ON_ERROR between tasks", "!ON_ERROR end; end: END"),
    ("V052", "PATCH before the call", 'ENTER "a"; !PATCH none <patch>; CALL "noop" <{}> <{}>; BREAK'),
    ("V052", "PATCH between tasks", "!PATCH none <patch>; END"),
    ("V052", "PATCH of a skip between tasks", "!PATCH none <patch>; SKIP end; end: END"),
    ("V052", "PATCH before a failure without a call", 'ENTER "a"; !PATCH none <patch>; FAIL'),
    ("V052", "RETRY before the call", 'ENTER "a"; !<retry> go; go: CALL "noop" <{}> <{}>; BREAK'),
    ("V052", "RETRY between tasks", 'go: MARK "m"; !<retry> go; END'),
    ("V052", "CONTINUE before the call", 'ENTER "a"; !CONTINUE end; end: END'),
    ("V052", "CONTINUE between tasks", "!CONTINUE end; end: END"),
    ("V052", "JUMP_TO before the call", 'a: ENTER "a"; !JUMP_TO a'),
    ("V052", "JUMP_TO between tasks", 'MARK "m"; !JUMP_TO end; end: END'),
    ("V052", "BREAK before the call", 'ENTER "a"; !BREAK'),
    ("V052", "BREAK between tasks", "!BREAK"),
    ("V052", "BREAK after a condition between tasks", "UNLESS <more> end; !BREAK; end: END"),
)

WITHOUT_TASK: list[Case] = pipelines(
    ("V053", "SKIP between tasks", "!SKIP end; end: END"),
    ("V053", "SKIP after a mark", 'MARK "m"; !SKIP end; end: END'),
    ("V053", "FAIL between tasks", "!FAIL"),
    ("V053", "FAIL after a round", ".slots 1; ROUND 0 9; !FAIL"),
    ("V053", "FAIL where no branch was taken", "UNLESS <more> no; END; no: !FAIL"),
)

DIFFERENT_STATES: list[Case] = pipelines(
    ("V054", "a rule leads before the call", 'ENTER "a"; go: CALL "noop" <{}> <{}>; !UNLESS <ok> go; BREAK'),
    ("V054", "an error leads before the call", 'ENTER "a"; go: CALL "noop" <{}> <{}>; !ON_ERROR go; BREAK'),
    ("V054", "a skip rule leads past the call", 'ENTER "a"; UNLESS <true> on; !CALL "noop" <{}> <{}>; on: FAIL'),
    (
        "V054",
        "two calls meet in one rule",
        'ENTER "a"; UNLESS <true> b; CALL "noop" <{}> <{}>; UNLESS <ok> r; FAIL; b: !CALL "http" <{}> <{}>; r: FAIL',
    ),
    (
        "V054",
        "two tasks meet in one end",
        _TASK + 'UNLESS <ok> no; CONTINUE b; no: FAIL; b: ENTER "b"; CALL "noop" <{}> <{}>; !UNLESS <ok> no; BREAK',
    ),
    (
        "V054",
        "a condition between tasks leads into a task",
        "UNLESS <more> no; " + _TASK + "no: FAIL",
    ),
    (
        "V054",
        "a condition between tasks leads to a rule",
        'MARK "m"; UNLESS <more> r; ' + _TASK + "r: UNLESS <ok> s; BREAK; s: FAIL",
    ),
)

PLACES: list[Case] = pipelines(
    ("V055", "CONTINUE to a CALL", 'ENTER "a"; go: CALL "noop" <{}> <{}>; !CONTINUE go'),
    ("V055", "CONTINUE to a rule", _TASK + "ON_ERROR r; !CONTINUE r; r: UNLESS <ok> f; BREAK; f: FAIL"),
    ("V055", "CONTINUE to a condition between tasks", _TASK + "!CONTINUE c; c: UNLESS <more> e; e: END"),
    ("V055", "CONTINUE to FAIL", _TASK + "ON_ERROR f; !CONTINUE f; f: FAIL"),
    ("V055", "CONTINUE to BREAK", _TASK + "UNLESS <ok> b; !CONTINUE b; b: BREAK"),
    ("V055", "CONTINUE to a PATCH", _TASK + "UNLESS <ok> p; !CONTINUE p; p: PATCH none <patch>; BREAK"),
    ("V055", "JUMP_TO to a CALL", 'ENTER "a"; go: CALL "noop" <{}> <{}>; !JUMP_TO go'),
    ("V055", "JUMP_TO to itself", _TASK + "here: !JUMP_TO here"),
    ("V055", "JUMP_TO to another task's CALL", _TASK + '!JUMP_TO go; ENTER "b"; go: CALL "noop" <{}> <{}>; BREAK'),
    ("V055", "SKIP to the CALL", 'ENTER "a"; UNLESS <true> go; !SKIP go; go: CALL "noop" <{}> <{}>; BREAK'),
    ("V055", "SKIP to FAIL", 'ENTER "a"; UNLESS <true> f; !SKIP f; f: FAIL'),
    ("V055", "GOTO to a condition", "c: UNLESS <more> e; !GOTO c; e: END"),
    ("V055", "GOTO to a CALL", 'MARK "m"; UNLESS <more> e; !GOTO go; e: ENTER "a"; go: CALL "noop" <{}> <{}>; BREAK'),
    ("V056", "RETRY to the ENTER", 'a: ENTER "a"; CALL "noop" <{}> <{}>; !<retry> a; FAIL'),
    ("V056", "RETRY to itself", _TASK + "here: !<retry> here; FAIL"),
    ("V056", "RETRY to its own FAIL", _TASK + "!<retry> f; f: FAIL"),
    (
        "V056",
        "RETRY to the second of the leading rules",
        'ENTER "a"; UNLESS <true> r; SKIP e; r: UNLESS <true> go; SKIP e; go: CALL "noop" <{}> <{}>; '
        "!<retry> r; FAIL; e: END",
    ),
    (
        "V056",
        "RETRY to the CALL of the task before",
        'ENTER "a"; go: CALL "noop" <{}> <{}>; CONTINUE b; b: ENTER "b"; CALL "noop" <{}> <{}>; !<retry> go; FAIL',
    ),
    (
        "V056",
        "RETRY to the CALL of the task after",
        'ENTER "a"; CALL "noop" <{}> <{}>; ON_ERROR r; CONTINUE b; r: !<retry> go; FAIL; '
        'b: ENTER "b"; go: CALL "noop" <{}> <{}>; BREAK',
    ),
    ("V061", "RETRY with no attempt", f'ENTER "a"; go: CALL "noop" <{{}}> <{{}}>; !{retry_text("0")} go; FAIL'),
)

LABELS: list[Case] = pipelines(
    ("V057", "two tasks with one label", _TASK + 'CONTINUE b; b: !ENTER "a"; CALL "noop" <{}> <{}>; BREAK'),
    ("V057", "two marks with one label", 'MARK "m"; !MARK "m"; END'),
    ("V057", "a task with the label of a mark", 'MARK "a"; !ENTER "a"; CALL "noop" <{}> <{}>; BREAK'),
    ("V057", "a mark with the label of a task", _TASK + 'CONTINUE m; m: !MARK "a"; END'),
    ("V058", "an empty label", '!ENTER ""; CALL "noop" <{}> <{}>; BREAK'),
    ("V058", "a label that is too long", f'!MARK "{_LONG}"; END'),
    ("V058", "a label with a space", '!ENTER "load orders"; CALL "noop" <{}> <{}>; BREAK'),
    ("V058", "a label that begins with a digit", '!ENTER "1st"; CALL "noop" <{}> <{}>; BREAK'),
    ("V058", "a label with a slash", '!ENTER "a/b"; CALL "noop" <{}> <{}>; BREAK'),
    ("V058", "a label with a hash", '!MARK "a#b"; END'),
    ("V058", "a label with two dots", '!MARK "a..b"; END'),
    ("V058", "a label that ends with a dot", '!MARK "a."; END'),
    ("V058", "a label with a line break", r'!MARK "a\n"; END'),
)

PATHS: list[Case] = pipelines(
    ("V007", "no code at all", ""),
    ("V059", "only an ENTER", '!ENTER "a"'),
    ("V059", "a call and no directive", 'ENTER "a"; !CALL "noop" <{}> <{}>'),
    ("V059", "a mark at the end", '!MARK "m"'),
    ("V059", "a patch at the end", _TASK + "UNLESS <ok> f; BREAK; f: !PATCH none <patch>"),
    ("V059", "a retry at the end", 'ENTER "a"; go: CALL "noop" <{}> <{}>; !<retry> go'),
    ("V059", "a round at the end", ".slots 1; !ROUND 0 9"),
    ("V059", "a reset at the end", ".slots 1; !RESET 0"),
    ("V060", "after END", "END; !END"),
    ("V060", "after BREAK", _TASK + "BREAK; !FAIL"),
    ("V060", "after FAIL", _TASK + "FAIL; !BREAK"),
    ("V060", "after CONTINUE", _TASK + "CONTINUE end; !FAIL; end: END"),
    ("V060", "after GOTO", 'GOTO end; !MARK "m"; end: END'),
    ("V060", "after JUMP_TO", 'a: ENTER "a"; CALL "noop" <{}> <{}>; JUMP_TO a; !END'),
    ("V060", "after SKIP", 'ENTER "a"; SKIP end; !FAIL; end: END'),
    ("V060", "a task that nobody enters", _TASK + 'BREAK; !ENTER "b"; CALL "noop" <{}> <{}>; BREAK'),
    ("V060", "two tasks that lead to each other only", "END; a: !GOTO b; b: GOTO a"),
    ("V060", "the end of an endless while", 'w: MARK "w"; GOTO w; !END'),
)

OPERANDS: list[Case] = [
    *pipelines(
        ("V004", "CONTINUE to the end of the code", _TASK + "!CONTINUE end; end:"),
        ("V004", "GOTO to the end of the code", "!GOTO end; end:"),
        ("V004", "UNLESS to the end of the code", "!UNLESS <true> end; END; end:"),
        ("V004", "ON_ERROR to the end of the code", _TASK + "!ON_ERROR end; BREAK; end:"),
        ("V004", "RETRY to the end of the code", _TASK + "!<retry> end; FAIL; end:"),
        ("V005", "RESET without counters", "!RESET 0; END"),
        ("V005", "ROUND without counters", "!ROUND 0 9; END"),
        ("V005", "RESET of one past the last", ".slots 2; !RESET 2; END"),
        ("V005", "ROUND of one past the last", ".slots 1; !ROUND 1 9; END"),
        ("V009", "more counters than allowed", ".slots 65536; END"),
        ("V063", "PATCH that writes nothing", _TASK + "!PATCH none none; BREAK"),
        ("V064", "iter written outside a loop", _TASK + "!PATCH <patch> none; BREAK"),
        ("V064", "iter and ctx written outside a loop", _TASK + "!PATCH <patch> <patch>; BREAK"),
    ),
    *pipelines(
        ("V063", "PATCH that writes nothing, in a loop", _TASK + "!PATCH none none; BREAK"),
        ("V052", "iter written before the call", 'ENTER "a"; !PATCH <patch> none; CALL "noop" <{}> <{}>; BREAK'),
        in_loop=True,
    ),
]

CASES = [
    *BETWEEN_TASKS,
    *CALLS,
    *WITHOUT_OUTCOME,
    *WITHOUT_TASK,
    *DIFFERENT_STATES,
    *PLACES,
    *LABELS,
    *PATHS,
    *OPERANDS,
]
