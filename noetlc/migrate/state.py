"""State, storage and credentials: `vars`, `set_ctx` on steps and arcs, `sink`, names of credentials."""

from __future__ import annotations

from collections.abc import Iterator

from noetlc.migrate.constructs import RewriteLog
from noetlc.migrate.document import (
    Draft,
    Leaf,
    Map,
    MapEntry,
    Seq,
    SeqItem,
    leaves,
    mapping,
    scalar,
    sequence,
    template,
)
from noetlc.migrate.facts import PlaybookFacts, StepFacts, steps_of, tasks_of
from noetlc.migrate.shapes import else_rule, free_label, insert_first, keep_result, labelled, task_list
from noetlc.migrate.templates import paths_read, renamed_text, strings_in

_STEP_STATE = ("vars", "set_ctx", "set")
_CREDENTIAL_KINDS = {"postgres": "postgres_credential", "http": "bearer_token"}
_NAME_KEYS = ("credential", "name", "key", "source", "keychain")


# ---- sinks


def sinks_to_tasks(step: Map, log: RewriteLog) -> None:
    """Put what `sink` calls after the task whose result it stores."""
    for label, body in list(tasks_of(step.get("tool"))):
        pair = body.remove("sink")
        if pair:
            _sink(step, pair, log, after=body, label=f"{label}_sink" if label else "sink")
    pair = step.remove("sink")
    if pair:
        _sink(step, pair, log, after=None, label="sink")


def _sink(step: Map, pair: MapEntry, log: RewriteLog, after: Map | None, label: str) -> None:
    inner = pair.value.get("tool") if isinstance(pair.value, Map) and not pair.value.pair("kind") else pair.value
    if isinstance(inner, Leaf) and isinstance(pair.value, Map):
        pair.value.pairs[pair.value.keys().index("tool")].key = "kind"
        inner = pair.value
    if not isinstance(inner, Map):
        log.add("R911", pair.span, "`sink` names no tool")
        (after if after is not None else step).pairs.append(pair)
        return
    log.add("R209", pair.span, "`sink` is a task after the one whose result it stores")
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
    """An arc that sets state leads to a step that writes it, and from there to the target."""
    router = step.body.map("next")
    arcs = router.seq("arcs") if router else None
    for arc in arcs.values if arcs else ():
        pair = (arc.pair("set") or arc.pair("set_ctx")) if isinstance(arc, Map) else None
        if not isinstance(arc, Map) or pair is None or not isinstance(pair.value, Map):
            continue
        arc.pairs.remove(pair)
        log.add("R506", pair.span, f"`{pair.key}` on an arc is written by a step in between")
        for entry in pair.value.pairs:
            entry.key = entry.key.rpartition(".")[2]
        target = arc.text("step")
        name = free_step(root, f"{step.name}_to_{target}")
        names = {f"given_{entry.key}": entry.value for entry in pair.value.pairs}
        args = arc.nested("args")
        for given, value in names.items():
            args.put(given, value)
        values = mapping(*((entry.key, template(f"args.given_{entry.key}")) for entry in pair.value.pairs))
        arc.put("step", scalar(name))
        between = mapping(
            ("step", name),
            ("tool", sequence(labelled("state", _writer(values)))),
            ("next", mapping(("arcs", sequence(mapping(("step", target), flow=True))))),
        )
        insert_step(root, step.body, between)


def free_step(root: Map, wanted: str) -> str:
    """Return a name that no step has."""
    taken = {step.text("step") for step in steps_of(root)}
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def insert_step(root: Map, after: Map, step: Map) -> None:
    """Put a new step after another."""
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
    if fixed:
        log.add("R103", pair.span, "`vars` that nothing writes are `workload`")
    workload = root.map("workload")
    if workload is None and not root.pair("workload") and fixed:
        pair.key = "workload"
        pair.value.pairs = fixed
    else:
        root.pairs.remove(pair)
        known = workload.keys() if workload else []
        if fixed and workload is not None:
            workload.pairs.extend(entry for entry in fixed if entry.key not in known)
    if changing and entry_step is not None:
        log.add("R104", pair.span, "`vars` that something writes are set in `ctx` by a first task")
        then = mapping(("do", "continue"), ("set_ctx", mapping(*changing)))
        policy = mapping(("policy", mapping(("rules", sequence(else_rule(then))))))
        insert_first(entry_step.body, "init_vars", mapping(("kind", "noop"), ("spec", policy)))


# ---- credentials


def declare_credentials(root: Map, log: RewriteLog) -> None:
    """Declare every credential that a task may name."""
    keychain = root.seq("keychain")
    declared = {entry.text("name") for entry in keychain.values if isinstance(entry, Map)} if keychain else set()
    needed: dict[str, str] = {}
    for step in steps_of(root):
        for _, task in tasks_of(step.get("tool")):
            kind = _CREDENTIAL_KINDS.get(task.text("kind"), "secret_manager")
            for name in _credential_names(root, task, log):
                needed.setdefault(name, kind)
    missing = {name: kind for name, kind in needed.items() if name.strip() and name not in declared}
    if not missing:
        return
    pair = root.pair("keychain")
    log.add("R107", pair.span if pair else None, f"`keychain` declares {', '.join(f'`{name}`' for name in missing)}")
    entries = [SeqItem(mapping(("name", name), ("kind", kind), flow=True)) for name, kind in missing.items()]
    if keychain is not None:
        keychain.items.extend(entries)
    elif pair is None:
        root.insert(MapEntry("keychain", Seq(entries)), after="metadata")
    else:
        pair.value = Seq(entries)


def _credential_names(root: Map, task: Map, log: RewriteLog) -> Iterator[str]:
    for leaf in leaves(task):
        if isinstance(leaf.value, str) and "keychain." in leaf.value:
            yield from (path[1] for path in paths_read(leaf.value) if path[0] == "keychain" and len(path) > 1)
    auth = task.get("auth")
    for leaf in _auth_leaves(auth):
        if not isinstance(leaf.value, str):
            continue
        if not leaf.is_template:
            yield leaf.value
            continue
        names = set(_default_names(root, leaf.value))
        if not names and not any(path[0] == "keychain" for path in paths_read(leaf.value)):
            log.add("R908", leaf.span, f"`auth: {leaf.value}` is only known at run time")
        yield from sorted(names)


def _auth_leaves(auth: Draft | None) -> Iterator[Leaf]:
    if isinstance(auth, Leaf):
        yield auth
    elif isinstance(auth, Map):
        yield from (pair.value for pair in auth.pairs if pair.key in _NAME_KEYS and isinstance(pair.value, Leaf))


def _default_names(root: Map, text: str) -> Iterator[str]:
    """Yield the names that a template over the workload can give: its literals and the defaults it reads."""
    yield from strings_in(text)
    workload = root.map("workload")
    for path in paths_read(text):
        node: Draft | None = workload
        for key in path[1:] if path[0] == "workload" else path:
            node = node.get(key) if isinstance(node, Map) else None
        if isinstance(node, Leaf) and isinstance(node.value, str) and not node.is_template:
            yield node.value
