"""Invalid expressions by where they stand: names that are not visible there, and values that are not what is needed."""

from __future__ import annotations

from noetlvm.language.names import NAME_CHARS_MAX
from tests.noetlvm.bytecode.invalid.case import Case, expressions

_LONG = "x" * (NAME_CHARS_MAX + 1)
_GUARD = "!NAME {}; TRUTH; RETURN"
_MAPPING = '!NAME {}; RECORD ["a"]; RETURN'
_ANYTHING = "!NAME {}; RETURN"

_HIDDEN = (
    # place, expression, names by code
    ("admit", _GUARD, {"V031": "keychain", "V030": "iter _prev _task _attempt outcome"}),
    ("arc when", _GUARD, {"V031": "keychain", "V030": "iter _prev _task _attempt outcome"}),
    ("arc args", _MAPPING, {"V031": "keychain", "V030": "iter _prev _task _attempt outcome"}),
    ("loop", _ANYTHING, {"V031": "keychain", "V032": "iter", "V030": "_prev _task _attempt outcome event"}),
    ("inner loop", _ANYTHING, {"V031": "keychain", "V030": "_prev _task _attempt outcome event"}),
    ("inputs", _MAPPING, {"V032": "iter", "V030": "outcome event"}),
    ("inputs in loop", _MAPPING, {"V030": "outcome event"}),
    ("spec", _MAPPING, {"V032": "iter", "V030": "outcome event"}),
    ("before call", _GUARD, {"V032": "iter", "V030": "outcome event"}),
    ("sugar", _GUARD, {"V032": "iter", "V030": "outcome event"}),
    ("rule", _GUARD, {"V032": "iter", "V030": "event"}),
    ("patch ctx", _MAPPING, {"V032": "iter", "V030": "event"}),
    ("patch before call", _MAPPING, {"V032": "iter", "V030": "event outcome"}),
    ("patch iter", _MAPPING, {"V030": "event"}),
    ("delay", _ANYTHING, {"V032": "iter", "V030": "event"}),
    ("attempts", _ANYTHING, {"V032": "iter", "V030": "event"}),
    ("rounds", _ANYTHING, {"V032": "iter", "V030": "outcome"}),
    ("width", _ANYTHING, {"V032": "iter", "V030": "event", "V031": "keychain"}),
    ("rate", _MAPPING, {"V032": "iter", "V030": "event", "V031": "keychain"}),
)

HIDDEN_NAMES: list[Case] = [
    case
    for place, text, names in _HIDDEN
    for code, words in names.items()
    for name in words.split()
    for case in expressions(place, (code, f"{name} in {place}", text.format(name)))
]

HIDDEN_FURTHER_DOWN: list[Case] = [
    *expressions(
        "admit",
        ("V031", "a secret behind `or`", "NAME ctx; KEEP_IF end; !NAME keychain; end: TRUTH; RETURN"),
        (
            "V031",
            "a secret in a branch that is never taken",
            "CONST true; JUMP_IF end; !NAME keychain; POP; end: CONST 1; TRUTH; RETURN",
        ),
        ("V031", "a secret that is dropped", "!NAME keychain; POP; CONST true; TRUTH; RETURN"),
        ("V031", "a secret in a text", "TEXT_BEGIN; !NAME keychain; EMIT; TEXT_END; TRUTH; RETURN"),
        (
            "V031",
            "a secret in a for block",
            "NAME ctx; ITER; go: NEXT end; POP; !NAME keychain; POP; JUMP go; end: TRUTH; RETURN",
        ),
        ("V031", "a secret in a slot", ".slots 1; !NAME keychain; STORE 0; LOCAL 0; TRUTH; RETURN"),
        ("V030", "the first of several", "NAME ctx; POP; !NAME outcome; POP; NAME _prev; TRUTH; RETURN"),
    ),
]

GUARDS: list[Case] = [
    *expressions(
        "admit",
        ("V039", "a value without its truth", "CONST true; !RETURN"),
        ("V039", "a comparison without its truth", "CONST 1; CONST 1; COMPARE ==; !RETURN"),
        ("V039", "the truth is not the last thing", "CONST 1; TRUTH; NOT; !RETURN"),
        ("V039", "a jump past the truth", "CONST 1; KEEP_IF end; CONST 2; TRUTH; end: !RETURN"),
        ("V039", "one of two ends", "CONST 1; JUMP_IF a; CONST 1; TRUTH; RETURN; a: CONST 1; !RETURN"),
        ("V039", "the other of two ends", "CONST 1; JUMP_IF a; CONST 1; !RETURN; a: CONST 1; TRUTH; RETURN"),
    ),
    *expressions("arc when", ("V039", "an arc's value", 'NAME event; ATTR "error"; !RETURN')),
    *expressions("before call", ("V039", "a leading skip rule's value", "CONST true; !RETURN")),
    *expressions("sugar", ("V039", "a branch's value", "CONST true; !RETURN")),
    *expressions("rule", ("V039", "a rule's value", 'NAME outcome; ATTR "status"; !RETURN')),
]

MAPPINGS: list[Case] = [
    *expressions(
        "inputs",
        ("V040", "inputs are a number", "CONST 1; !RETURN"),
        ("V040", "inputs are a list", "CONST []; !RETURN"),
        ("V040", "inputs are null", "CONST null; !RETURN"),
        ("V040", "inputs are what the task before gave", "NAME _prev; !RETURN"),
        ("V040", "inputs are a mapping, but not for sure", 'RECORD []; FILTER "default" 0 [] 0; !RETURN'),
        ("V040", "a jump past the mapping", "CONST 1; KEEP_IF end; RECORD []; end: !RETURN"),
        ("V040", "one of two ends", "CONST 1; JUMP_IF a; RECORD []; RETURN; a: CONST []; !RETURN"),
    ),
    *expressions("inputs", ("V040", "inputs have keys that are computed", "CONST 1; CONST 2; MAP 1; !RETURN")),
    *expressions("inputs", ("V041", "a key twice", 'CONST 1; CONST 2; !RECORD ["a", "a"]; RETURN')),
    *expressions("spec", ("V040", "a spec is a text", 'CONST "fast"; !RETURN')),
    *expressions("arc args", ("V040", "args are the whole ctx", "NAME ctx; !RETURN")),
    *expressions("patch ctx", ("V040", "a patch of ctx is a list", "LIST 0; !RETURN")),
    *expressions("patch iter", ("V040", "a patch of iter is the outcome", "NAME outcome; !RETURN")),
]

PATCHES: list[Case] = [
    case
    for place in ("patch ctx", "patch iter", "patch before call")
    for case in expressions(
        place,
        ("V063", f"{place}: an empty constant", "CONST {}; !RETURN"),
        ("V063", f"{place}: an empty record", "RECORD []; !RETURN"),
        ("V040", f"{place}: keys that are no text", "CONST 1; CONST 2; MAP 1; !RETURN"),
        ("V040", f"{place}: keys that are computed", 'NAME ctx; ATTR "key"; CONST 2; MAP 1; !RETURN'),
        (
            "V065",
            f"{place}: a key with a dot",
            'CONST 1; CONST 2; RECORD ["a", "a.b"]; !RETURN',
        ),
        ("V065", f"{place}: a key that begins with a digit", 'CONST {"1st": 1}; !RETURN'),
        ("V065", f"{place}: a key that is too long", f'CONST {{"{_LONG}": 1}}; !RETURN'),
        ("V065", f"{place}: an empty key", 'CONST {"": 1}; !RETURN'),
        (
            "V065",
            f"{place}: on one of two ways",
            'CONST 1; JUMP_IF a; CONST {"a": 1}; RETURN; a: CONST {"-": 1}; !RETURN',
        ),
    )
]

CASES = [*PATCHES, *HIDDEN_NAMES, *HIDDEN_FURTHER_DOWN, *GUARDS, *MAPPINGS]
