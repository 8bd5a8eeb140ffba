"""A run's verdict, where tests look for it."""

from __future__ import annotations

from noetlvm.conformance.verdict import WORDS, complaints

__all__ = ["WORDS", "complaints"]
