"""The commands, as fixtures."""

from __future__ import annotations

from tests.commands import noetlc, noetlvm, words, write

__all__ = ["noetlc", "noetlvm", "words", "write"]
