"""Invalid expressions by where they stand: names that are not visible there, and values that are not what is needed."""

from __future__ import annotations

from tests.bytecode.invalid.case import Case, expressions

SERVER_GUARDS: list[Case] = [
    *expressions(
        "admit",
        ("V031", "a gate reads secrets", "!NAME keychain; TRUTH; RETURN"),
        ("V031", "a gate reads a secret after all else", 'NAME ctx; ATTR "a"; KEEP_IF end; !NAME keychain; end: TRUTH; RETURN'),
        ("V032", "a gate reads the iteration", "!NAME iter; TRUTH; RETURN".replace("V032", "V030")),
        ("V030", "a gate reads the task before", "!NAME _prev; TRUTH; RETURN"),
        ("V030", "a gate reads the task", "!NAME _task; TRUTH; RETURN"),
        ("V030", "a gate reads the attempt", "!NAME _attempt; TRUTH; RETURN"),
        ("V030", "a gate reads an outcome", "!NAME outcome; TRUTH; RETURN"),
    ),
]
