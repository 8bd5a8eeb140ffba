"""Messages for mistakes in templates: what was found, what was expected, what to write instead.

Pure: a place and what the grammar would have taken there go in, a problem comes out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from noetlc.syntax.span import Span
from noetlc.syntax.template_ast import TemplateProblem
from noetlc.syntax.template_lexer import ENDS, Opening, TemplateToken, Trouble, patterns
from noetlvm.nearest import did_you_mean

STATEMENTS = ("if", "elif", "else", "endif", "for", "endfor", "set", "endset", "raw", "endraw")
OTHER_STATEMENTS = frozenset(
    {"autoescape", "block", "break", "call", "continue", "do", "extends", "filter", "from", "import", "include"}
    | {"macro", "print", "trans", "with"}
)
"""Statements of Jinja2 and its extensions that playbooks do not have."""

_SHOWN_MAX = 30
_RAW = "put `{% raw %}` before and `{% endraw %}` after it"
_GO = re.compile(r"\{\{-?\s*(?:\.(?![\d.])|(?:if|index|json|len|printf?|println|range|with)\s+[.$])[^{}]*\}\}")
"""A mark that begins with a field (`.Names`), or with a word of Go before a field or a variable."""
_GO_MARK = re.compile(r"\{\{-?\s*(?:[.$]|(?:else|end|if|index|json|len|printf?|println|range|with)\b)")
_MARK = re.compile(r"\{\{.*?\}\}", re.DOTALL)


class Slip(NamedTuple):
    """An operator of another language. `back` is how much of it the grammar accepted before the error."""

    text: str
    back: int
    message: str
    help: str


SLIPS = (
    Slip("&&", 0, "`&&` is not an operator here", "write `and`"),
    Slip("||", 1, "`||` is not an operator here", "write `or`"),
    Slip("!==", 2, "`!==` is not an operator here", "write `!=`"),
    Slip("===", 2, "`===` is not an operator here", "write `==`"),
    Slip("<>", 1, "`<>` is not an operator here", "write `!=`"),
    Slip("=>", 0, "`=>` is not an operator here", "write `>=` to compare"),
    Slip("&", 0, "`&` is not an operator here", "write `and`"),
    Slip("!", 0, "`!` is not an operator here", "write `not`"),
    Slip("?", 0, "`?` is not an operator here", "write `a if condition else b` for `condition ? a : b`"),
    Slip("=", 0, "`=` does not compare", "write `==`; a single `=` only names an argument, as in `f(name=value)`"),
    Slip("$", 0, "`$` is not part of a name", "leave it out: names are written bare, as in `ctx.total`"),
    Slip(";", 0, "`;` has no meaning in a template", "end the expression, or use a second `{{ … }}`"),
    Slip("`", 0, "a backtick does not quote text", "write `'text'` or `\"text\"`"),
    *(
        Slip(quote, 0, f"`{quote}` is a typographic quote", "write `'text'` or `\"text\"` with straight quotes")
        for quote in "\u201c\u201d\u2018\u2019\u00ab\u00bb"
    ),
)

_CLOSERS = ("RPAR", "RSQB", "RBRACE")
_MARKS = {"OUTPUT_CLOSE": "}}", "TAG_CLOSE": "%}"}
_WORTH_NAMING = (*_CLOSERS, "COMMA", "COLON", "EQUAL", *_MARKS)


_HELP_AFTER = {
    "DOT": "write the attribute's name, or `value['text']` for a key that is not a name",
    "VBAR": "write the filter's name, as in `value | default('none')`",
    "IS": "write the test's name, as in `value is defined`",
    "NOT": "write `not in`, or `and not` to join two conditions",
}
_HELP_IN = {
    "if": "write `{% if condition %}`",
    "elif": "write `{% elif condition %}`",
    "else": "write `{% else %}`",
    "for": "write `{% for name in values %}`",
    "set": "write `{% set name = value %}`",
    "endif": "write `{% endif %}`",
    "endfor": "write `{% endfor %}`",
    "endset": "write `{% endset %}`",
}


class Stumble(NamedTuple):
    """Where the grammar accepts no further token."""

    text: str
    opening: Opening
    token: TemplateToken
    previous: TemplateToken | None
    expected: frozenset[str]


def explain(stumble: Stumble) -> TemplateProblem:
    """Return the problem that a token makes where the grammar does not take it."""
    for explanation in (_trouble, _misplaced_word, _slip, _at_end, _after_filter, _two_values):
        problem = explanation(stumble)
        if problem is not None:
            return problem
    found = _shown(stumble.text, stumble.token.span)
    return _syntax(stumble, f"expected {_expectation(stumble.expected)}, found {found}", "")


def unclosed_mark(text: str, opening: Opening, end: TemplateToken) -> TemplateProblem:
    """Return the problem of a `{{` or `{%` that is not closed as it should be."""
    mark, wanted = ("{{", "}}") if opening.terminal == "OUTPUT_OPEN" else ("{%", "%}")
    span = Span(opening.span.start, opening.span.start + 2)
    if end.terminal == Trouble.UNCLOSED:
        return TemplateProblem("unclosed", span, f"`{mark}` is never closed", f"write `{wanted}` where it ends")
    found = text[end.span.start : end.span.end]
    message = f"`{mark}` is closed with `{found}`"
    if end.terminal == Trouble.SINGLE_CLOSE and text[: end.span.start].rstrip().endswith("}"):
        return TemplateProblem("unclosed", end.span, message, "write `} }}`: the first `}` ends the mapping")
    return TemplateProblem("unclosed", end.span, message, f"write `{wanted}`")


def go_stretch(text: str) -> Span | None:
    """Return the part of a text that is a template of Go; None if none is, or if other templates stand within it."""
    found = _GO.search(text)
    marks = list(_MARK.finditer(text, found.start())) if found else []
    of_go = [mark for mark in marks if _GO_MARK.match(mark[0])]
    if not of_go or marks[: len(of_go)] != of_go:
        return None
    return Span(of_go[0].start(), of_go[-1].end())


def go_template(text: str) -> TemplateProblem | None:
    """Return the one problem of a text in the template language of Go; None if nothing looks like that."""
    found = _GO.search(text)
    if found is None:
        return None
    message = f"`{found[0]}` is a template of Go (docker, kubectl, helm), and stays text only if marked so"
    return TemplateProblem("syntax", Span(*found.span()), message, _RAW)


def unclosed_text(text: str, span: Span) -> TemplateProblem:
    """Return the problem of a comment or raw block that never ends."""
    if text.startswith("${#", span.start - 1) and span.start:
        return TemplateProblem("unclosed", span, "`{#` opens a comment of the template, after `$` too", _RAW)
    if text.startswith("{#", span.start):
        return TemplateProblem("unclosed", span, "the comment is never closed", "write `#}` where it ends")
    return TemplateProblem("unclosed", span, "`{% raw %}` is never closed", "write `{% endraw %}` where it ends")


def runaway_string(text: str, token: TemplateToken) -> TemplateProblem:
    """Return the problem of a quote whose string runs over the end of its `{{ … }}`."""
    quote = text[token.span.start]
    return TemplateProblem(
        "string",
        Span(token.span.start, token.span.start + 1),
        f"the string that this {quote} opens is not closed before the mark ends",
        f"close it with {quote}; a string with an apostrophe in it needs the other quotes around it",
    )


def unknown_statement(opening: Opening) -> TemplateProblem:
    """Return the problem of a statement that playbooks do not have."""
    keyword = opening.keyword
    if not keyword:
        return TemplateProblem(
            "statement", opening.span, "`{%` needs a statement", "write `if`, `for` or `set` after it"
        )
    if keyword in ("elseif", "elsif"):
        return TemplateProblem("statement", opening.span, f"`{keyword}` is not a statement", "write `elif`")
    if keyword in STATEMENTS:
        message = f"`{keyword}` cannot stand like this"
        return TemplateProblem("statement", opening.span, message, "write `{% raw %}` before and `{% endraw %}` after")
    if keyword.removeprefix("end") in OTHER_STATEMENTS:
        message = f"`{{% {keyword} %}}` does not work in playbooks"
        return TemplateProblem("statement", opening.span, message, "templates here have `if`, `for` and `set`")
    help = did_you_mean(keyword, STATEMENTS) or "templates here have `if`, `for` and `set`"
    return TemplateProblem("statement", opening.span, f"`{keyword}` is not a statement", help)


def stray_tag(opening: Opening, takers: tuple[str, ...]) -> TemplateProblem:
    """Return the problem of an `else` or `end…` that belongs to no block."""
    owners = " or ".join(f"`{{% {taker} %}}`" for taker in takers)
    message = f"`{{% {opening.keyword} %}}` has no open {owners} to belong to"
    return TemplateProblem("block", opening.span, message, f"remove it, or write the {owners} before it")


def open_block(keyword: str, span: Span, before: str) -> TemplateProblem:
    """Return the problem of a block that something else ends, or nothing."""
    message = f"`{{% {keyword} %}}` is not closed before `{{% {before} %}}`" if before else ""
    message = message or f"`{{% {keyword} %}}` is never closed"
    return TemplateProblem("block", span, message, f"write `{{% end{keyword} %}}` where it ends")


def too_deep(span: Span, what: str, limit: int) -> TemplateProblem:
    return TemplateProblem("depth", span, f"{what} nest deeper than {limit}", "split the template into simpler ones")


def too_long(text: str, limit: int) -> TemplateProblem:
    message = f"a template of {len(text):,} characters is too long: the limit is {limit:,}"
    return TemplateProblem("size", Span(0, 2), message, "move the text into a file or a tool's script")


def too_many_tokens(opening: Span, limit: int) -> TemplateProblem:
    """Return the problem of an expression that is longer than anybody would write one."""
    message = f"the expression has more than {limit:,} names, numbers, operators and brackets"
    return TemplateProblem("size", opening, message, "move the data into `workload`, or the work into a tool's script")


def _trouble(stumble: Stumble) -> TemplateProblem | None:
    token = stumble.token
    if token.terminal == Trouble.OPEN_QUOTE:
        quote = stumble.text[token.span.start]
        message = f"the string that this {quote} opens is never closed"
        return TemplateProblem("string", token.span, message, f"write {quote} where it ends")
    return None


def _slip(stumble: Stumble) -> TemplateProblem | None:
    at = stumble.token.span.start
    for slip in SLIPS:
        start = at - slip.back
        if start >= 0 and stumble.text.startswith(slip.text, start):
            return TemplateProblem("syntax", Span(start, start + len(slip.text)), slip.message, slip.help)
    if stumble.token.terminal == Trouble.UNKNOWN:
        found = _shown(stumble.text, stumble.token.span)
        return _syntax(
            stumble, f"{found} has no meaning in an expression", "remove it, or quote the text it belongs to"
        )
    return None


def _misplaced_word(stumble: Stumble) -> TemplateProblem | None:
    keyword, terminal = stumble.opening.keyword, stumble.token.terminal
    if keyword == "else" and terminal == "IF":
        return _syntax(stumble, "`else` takes no condition", "write `{% elif … %}`")
    if keyword == "set" and stumble.previous is None:
        return _syntax(stumble, "expected a name after `set`", _HELP_IN["set"])
    if stumble.opening.terminal == "TAG_SET_BLOCK":
        return _syntax(stumble, "expected `=` after the name", _HELP_IN["set"])
    if terminal == "IF" and "NAME" not in stumble.expected:
        return _syntax(stumble, "a condition cannot stand here", "put `a if b else c` in parentheses")
    return None


def _at_end(stumble: Stumble) -> TemplateProblem | None:
    if stumble.token.terminal not in ENDS:
        return None
    mark = _shown(stumble.text, stumble.token.span)
    closer = next((name for name in _CLOSERS if name in stumble.expected), "")
    if closer and "STRING" not in stumble.expected:
        sign = _sign(closer)
        return _syntax(stumble, f"expected {sign} before {mark}", f"write {sign} where its opening bracket's part ends")
    if stumble.previous is None:
        return _syntax(stumble, f"expected {_expectation(stumble.expected)} before {mark}: nothing stands here", "")
    before = _shown(stumble.text, stumble.previous.span)
    return _syntax(stumble, f"expected {_expectation(stumble.expected)} between {before} and {mark}", "")


def _after_filter(stumble: Stumble) -> TemplateProblem | None:
    if stumble.token.terminal not in ("DOT", "LSQB") or "STRING" in stumble.expected or "NAME" in stumble.expected:
        return None
    sign = _shown(stumble.text, stumble.token.span)
    help = "put parentheses around what comes before it: `(a | first).name`"
    return _syntax(stumble, f"{sign} cannot follow a filter or a test directly", help)


def _two_values(stumble: Stumble) -> TemplateProblem | None:
    starts = ("NAME", "STRING", "INTEGER", "FLOAT")
    previous, token = stumble.previous, stumble.token
    if previous is None or token.terminal not in starts or "PLUS" not in stumble.expected:
        return None
    before, found = _shown(stumble.text, previous.span), _shown(stumble.text, token.span)
    return _syntax(
        stumble,
        f"expected an operator between {before} and {found}",
        "join two values with an operator (`~` joins text), or put quotes around text",
    )


def _syntax(stumble: Stumble, message: str, help: str) -> TemplateProblem:
    return TemplateProblem("syntax", stumble.token.span, message, help or _help(stumble))


def _help(stumble: Stumble) -> str:
    if "STRING" in stumble.expected:
        return "write a value here: a name, a number, a quoted text, a list or an expression"
    after = stumble.previous.terminal if stumble.previous else ""
    general = "finish the expression before this, or join it with an operator"
    return _HELP_AFTER.get(after) or _HELP_IN.get(stumble.opening.keyword) or general


def _expectation(expected: frozenset[str]) -> str:
    """Describe what the grammar would have accepted."""
    words = []
    if "STRING" in expected:
        words.append("a value")
    elif "NAME" in expected:
        words.append("a name")
    elif "PLUS" in expected:
        words.append("an operator")
    words += [_sign(name) for name in _WORTH_NAMING if name in expected]
    if "IN" in expected and not {"NAME", "PLUS"} & expected:  # elsewhere it is one operator or name of many
        words.append("`in`")
    return " or ".join(words) or "the end"


def _sign(terminal: str) -> str:
    if terminal in _MARKS:
        return f"`{_MARKS[terminal]}`"
    grammar = patterns()
    texts = {name: text for text, name in (*grammar.operators.items(), *grammar.words.items())}
    return f"`{texts[terminal]}`"


def _shown(text: str, span: Span) -> str:
    found = text[span.start : min(span.end, span.start + _SHOWN_MAX)]
    if not found:
        return "the end"
    if not found.isprintable():
        found = found.encode("unicode-escape", "backslashreplace").decode("ascii")
    return f"`{found}{'…' if span.end - span.start > _SHOWN_MAX else ''}`"
