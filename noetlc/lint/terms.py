"""On what terms a file is checked: everything besides its content that changes what the rules find."""

from __future__ import annotations

from typing import NamedTuple

from noetlc.lint.options import Options
from noetlc.lint.settings import Settings
from noetlc.syntax.input import DEFAULT_LIMITS, ReadLimits


class Terms(NamedTuple):
    """Limits of reading, and tool kinds that the project vouches for."""

    limits: ReadLimits = DEFAULT_LIMITS
    tool_kinds: frozenset[str] = frozenset()
    allow_unknown_kinds: bool = False

    @property
    def identity(self) -> str:
        """A text that differs whenever the terms do."""
        return repr((self.limits, sorted(self.tool_kinds), self.allow_unknown_kinds))


def terms_for(options: Options, settings: Settings) -> Terms:
    """Combine the command line with the configuration."""
    size = options.max_document_bytes or settings.max_document_bytes
    limits = ReadLimits(document_bytes_max=size) if size else DEFAULT_LIMITS
    return Terms(limits, frozenset(settings.tool_kinds), settings.allow_unknown_kinds)
