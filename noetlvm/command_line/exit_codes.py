"""How a process of either program ends when it does not come to its work; what that gives is each command's own."""

from __future__ import annotations

CANNOT_RUN = 2
"""What was asked for cannot be done; a message says why."""
INTERRUPTED = 130
"""Somebody pressed Ctrl-C."""
