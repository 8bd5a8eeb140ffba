"""Which keys an object must have. Lint checks it, the JSON Schema states it, and the grammar's comments say it."""

from __future__ import annotations

REQUIRED: dict[str, tuple[str, ...]] = {
    "playbook": ("apiVersion", "kind", "metadata", "workflow"),
    "metadata": ("name", "path"),
    "credential": ("name", "kind"),
    "step": ("step",),
    "admit": ("rules",),
    "admit_else": ("then",),
    "verdict": ("allow",),
    "loop": ("in", "iterator"),
    "task": ("kind",),
    "labelled_task": ("kind",),
    "branch_else": ("then",),
    "rounds": ("when", "do"),
    "router": ("arcs",),
    "arc": ("step",),
    "rule_else": ("then",),
}
"""Object rules of `grammar/playbook.lark` and their required keys. Where a rule of the linter has more to say about
an absent key (a policy without `rules`, a `then` without `do`), the key is that rule's and not listed here."""
