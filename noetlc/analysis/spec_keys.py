"""Where a word of the language belongs: one that stands elsewhere has no effect (S63, S90)."""

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


def _elsewhere(*keys: str) -> dict[str, str]:
    return {key: _ELSEWHERE[key] for key in keys}


_CONDITION = "`when` of a rule, an arc or a branch"
_RULE = "a rule in `spec.policy.rules` of a task"

WORDS: Mapping[str, str] = {
    **{key: f"`{key}` of the playbook" for key in ("executor", "keychain", "workbook", "workflow")},
    **{key: f"`{key}` of the step" for key in ("loop", "next", "tool")},
    **{key: f"an entry of its own in `tool`: `- {key}: …`" for key in ("choose", "until", "while")},
    **_elsewhere("attempts", "backoff", "delay", "do", "set_ctx", "set_iter"),
    **_elsewhere("max_children", "max_payload_bytes", "max_step_runs", "max_transitions"),
    **_elsewhere("entry_step", "final_step", "no_next_is_error", "unguarded_arcs"),
    **_elsewhere("admit", "deadline_s", "failure", "lifecycle", "on_deny", "timeout_s"),
    **_elsewhere("max_in_flight", "reducers", "rules"),
    "allow": "`then.allow` of a rule in `spec.policy.admit` of a step",
    "arcs": "`next.arcs` of the step",
    "else": _RULE,
    "iterator": "`loop.iterator` of the step",
    "on_unmatched": "`spec.policy.on_unmatched` of a task",
    "policy": "`spec.policy` of the task, step, loop or router that it is for",
    "then": _RULE,
    "when": _CONDITION,
    **dict.fromkeys(("case", "cond", "condition", "expr", "if", "only_if", "unless"), _CONDITION),
    "eval": _RULE,
    "on_error": "a rule with `when: \"{{ outcome.status == 'error' }}\"` in `spec.policy.rules` of a task",
    "retry": "`then: {do: retry, …}` of a rule in `spec.policy.rules` of a task",
    "vars": "`set_ctx` in the `then` of a rule, or `workload`",
}
"""The words of the language and of its older dialects that are inputs and settings of no tool, and their places.

Words that tools use for inputs of their own are not among them: `path`, `version`, `mode`, `to`, `max`, `limits`.
"""

PIPELINE_WORDS = frozenset({"eval", "pipe", "set_ctx", "set_iter"})
"""Words for which the linter has rules that explain what replaced them on a task."""


def place_of_word(key: str) -> str:
    """Return where a word of the language belongs; empty for any other key."""
    return WORDS.get(key, "")
