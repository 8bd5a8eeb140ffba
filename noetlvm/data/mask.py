"""The text that stands in a record where a secret was (S45)."""

from __future__ import annotations

MASK = "***"
