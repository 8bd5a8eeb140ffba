"""Invalid expressions: calls of what does not exist, and calls that do not fit."""

from __future__ import annotations

from tests.noetlvm.bytecode.invalid.case import Case, expressions

UNKNOWN: list[Case] = expressions(
    "loop",
    ("V033", "a filter that nobody has", 'CONST 1; !FILTER "nope" 0 [] 0; RETURN'),
    ("V033", "a filter without a name", 'CONST 1; !FILTER "" 0 [] 0; RETURN'),
    ("V033", "Jinja2's filter for Python attributes", 'CONST "x"; CONST "__class__"; !FILTER "attr" 1 [] 0; RETURN'),
    ("V033", "Jinja2's filter that is left to chance", 'CONST [1]; !FILTER "random" 0 [] 0; RETURN'),
    ("V033", "Jinja2's filter that prints Python", 'CONST 1; !FILTER "pprint" 0 [] 0; RETURN'),
    ("V033", "a name with capitals", 'CONST 1; !FILTER "Length" 0 [] 0; RETURN'),
    ("V033", "a Python attribute", 'CONST 1; !FILTER "__class__" 0 [] 0; RETURN'),
    ("V033", "a test", 'CONST 1; !FILTER "defined" 0 [] 0; RETURN'),
    ("V033", "a function", 'CONST 1; !FILTER "range" 0 [] 0; RETURN'),
    ("V033", "a method", 'CONST 1; !FILTER "startswith" 0 [] 0; RETURN'),
    (
        "V033",
        "on a path that is never taken",
        'CONST true; JUMP_IF end; CONST 1; !FILTER "nope" 0 [] 0; POP; end: CONST 1; RETURN',
    ),
    ("V034", "a test that nobody has", 'CONST 1; !TEST "nope" 0 [] 0; RETURN'),
    ("V034", "a test of identity", 'CONST 1; CONST 1; !TEST "sameas" 1 [] 0; RETURN'),
    ("V034", "a test for callables", 'CONST 1; !TEST "callable" 0 [] 0; RETURN'),
    ("V034", "a filter", 'CONST 1; !TEST "length" 0 [] 0; RETURN'),
    ("V034", "without a name", 'CONST 1; !TEST "" 0 [] 0; RETURN'),
    ("V035", "a function that nobody has", '!CALL "nope" 0 [] 0; RETURN'),
    ("V035", "Python's import", 'CONST "os"; !CALL "__import__" 1 [] 0; RETURN'),
    ("V035", "Python's eval", 'CONST "1"; !CALL "eval" 1 [] 0; RETURN'),
    ("V035", "Jinja2's random text", '!CALL "lipsum" 0 [] 0; RETURN'),
    ("V035", "Jinja2's object that changes", '!CALL "namespace" 0 [] 0; RETURN'),
    ("V035", "Jinja2's cycler", 'CONST 1; !CALL "cycler" 1 [] 0; RETURN'),
    ("V035", "a filter", 'CONST 1; !CALL "length" 1 [] 0; RETURN'),
    ("V036", "a method that nobody has", 'CONST 1; !METHOD "nope" 0 [] 0; RETURN'),
    ("V036", "a method that changes a list", 'LIST 0; CONST 1; !METHOD "append" 1 [] 0; RETURN'),
    ("V036", "a method that changes a mapping", 'MAP 0; MAP 0; !METHOD "update" 1 [] 0; RETURN'),
    ("V036", "a method that takes out of a list", 'LIST 0; !METHOD "pop" 0 [] 0; RETURN'),
    ("V036", "a method that formats", 'CONST "{0.__class__}"; CONST 1; !METHOD "format" 1 [] 0; RETURN'),
    ("V036", "a method that formats with a mapping", 'CONST "{a}"; MAP 0; !METHOD "format_map" 1 [] 0; RETURN'),
    ("V036", "a method that makes bytes", 'CONST "a"; !METHOD "encode" 0 [] 0; RETURN'),
    ("V036", "a list of subclasses", 'CONST 1; !METHOD "__subclasses__" 0 [] 0; RETURN'),
    ("V036", "a filter", 'CONST [1]; !METHOD "length" 0 [] 0; RETURN'),
)

ARGUMENTS: list[Case] = expressions(
    "loop",
    ("V037", "one too many for a filter without", 'CONST []; CONST 1; !FILTER "length" 1 [] 0; RETURN'),
    (
        "V037",
        "one too many for a filter with two",
        'CONST 1; CONST 1; CONST 1; CONST 1; !FILTER "default" 3 [] 0; RETURN',
    ),
    ("V037", "one too few for a filter with two", 'CONST "a"; CONST "b"; !FILTER "replace" 1 [] 0; RETURN'),
    ("V037", "none for a filter that needs one", 'CONST []; !FILTER "batch" 0 [] 0; RETURN'),
    ("V037", "an unknown name for a filter", 'CONST 1; CONST 1; !FILTER "default" 0 ["nope"] 0; RETURN'),
    ("V037", "a name for a filter without arguments", 'CONST "a"; CONST 1; !FILTER "upper" 0 ["x"] 0; RETURN'),
    (
        "V037",
        "the same by position and by name",
        'CONST 1; CONST 1; CONST 1; !FILTER "default" 1 ["default_value"] 0; RETURN',
    ),
    ("V037", "the second by name, the first not at all", 'CONST "a"; CONST "b"; !FILTER "replace" 0 ["new"] 0; RETURN'),
    ("V037", "a named one that has no name", 'CONST []; CONST "a"; !FILTER "selectattr" 0 ["attribute"] 0; RETURN'),
    (
        "V037",
        "too many even without what is spread",
        'CONST 1; CONST 1; CONST 1; CONST 1; CONST []; !FILTER "default" 3 [] 1; RETURN',
    ),
    ("V037", "an unknown name besides a spread", 'CONST 1; CONST 1; CONST {}; !FILTER "default" 0 ["nope"] 2; RETURN'),
    (
        "V037",
        "the same twice besides a spread",
        'CONST 1; CONST 1; CONST 1; CONST {}; !FILTER "default" 1 ["default_value"] 2; RETURN',
    ),
    ("V037", "one too many for a test without", 'CONST 1; CONST 1; !TEST "defined" 1 [] 0; RETURN'),
    ("V037", "none for a test that needs one", 'CONST 1; !TEST "divisibleby" 0 [] 0; RETURN'),
    ("V037", "a name for a test's argument that has none", 'CONST 1; CONST 1; !TEST "eq" 0 ["b"] 0; RETURN'),
    ("V037", "two for a comparison", 'CONST 1; CONST 1; CONST 1; !TEST "<" 2 [] 0; RETURN'),
    ("V037", "none for a function that needs one", '!CALL "range" 0 [] 0; RETURN'),
    ("V037", "one too many for a function", 'CONST 1; CONST 1; CONST 1; CONST 1; !CALL "range" 4 [] 0; RETURN'),
    ("V037", "a name for a function's argument that has none", 'CONST 1; !CALL "range" 0 ["stop"] 0; RETURN'),
    ("V037", "two mappings for one", 'MAP 0; MAP 0; !CALL "dict" 2 [] 0; RETURN'),
    ("V037", "none for a method that needs one", 'CONST "a"; !METHOD "startswith" 0 [] 0; RETURN'),
    ("V037", "one too many for a method", 'CONST "a"; CONST "b"; !METHOD "upper" 1 [] 0; RETURN'),
    ("V037", "a name for a method's argument that has none", 'MAP 0; CONST "b"; !METHOD "get" 0 ["key"] 0; RETURN'),
    ("V037", "an unknown name for a method", 'CONST "a"; CONST 1; !METHOD "split" 0 ["by"] 0; RETURN'),
    ("V038", "one name twice", 'CONST 1; CONST 1; CONST 2; !FILTER "default" 0 ["boolean", "boolean"] 0; RETURN'),
    ("V038", "one name twice where any name goes", 'CONST 1; CONST 2; !CALL "dict" 0 ["a", "a"] 0; RETURN'),
    (
        "V038",
        "one name twice among others",
        'CONST "%"; CONST 1; CONST 2; CONST 3; !FILTER "format" 0 ["a", "b", "a"] 0; RETURN',
    ),
    ("V038", "one name twice besides a spread", 'CONST 1; CONST 2; CONST {}; !CALL "dict" 0 ["a", "a"] 2; RETURN'),
)

CASES = [*UNKNOWN, *ARGUMENTS]
