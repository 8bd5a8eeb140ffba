"""The one exception that a command shows its user as a message: nothing was run, or nothing more."""

from __future__ import annotations


class Refused(Exception):  # noqa: N818 - it reads as what it says
    """The command cannot do what it was asked; the message says why and what to do. Empty: that was said already."""
