"""Facts about a playbook that the rewrites use. Read-only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from noetlc.migrate.document import Draft, Leaf, Map, Seq, leaves
from noetlc.migrate.templates import paths_read

STEP_KEYS = frozenset({"step", "desc", "spec", "loop", "tool", "next"})
_SQL_WORDS = ("command", "commands", "query", "sql", "statement")
SUGAR = frozenset({"choose", "while", "until"})
_NO_CODE = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|(\$\w*\$).*?\1", re.DOTALL)
"""Texts, names and comments of SQL, where `;` ends no statement."""
_DATA_KEY = re.compile(r"""["']data["']\s*:|\bdata\s*=""")


class TaskFacts(NamedTuple):
    label: str
    body: Map
    kind: str
    returns_data: bool
    """Its code makes a mapping with the key `data`: reading `.data` of the result is then no wrapper's."""

    @property
    def has_several_statements(self) -> bool:
        """True if its SQL has; each has a result of its own."""
        sql = next((node for word in _SQL_WORDS if (node := self.body.get(word)) is not None), None)
        if isinstance(sql, Seq):
            return has_several_statements([leaf.value for leaf in sql.values if isinstance(leaf, Leaf)])
        return has_several_statements(sql.value if isinstance(sql, Leaf) else None)


def has_several_statements(sql: object) -> bool:
    """Return whether SQL, a text or a list of texts, has more than one statement."""
    texts = sql if isinstance(sql, list) else [sql]
    code = ";".join(_NO_CODE.sub("", text).strip().rstrip(";") for text in texts if isinstance(text, str))
    return any(part.strip() for part in code.split(";")[1:])


class StepFacts(NamedTuple):
    body: Map
    name: str
    has_loop: bool
    is_parallel: bool
    tasks: tuple[TaskFacts, ...]

    @property
    def last(self) -> TaskFacts | None:
        return self.tasks[-1] if self.tasks else None


class VarsPlan(NamedTuple):
    """Where v10 stores each variable of `vars`."""

    in_workload: frozenset[str]
    initial: frozenset[str]
    """Root variables that something writes: they need a first value in `ctx`."""
    by_step: dict[tuple[str, str], str]
    """Path by step and key, for variables of one step: `iter.page`, `ctx.load_page`."""

    def target(self, step: str, key: str) -> str:
        if key in self.in_workload:
            return f"workload.{key}"
        return self.by_step.get((step, key), f"ctx.{key}")


class PlaybookFacts:
    """The whole document."""

    def __init__(self, root: Map) -> None:
        self.root = root
        workload = root.map("workload")
        self.workload = frozenset(workload.keys()) if workload else frozenset()
        self.steps = tuple(step_facts(step) for step in steps_of(root))
        self.by_name = {step.name: step for step in self.steps if step.name}
        self.labels = frozenset(task.label for step in self.steps for task in step.tasks if task.label)
        self.defined = self.workload | self.by_name.keys() | self.labels | frozenset(_given_names(root))
        self.vars = _vars_plan(root, self.steps)


def steps_of(root: Map) -> list[Map]:
    workflow = root.seq("workflow")
    return [step for step in workflow.values if isinstance(step, Map)] if workflow else []


def step_facts(step: Map) -> StepFacts:
    loop = step.map("loop")
    spec = loop.map("spec") if loop else None
    mode = (spec.text("mode") if spec else "") or (loop.text("mode") if loop else "")
    tasks = tuple(
        TaskFacts(label, body, body.text("kind"), _DATA_KEY.search(body.text("code")) is not None)
        for label, body in tasks_of(step.get("tool"))
    )
    return StepFacts(step, step.text("step"), loop is not None, mode in ("parallel", "async"), tasks)


def tasks_of(tool: Draft | None) -> Iterator[tuple[str, Map]]:
    """Yield the label and body of every task of a pipeline, those inside sugar included."""
    if isinstance(tool, Map):
        yield from _entry_tasks(tool)
    elif isinstance(tool, Seq):
        for value in tool.values:
            if isinstance(value, Map):
                yield from _entry_tasks(value)


def _entry_tasks(entry: Map) -> Iterator[tuple[str, Map]]:
    first = entry.pairs[0] if entry.pairs else None
    if first is None or entry.pair("kind") or entry.pair("type") or not isinstance(first.value, Map | Seq):
        yield entry.text("name"), entry
    elif first.key in SUGAR:
        blocks = first.value.values if isinstance(first.value, Seq) else [first.value]
        for block in blocks:
            if isinstance(block, Map):
                otherwise = block.map("else")
                for body in (block.get("then"), block.get("do"), otherwise.get("then") if otherwise else None):
                    yield from tasks_of(body)
    elif len(entry.pairs) == 1 and isinstance(first.value, Map) and first.key not in ("tool", "spec"):
        yield first.key, first.value
    else:
        yield entry.text("name"), entry


def _given_names(root: Map) -> Iterator[str]:
    """Yield the names that arcs pass and loops bind."""
    for step in steps_of(root):
        loop = step.map("loop")
        if loop:
            yield loop.text("iterator") or loop.text("element")
        for pair in _pairs_named(step.get("next"), "args"):
            if isinstance(pair, Map):
                yield from pair.keys()


def _pairs_named(node: Draft | None, key: str) -> Iterator[Draft]:
    if isinstance(node, Map):
        for pair in node.pairs:
            if pair.key == key:
                yield pair.value
            else:
                yield from _pairs_named(pair.value, key)
    elif isinstance(node, Seq):
        for value in node.values:
            yield from _pairs_named(value, key)


def written_keys(node: Draft | None, word: str) -> Iterator[str]:
    """Yield the keys that every mapping under a word writes."""
    for patch in _pairs_named(node, word):
        if isinstance(patch, Map):
            yield from (key.removeprefix("vars.") for key in list(patch.keys()))


def _vars_plan(root: Map, steps: tuple[StepFacts, ...]) -> VarsPlan:
    own = {step.name: set(written_keys(step.body.get("tool"), "set_vars")) for step in steps}
    shared = {key for step in steps for key in _step_vars(step)}
    declared = root.map("vars")
    root_keys = frozenset(declared.keys()) if declared else frozenset()
    retained = {key for step in steps for key in written_keys(step.body.get("tool"), "set_ctx")}
    written = shared.union(retained, *own.values())
    writers = [key for keys in own.values() for key in keys]
    by_step = {}
    for step in steps:
        for key in own[step.name] - shared - root_keys:
            name = key if writers.count(key) == 1 else f"{step.name}_{key}"
            outlives = key in _arc_reads(step) or (not step.is_parallel and _read_before_written(step, key))
            local = step.has_loop and not outlives
            by_step[step.name, key] = f"iter.{key}" if local else f"ctx.{name}"
    return VarsPlan(root_keys - written, root_keys & written, by_step)


def _read_before_written(step: StepFacts, key: str) -> bool:
    """Return whether a task reads a variable that no task before it has written in this pipeline."""
    for task in step.tasks:
        if any(path[:2] == ("vars", key) for path in reads(task.body)):
            return True
        if key in written_keys(task.body, "set_vars"):
            return False
    return False


def carried_vars(facts: PlaybookFacts) -> Iterator[tuple[StepFacts, str]]:
    """Yield the variables whose value of a step's last run is there when the step runs again and reads them."""
    for (name, key), target in facts.vars.by_step.items():
        step = facts.by_name.get(name)
        if step and target.startswith("ctx.") and _read_before_written(step, key) and leads_back(facts, step):
            yield step, key


def leads_back(facts: PlaybookFacts, step: StepFacts) -> bool:
    """Return whether a token of the step can come back to it."""
    found: set[str] = set()
    waiting = [step]
    while waiting:
        current = waiting.pop()
        onward = [leaf for part in ("next", "case") for leaf in _leaves(current.body.get(part))]
        names = {leaf.value for leaf in onward if isinstance(leaf.value, str) and leaf.value in facts.by_name}
        waiting.extend(facts.by_name[name] for name in names - found)
        found |= names
    return step.name in found


def _step_vars(step: StepFacts) -> Iterator[str]:
    """Yield the variables that a step sets for the steps after it."""
    for word in ("vars", "set_ctx", "set"):
        found = step.body.map(word)
        yield from (key.split(".")[-1] for key in list(found.keys())) if found else ()
    yield from written_keys(step.body.get("case"), "set")


def _arc_reads(step: StepFacts) -> frozenset[str]:
    paths = [path for part in ("next", "case") for path in reads(step.body.get(part))]
    return frozenset(path[1] for path in paths if path[0] == "vars" and len(path) > 1)


def reads(node: Draft | None) -> Iterator[tuple[str, ...]]:
    for leaf in _leaves(node):
        if isinstance(leaf.value, str):
            yield from paths_read(leaf.value)


def _leaves(node: Draft | None) -> Iterator[Leaf]:
    return leaves(node) if node is not None else iter(())
