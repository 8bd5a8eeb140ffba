"""Where the language evaluates templates: one row for each key that may hold one, and the walk that finds them.

Everything that follows templates works from these rows: sites, names, races, arguments of workbook calls, code. A key
that gets a row here is followed everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from noetlc.syntax import ast, nodes
from noetlc.syntax.nodes import Node, Scalar
from noetlc.syntax.tree import EXTRA, attributes
from noetlvm.language.scopes import TemplatePosition


class Moment(StrEnum):
    """When a template is evaluated."""

    NEVER = "it is data that is read as it is written"
    ADMISSION = "whenever a token requests admission"
    LOOP = "when the loop begins"
    ROUTING = "when the step has ended"
    CALL = "before each call of the tool"
    RULE = "after each attempt, when the rule is tried"
    THEN = "after an attempt for which the rule matched"
    TEST = "when the pipeline comes to the block, and before or after each round"


class TemplateKey(NamedTuple):
    """A key whose value may hold templates."""

    position: TemplatePosition
    """Which names are visible (S11)."""
    moment: Moment
    role: str = ""
    """What findings call it; `{}` stands for a key inside the value. Empty: the key itself."""

    @property
    def is_guard(self) -> bool:
        """Whether its value is read as true or false."""
        return self.position in GUARDS

    @property
    def repeats(self) -> bool:
        """Whether a retry of the task evaluates it again, so that it may change between attempts."""
        return self.moment in (Moment.CALL, Moment.RULE, Moment.THEN)


GUARDS = (TemplatePosition.ADMIT, TemplatePosition.ARC_WHEN, TemplatePosition.TASK_POLICY, TemplatePosition.SUGAR_WHEN)
"""Positions where an undefined value is false (S10)."""

_P, _M = TemplatePosition, Moment

TEMPLATE_KEYS: dict[type[ast.Struct], dict[str, TemplateKey]] = {
    ast.Playbook: {"workload": TemplateKey(_P.STATIC, _M.NEVER)},
    ast.Credential: {EXTRA: TemplateKey(_P.STATIC, _M.NEVER, "keychain.{}")},
    ast.ExecutorSpec: {EXTRA: TemplateKey(_P.STATIC, _M.NEVER, "executor.spec.{}")},
    ast.AdmitRule: {"when": TemplateKey(_P.ADMIT, _M.ADMISSION)},
    ast.Loop: {"in_": TemplateKey(_P.LOOP_IN, _M.LOOP)},
    ast.LoopSpec: {"max_in_flight": TemplateKey(_P.LOOP_SPEC, _M.LOOP)},
    ast.LoopPolicy: {"max_in_flight": TemplateKey(_P.LOOP_SPEC, _M.LOOP)},
    ast.Rate: {"max": TemplateKey(_P.LOOP_SPEC, _M.LOOP), "per": TemplateKey(_P.LOOP_SPEC, _M.LOOP)},
    ast.Task: {EXTRA: TemplateKey(_P.TASK_INPUT, _M.CALL, "{}")},
    ast.TaskSpec: {EXTRA: TemplateKey(_P.TASK_INPUT, _M.CALL, "spec.{}")},
    ast.PolicyRule: {"when": TemplateKey(_P.TASK_POLICY, _M.RULE)},
    ast.Then: {
        "attempts": TemplateKey(_P.TASK_DELAY, _M.THEN),
        "delay": TemplateKey(_P.TASK_DELAY, _M.THEN),
        "set_iter": TemplateKey(_P.TASK_PATCH, _M.THEN, "set_iter.{}"),
        "set_ctx": TemplateKey(_P.TASK_PATCH, _M.THEN, "set_ctx.{}"),
    },
    ast.Branch: {"when": TemplateKey(_P.SUGAR_WHEN, _M.TEST)},
    ast.Repeat: {
        "when": TemplateKey(_P.SUGAR_WHEN, _M.TEST),
        "max": TemplateKey(_P.SUGAR_MAX, _M.TEST),
        "delay": TemplateKey(_P.TASK_DELAY, _M.TEST),
    },
    ast.Arc: {
        "when": TemplateKey(_P.ARC_WHEN, _M.ROUTING),
        "args": TemplateKey(_P.ARC_ARGS, _M.ROUTING, "args.{}"),
    },
}
"""By class and attribute; `EXTRA` stands for the open fields of an object."""


def position_of(cls: type[ast.Struct], attribute: str) -> TemplatePosition:
    """Return the position of a key's templates."""
    return TEMPLATE_KEYS[cls][attribute].position


_WALKED_APART = (ast.Step, *ast.PIPELINE_ENTRIES)


class PlacedValue(NamedTuple):
    """A value that may hold templates."""

    node: Node
    key: TemplateKey
    role: str
    """What findings call it: `when`, `delay`, an input's name, `set_ctx.total`."""
    around: tuple[ast.Struct, ...]
    """The objects that it stands in, outermost first."""

    @property
    def rule(self) -> ast.PolicyRule | None:
        return next((struct for struct in reversed(self.around) if isinstance(struct, ast.PolicyRule)), None)

    @property
    def arc(self) -> ast.Arc | None:
        return next((struct for struct in reversed(self.around) if isinstance(struct, ast.Arc)), None)

    @property
    def loops_around(self) -> int:
        """How many of the step's loops the value is inside of, its own not counted."""
        return max(0, sum(isinstance(struct, ast.Loop) for struct in self.around) - 1)


def placed_values(struct: ast.Struct, around: tuple[ast.Struct, ...] = ()) -> Iterator[PlacedValue]:
    """Yield the values of an object and of the objects in it, without those of steps, tasks and blocks inside."""
    here = (*around, struct)
    keys = TEMPLATE_KEYS.get(type(struct), {})
    if EXTRA in keys:
        for entry in struct.extra:
            yield PlacedValue(entry.value, keys[EXTRA], keys[EXTRA].role.format(entry.key.text), here)
    for name in attributes(type(struct)):
        value = getattr(struct, name)
        if value is None:
            continue
        if name in keys:
            yield from _of_key(name, value, keys[name], here)
        elif isinstance(value, ast.Struct):
            yield from placed_values(value, here)
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, ast.Struct) and not isinstance(item, _WALKED_APART):
                    yield from placed_values(item, here)


def _of_key(name: str, value: Node, key: TemplateKey, around: tuple[ast.Struct, ...]) -> Iterator[PlacedValue]:
    if isinstance(value, nodes.Mapping) and "{}" in key.role:
        for entry in value.entries:
            yield PlacedValue(entry.value, key, key.role.format(entry.key.text), around)
    else:
        yield PlacedValue(value, key, key.role or ast.yaml_key(name), around)


def placed_scalars(struct: ast.Struct) -> Iterator[tuple[Scalar, PlacedValue]]:
    """Yield the scalars that are evaluated in an object, each with its place."""
    for placed in placed_values(struct):
        for scalar in nodes.scalars(placed.node):
            yield scalar, placed
