"""State and storage: `vars`, `set_ctx` on steps and arcs, `sink`."""

from __future__ import annotations

import re

from noetlc.migrate.constructs import RewriteLog
from noetlc.migrate.dialect import SINKS
from noetlc.migrate.document import (
    Leaf,
    Map,
    MapEntry,
    Seq,
    SeqItem,
    is_empty,
    leaves,
    mapping,
    scalar,
    sequence,
    template,
)
from noetlc.migrate.facts import PlaybookFacts, StepFacts, leads_back, reads, steps_of, tasks_of, written_keys
from noetlc.migrate.shapes import else_rule, free_label, insert_first, keep_result, labelled, task_list
from noetlc.migrate.templates import renamed_text

_STEP_STATE = ("vars", "set_ctx", "set")


# ---- sinks


def sinks_to_tasks(step: Map, log: RewriteLog) -> None:
    """Put what `sink` or `save` calls after the task whose result it stores."""
    for word in SINKS:
        for label, body in list(tasks_of(step.get("tool"))):
            pair = body.remove(word)
            if pair:
                _sink(step, pair, log, after=body, label=f"{label}_{word}" if label else word)
        pair = step.remove(word)
        if pair:
            _sink(step, pair, log, after=None, label=word)


def _sink(step: Map, pair: MapEntry, log: RewriteLog, after: Map | None, label: str) -> None:
    storage = pair.value.pair("storage") if isinstance(pair.value, Map) else None
    if storage and isinstance(storage.value, Leaf):
        storage.key = "kind"
    inner = pair.value.get("tool") if isinstance(pair.value, Map) and not pair.value.pair("kind") else pair.value
    if isinstance(inner, Leaf) and isinstance(pair.value, Map):
        pair.value.pairs[pair.value.keys().index("tool")].key = "kind"
        inner = pair.value
    if not isinstance(inner, Map):
        log.add("R911", pair.span, f"`{pair.key}` names no tool")
        (after if after is not None else step).pairs.append(pair)
        return
    log.add("R209", pair.span, f"`{pair.key}` is a task after the one whose result it stores")
    tasks = task_list(step)
    at = len(tasks.items)
    for number, item in enumerate(tasks.items):
        held = [entry.value for entry in item.value.pairs] if isinstance(item.value, Map) else []
        if after is not None and (item.value is after or after in held):
            at = number + 1
    keep_result(inner)
    tasks.items.insert(at, SeqItem(labelled(free_label(step, label), inner)))


# ---- state on steps and arcs


def step_state(facts: PlaybookFacts, step: StepFacts, log: RewriteLog) -> None:
    """Write what a step sets in a task after its own, or after a loop in a step of its own."""
    body = step.body
    for word in _STEP_STATE:
        pair = body.pair(word)
        if pair is None or not isinstance(pair.value, Map):
            continue
        body.pairs.remove(pair)
        log.add("R210", pair.span, f"`{word}` on a step is written by a task")
        for entry in pair.value.pairs:
            entry.key = entry.key.rpartition(".")[2]
        if step.has_loop:
            _state_after_loop(facts.root, step, pair.value)
            continue
        tasks = task_list(body)
        tasks.items.append(SeqItem(labelled(free_label(body, "state"), _writer(pair.value))))


def _writer(values: Map) -> Map:
    """Return a task that writes `ctx` and leaves the result as it is."""
    then = mapping(("do", "skip"), ("set_ctx", values), flow=values.flow)
    policy = mapping(("policy", mapping(("rules", sequence(else_rule(then))))))
    return mapping(("kind", "noop"), ("spec", policy))


def _state_after_loop(root: Map, step: StepFacts, values: Map) -> None:
    name = free_step(root, f"{step.name}_state")
    router = step.body.map("next")
    arcs = router.seq("arcs") if router else None
    made = mapping(("step", name), ("tool", sequence(labelled("state", _writer(values)))))
    staying: list[SeqItem] = []
    moved: list[SeqItem] = []
    for item in arcs.items if arcs else ():
        guard = item.value.leaf("when") if isinstance(item.value, Map) else None
        on_failure = guard is not None and "step.failed" in guard.value_text
        (staying if on_failure else moved).append(item)
        if not on_failure and guard is not None:
            guard.value = renamed_text(guard.value_text, _OneStepLater(step.name))
            guard.raw = scalar(guard.value).raw
    if moved and router is not None:
        spec = router.pair("spec")
        made.put("next", mapping(*([spec] if spec else []), ("arcs", Seq(moved))))
        router.remove("spec")
    to_state = mapping(("step", name), ("when", template("event.name == 'loop.done'")))
    step.body.put("next", mapping(("arcs", Seq([SeqItem(to_state), *staying]))))
    insert_step(root, step.body, made)


class _OneStepLater:
    """Reads of a loop's boundary event, in a step after it."""

    def __init__(self, step: str) -> None:
        self._step = step

    def path(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        return (2, self._step) if path[:2] == ("event", "result") else None

    def constant(self, path: tuple[str, ...], value: str) -> str:
        return "step.done" if path == ("event", "name") and value == "loop.done" else value


def arc_state(root: Map, step: StepFacts, log: RewriteLog) -> None:
    """What an arc sets becomes its `args` where only the target reads it; else a step in between writes it."""
    between: list[Map] = []
    for arc in _arcs(step.body):
        pair = arc.pair("set") or arc.pair("set_ctx")
        if pair is None or not isinstance(pair.value, Map):
            continue
        for entry in pair.value.pairs:
            entry.key = entry.key.rpartition(".")[2]
        target = next((one for one in steps_of(root) if one.text("step") == arc.text("step")), None)
        if target is not None and _only_reader(root, target, frozenset(pair.value.keys())):
            log.add("R506", pair.span, f"`{pair.key}` on an arc is `args`: only `{arc.text('step')}` reads it")
            _as_args(arc, pair, pair.value, target)
            continue
        log.add("R506", pair.span, f"`{pair.key}` on an arc is written by a step in between")
        name = free_step(root, f"{step.name}_to_{arc.text('step')}")
        between.append(_step_between(arc, pair, pair.value, name))
    for made in reversed(between):
        insert_step(root, step.body, made)


def _arcs(step: Map) -> list[Map]:
    router = step.map("next")
    arcs = router.seq("arcs") if router else None
    return [arc for arc in arcs.values if isinstance(arc, Map)] if arcs else []


def _only_reader(root: Map, target: Map, keys: frozenset[str]) -> bool:
    """Return whether `target`, and nothing else, reads some keys of `ctx`, which only arcs to it write."""
    for step in steps_of(root):
        if step is not target and any(_reads_ctx(path, keys) for path in reads(step)):
            return False
        if keys & set(written_keys(step.get("tool"), "set_ctx")):
            return False
        for arc in _arcs(step):
            written = {key.rpartition(".")[2] for word in ("set", "set_ctx") for key in written_keys(arc, word)}
            if written & keys and arc.text("step") != target.text("step"):
                return False
    return any(_reads_ctx(path, keys) for path in reads(target)) and not root.map("workbook")


def _reads_ctx(path: tuple[str, ...], keys: frozenset[str]) -> bool:
    return path == ("ctx",) or (path[0] == "ctx" and path[1] in keys) or path[0] in keys


def _as_args(arc: Map, pair: MapEntry, values: Map, target: Map) -> None:
    given = arc.map("args")
    if given is None:
        pair.key = "args"
    else:
        arc.pairs.remove(pair)
        given.pairs.extend(values.pairs)
    names = values.keys()
    for leaf in leaves(target):
        for key in names:
            if leaf.is_template and f"ctx.{key}" in leaf.raw:
                path = re.compile(rf"(?<![\w.])ctx\.{re.escape(key)}\b")
                leaf.raw, leaf.value = path.sub(f"args.{key}", leaf.raw), path.sub(f"args.{key}", leaf.value_text)


def _step_between(arc: Map, pair: MapEntry, values: Map, name: str) -> Map:
    """Lead an arc to a new step that writes what it set, and from there to its target."""
    target = arc.text("step")
    arc.pairs.remove(pair)
    args = arc.nested("args")
    for entry in values.pairs:
        args.put(f"given_{entry.key}", entry.value)
    patch = mapping(*((entry.key, template(f"args.given_{entry.key}")) for entry in values.pairs))
    arc.put("step", scalar(name))
    return mapping(
        ("step", name),
        ("tool", sequence(labelled("state", _writer(patch)))),
        ("next", mapping(("arcs", sequence(mapping(("step", target), flow=True))))),
    )


def free_step(root: Map, wanted: str) -> str:
    taken = {step.text("step") for step in steps_of(root)}
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def insert_step(root: Map, after: Map, step: Map) -> None:
    workflow = root.seq("workflow")
    assert workflow is not None  # `after` stands in it
    at = next(number for number, item in enumerate(workflow.items) if item.value is after)
    workflow.items.insert(at + 1, SeqItem(step))


# ---- root variables


def root_vars(facts: PlaybookFacts, log: RewriteLog) -> None:
    """Variables that nothing writes are workload; the others get their first value from a first task."""
    root = facts.root
    pair = root.pair("vars")
    if pair is None or not isinstance(pair.value, Map):
        return
    changing = [entry for entry in pair.value.pairs if entry.key in facts.vars.initial]
    fixed = [entry for entry in pair.value.pairs if entry not in changing]
    entry_step = next((step for step in facts.steps if step.name == "start"), facts.steps[0] if facts.steps else None)
    if changing and (entry_step is None or entry_step.has_loop):
        log.add("R909", pair.span, "the first step is a loop: its variables cannot be set before it")
        return
    workload = root.pair("workload")
    if fixed and workload is not None and not isinstance(workload.value, Map) and not is_empty(workload.value):
        log.add("R909", pair.span, "`workload` is not a mapping of its own: `vars` cannot be added to it")
        return
    if fixed:
        log.add("R103", pair.span, "`vars` that nothing writes are `workload`")
    if workload is None and fixed:
        pair.key = "workload"
        pair.value.pairs = fixed
    else:
        root.pairs.remove(pair)
    if workload is not None and fixed:
        if not isinstance(workload.value, Map):
            workload.value = Map([], flow=pair.value.flow)
        known = workload.value.keys()
        workload.value.pairs.extend(entry for entry in fixed if entry.key not in known)
    if changing and entry_step is not None:
        log.add("R104", pair.span, "`vars` that something writes are set in `ctx` by a first task")
        again = leads_back(facts, entry_step)
        insert_first(entry_step.body, "init_vars", _first_values(mapping(*changing), once=again))


def _first_values(values: Map, *, once: bool) -> Map:
    """Return a task that writes first values; `once`: its step may run again, and then they are there."""
    if not once:
        return _writer(values)
    absent = template(f"ctx.{values.pairs[0].key} is not defined")
    then = mapping(("do", "skip"), ("set_ctx", values), flow=values.flow)
    rules = sequence(mapping(("when", absent), ("then", then)), else_rule(mapping(("do", "skip"), flow=True)))
    return mapping(("kind", "noop"), ("spec", mapping(("policy", mapping(("rules", rules))))))
