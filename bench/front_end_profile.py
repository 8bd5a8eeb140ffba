"""Where the time goes in one large file: reading, parsing, templates, and each rule. It has no goals."""

from __future__ import annotations

from bench.lint_large import checked_seconds, large_files
from bench.workplace import Workplace

_SHOWN = 25
"""Stages below the costliest ones are summed up in one line."""


def profile(workplace: Workplace) -> str:
    """Return the stages of checking the largest file, costliest first, as a table."""
    lines, file = list(large_files(workplace).items())[-1]
    runs = [checked_seconds(workplace, file, "--rules") for _ in range(workplace.rounds)]
    seconds = min(runs, key=lambda stages: sum(stages.values()))
    return f"one file of {lines:,} lines, stage by stage:\n{stage_table(seconds)}"


def stage_table(seconds: dict[str, float]) -> str:
    """Lay out seconds by stage, with their share of the whole."""
    total = sum(seconds.values())
    ranked = sorted(seconds.items(), key=lambda item: -item[1])
    rest = sum(cost for _, cost in ranked[_SHOWN:])
    shown = [*ranked[:_SHOWN], *([(f"{len(ranked) - _SHOWN} others", rest)] if rest else []), ("all", total)]
    return "\n".join(f"  {cost * 1000:9,.1f} ms  {cost / total:6.1%}  {stage}" for stage, cost in shown)
