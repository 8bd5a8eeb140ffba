"""Where a key of a `spec` belongs: one that stands in another `spec` has no effect (S63)."""

from __future__ import annotations

from collections.abc import Mapping

from noetlc.syntax import ast
from noetlc.syntax.tree import attributes


def keys_of(cls: type[ast.Struct]) -> tuple[str, ...]:
    """Return the keys of an object, as they are written."""
    return tuple(map(ast.yaml_key, attributes(cls)))


def _below(prefix: str, *classes: type[ast.Struct], of: str = "") -> dict[str, str]:
    return {key: f"`{prefix}{key}`{of}" for cls in classes for key in keys_of(cls)}


_NEARBY: Mapping[type[ast.Struct], Mapping[str, str]] = {
    ast.ExecutorSpec: {
        **_below("", ast.Playbook),
        **_below("executor.spec.policy.", ast.ExecutorPolicy),
        **_below("executor.spec.policy.limits.", ast.LimitSettings),
    },
    ast.StepSpec: {
        **_below("", ast.Step),
        **_below("spec.policy.", ast.StepPolicy),
        **_below("spec.policy.lifecycle.", ast.Lifecycle),
    },
    ast.LoopSpec: {**_below("loop.", ast.Loop), **_below("loop.spec.policy.", ast.LoopPolicy)},
    ast.RouterSpec: {**_below("next.", ast.Router), **_below("next.spec.policy.", ast.RouterPolicy)},
    ast.TaskSpec: {
        **_below("then.", ast.Then, of=" of a rule in `spec.policy`"),
        "rules": "`spec.policy.rules`",
    },
}
"""Keys that belong to the same object as the `spec`, and their place there."""

_ELSEWHERE: Mapping[str, str] = {
    **_below("executor.spec.limits.", ast.LimitSettings),
    **{key: place for key, place in _below("executor.spec.", ast.ExecutorSpec).items() if key != "policy"},
    **_below("then.", ast.Then, of=" of a rule in the `spec.policy` of a task"),
    **_below("spec.policy.lifecycle.", ast.Lifecycle, of=" of a step"),
    **{key: f"`spec.policy.{key}` of a step" for key in ("admit", "lifecycle", "failure")},
    **{key: f"`loop.spec.{key}`" for key in ("max_in_flight", "rate")},
    **{key: f"`loop.spec.policy.{key}`" for key in ("exec", "reducers")},
    "mode": "`loop.spec.mode` or `next.spec.mode`",
    "on_deny": "`spec.policy.admit.on_deny` of a step",
    "rules": "`spec.policy.rules` of a task, or `spec.policy.admit.rules` of a step",
}
"""Keys with an effect in some object, and their place there."""


def nearby_place(key: str, spec: type[ast.Struct]) -> str:
    """Return where the object with this kind of `spec` takes the key, or an empty text."""
    return _NEARBY[spec].get(key, "")


def other_place(key: str) -> str:
    """Return which object takes the key, or an empty text: a tool may have a setting of the same name."""
    return _ELSEWHERE.get(key, "")
