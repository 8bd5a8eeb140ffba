"""Text for XML and HTML: nothing in it is markup, and no character is one that XML forbids."""

from __future__ import annotations

import re
from html import escape

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def cleaned(value: str) -> str:
    """Return a text without characters that neither XML nor UTF-8 files can hold."""
    return _FORBIDDEN.sub("\ufffd", value)


def text(value: str) -> str:
    """Return a text as content of an element."""
    return escape(cleaned(value), quote=False)


def attribute(value: str) -> str:
    """Return a text as value of an attribute between double quotes."""
    return escape(cleaned(value), quote=True).replace("\n", "&#10;")
