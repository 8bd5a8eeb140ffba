"""Path patterns as in .gitignore: `*` within a folder, `**` across folders, `?`, `[abc]`.

A pattern without a slash matches a file or folder of that name at any depth; one with a slash is matched from the
folder that the pattern belongs to. A pattern that matches a folder matches all that is in it.
"""

from __future__ import annotations

import re
from functools import lru_cache

_TOKEN = re.compile(r"(?P<deep>\*\*/?)|(?P<star>\*)|(?P<one>\?)|(?P<set>\[!?\]?[^\]]*\])|(?P<other>.)", re.DOTALL)


def matches(pattern: str, path: str) -> bool:
    """Match `path`, which is relative to the pattern's folder and has forward slashes."""
    return _compiled(pattern).match(path) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    anchored = "/" in pattern.rstrip("/")
    body = "".join(_translate(token) for token in _TOKEN.finditer(pattern.strip("/")))
    lead = "" if anchored else "(?:.*/)?"
    try:
        return re.compile(rf"{lead}{body}(?:/.*)?\Z", re.DOTALL)
    except re.error:  # brackets that are no set, such as `[z-a]`: then they are part of a name
        return re.compile(rf"{lead}{re.escape(pattern)}\Z")


def _translate(token: re.Match[str]) -> str:
    text = token[0]
    match token.lastgroup:
        case "deep":
            return "(?:.*/)?" if text.endswith("/") else ".*"
        case "star":
            return "[^/]*"
        case "one":
            return "[^/]"
        case "set":
            inner = text[1:-1].replace("\\", r"\\").replace("[", r"\[")
            return f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
        case _:
            return re.escape(text)
