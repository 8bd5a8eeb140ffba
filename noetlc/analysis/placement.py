"""Where a playbook has its work done: the worker pool of a step, and the store of large results.

Both are settings of a `spec` that no tool reads. `pool` as a mapping is another thing: the connections of a tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from noetlc.syntax import ast
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar

POOL = "pool"
RESULT, STORE = "result", "store"


def names_pool(setting: MappingEntry) -> bool:
    """Return whether an entry of a `spec` outside of tasks names a worker pool."""
    return setting.key.text == POOL and isinstance(setting.value, Scalar)


def placing_settings(spec: ast.Struct) -> tuple[MappingEntry, ...]:
    """Return the entries of a `spec` around tasks that state where work is done: they are for no task."""
    is_executor = isinstance(spec, ast.ExecutorSpec)
    return tuple(
        setting for setting in spec.extra if names_pool(setting) or (is_executor and setting.key.text == RESULT)
    )


def named_pools(playbook: ast.Playbook, steps: Iterable[ast.Step]) -> Iterator[Scalar]:
    specs: list[ast.Struct | None] = [playbook.executor_spec]
    for step in steps:
        specs += [step.spec, *(loop.spec for loop in step.loops)]
    for spec in specs:
        pool = _pool_in(spec)
        if pool is not None:
            yield pool


def pool_of(step: ast.Step) -> Scalar | None:
    """Return the pool that a step names: its innermost loop that names one, else the step itself."""
    inside_out = [loop.spec for loop in step.loops][::-1]
    return next((pool for pool in map(_pool_in, (*inside_out, step.spec)) if pool is not None), None)


def _pool_in(spec: ast.Struct | None) -> Scalar | None:
    for setting in spec.extra if spec else ():
        if names_pool(setting) and isinstance(setting.value, Scalar):
            return setting.value
    return None


def result_store(playbook: ast.Playbook) -> Node | None:
    """Return `executor.spec.result.store`, or what stands in its place."""
    spec = playbook.executor_spec
    for setting in spec.extra if spec else ():
        if setting.key.text == RESULT:
            inner = entry_of(setting.value, STORE)
            return setting.value if inner is None else inner
    return None


def entry_of(node: Node, key: str) -> Node | None:
    entries = node.entries if isinstance(node, Mapping) else ()
    return next((entry.value for entry in entries if entry.key.text == key), None)
