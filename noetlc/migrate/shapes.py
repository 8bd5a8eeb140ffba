"""Brings the shapes of documents, steps and tasks to v10: keys that moved or have another name."""

from __future__ import annotations

from noetlc.migrate.constructs import RewriteLog
from noetlc.migrate.dialect import SINKS
from noetlc.migrate.document import Draft, Leaf, Map, MapEntry, Seq, SeqItem, inherited, mapping, scalar, sequence
from noetlc.migrate.facts import STEP_KEYS, tasks_of
from noetlvm.language.tool_kinds import find_kind

API_VERSION = "noetl.io/v2"
_STEP_WORDS = STEP_KEYS | frozenset(
    {"when", "case", "vars", "set", "set_ctx", "output", *SINKS, "pipe", "catch", "finally", "on_no_match", "bind"}
)
STEP_INPUTS = ("args", "input", "with")
_FURTHER_SPELLINGS: dict[str, dict[str, str]] = {
    "python": {"input": "args", "with": "args"},
    "workbook": {"with": "args"},
    "playbook": {"with": "workload"},
    "artifact": {"input": "args"},
    "script": {"input": "args"},
}
"""Names of inputs in other dialects, besides the spellings that the kinds declare."""
_LEFT_ALONE = frozenset({"attach"})
"""Inputs that take another form than their spelling does: the compiler converts them."""
_ARGUMENTS = {"python": "args", "workbook": "args", "playbook": "workload", "postgres": "params", "duckdb": "params"}
_SPEC = "spec."
_SQL_PARAMETERS = {"postgres": "%({})s", "duckdb": "${}"}
_TABLE_KEYS = ("key", "keys", "key_column", "key_columns")
"""Words for the columns that identify a row."""
_INSTEAD = {
    "exports": "print the values, and write them with `set_ctx` in a rule of the task",
    "on_no_match": "write a last arc without a condition, or set `executor.spec.no_next_is_error`",
    "bind": "write the values with `set_ctx` in a rule of the task",
}


def shape_document(root: Map, log: RewriteLog) -> None:
    """Bring the root sections to v10."""
    version = root.leaf("apiVersion")
    if version is not None and version.text != API_VERSION and version.text.startswith("noetl"):
        log.add("R101", version.span, f"`apiVersion: {version.text}` becomes `{API_VERSION}`")
        root.put("apiVersion", Leaf(API_VERSION, API_VERSION))
    _metadata(root, log)
    _executor(root, log)
    _workbook(root, log)


def _metadata(root: Map, log: RewriteLog) -> None:
    metadata = root.map("metadata")
    if metadata is None:
        return
    name, path = metadata.text("name"), metadata.text("path")
    if name and not path:
        metadata.insert(MapEntry("path", scalar(name)), after="name")
    elif path and not name:
        metadata.pairs.insert(0, MapEntry("name", scalar(path.rpartition("/")[2])))
    else:
        return
    log.add("R102", metadata.span, "`metadata` needs both `name` and `path`")


def _executor(root: Map, log: RewriteLog) -> None:
    executor = root.map("executor")
    if executor is None:
        return
    kind = executor.pair("kind")
    if kind and not executor.pair("profile"):
        log.add("R105", kind.span, "`executor.kind` is `executor.profile`")
        kind.key = "profile"


def _workbook(root: Map, log: RewriteLog) -> None:
    pair = root.pair("workbook")
    if pair is None or not isinstance(pair.value, Seq):
        return
    tasks = Map([], flow=pair.value.flow)
    for item in pair.value.items:
        task = item.value
        name = task.text("name") if isinstance(task, Map) else ""
        if not isinstance(task, Map) or not name:
            log.add("R909", pair.span, "an entry of `workbook` has no name")
            return
        task.remove("name")
        _unwrap(task, log)
        tasks.pairs.append(MapEntry(name, task))
    log.add("R106", pair.span, "`workbook` is a mapping with `tasks`")
    pair.value = mapping(("tasks", tasks), flow=pair.value.flow)


# ---- steps


def shape_step(step: Map, log: RewriteLog, *, older: bool) -> None:
    """Bring a step's keys, loop and tool to v10; policies and arcs come later."""
    for old, new in (("name", "step"), ("description", "desc")):
        pair = step.pair(old)
        if pair and not step.pair(new) and isinstance(pair.value, Leaf):
            log.add("R213", pair.span, f"`{old}` of a step is `{new}`")
            pair.key = new
    _loop(step, log)
    if older:
        _step_spec(step, log)
    _tool(step, log)
    _step_inputs(step, log)
    for _, task in tasks_of(step.get("tool")):
        shape_task(task, log)
    _step_output(step, log)
    for word in ("on_no_match", "bind"):
        pair = step.pair(word)
        if pair:
            log.add("R904", pair.span, f"`{word}` has no counterpart: {_INSTEAD[word]}")


def _loop(step: Map, log: RewriteLog) -> None:
    loop = step.map("loop")
    if loop is None:
        return
    for old, new in (("collection", "in"), ("element", "iterator"), ("item", "iterator"), ("items", "in")):
        pair = loop.pair(old)
        if pair and not loop.pair(new):
            log.add("R207", pair.span, f"`loop.{old}` is `loop.{new}`")
            pair.key = new
    for key in ("mode", "max_in_flight", "concurrency"):
        pair = loop.remove(key)
        if pair:
            log.add("R207", pair.span, f"`loop.{key}` belongs under `loop.spec`")
            pair.key = "max_in_flight" if key == "concurrency" else key
            loop.nested("spec").pairs.append(pair)
    spec = loop.map("spec")
    mode = spec.pair("mode") if spec else None
    if mode and isinstance(mode.value, Leaf) and mode.value.text == "async":
        log.add("R207", mode.span, "`mode: async` is `mode: parallel`")
        mode.value = Leaf("parallel", "parallel")
    for key in ("cursor", "frame"):
        pair = loop.pair(key)
        if pair:
            log.add("R903", pair.span, f"`loop.{key}` has no counterpart")


def _step_spec(step: Map, log: RewriteLog) -> None:
    spec = step.map("spec")
    if spec is None:
        return
    timeout = spec.pair("timeout")
    if timeout and isinstance(timeout.value, Leaf):
        spec.pairs.remove(timeout)
        log.add("R203", timeout.span, "`spec.timeout` of a step is `spec.policy.lifecycle.timeout_s`")
        timeout.key = "timeout_s"
        spec.nested("policy", "lifecycle").pairs.append(timeout)
    lease = spec.remove("lease")
    if lease:
        log.add("R204", lease.span, "`spec.lease` is removed: the machine manages leases")
    if not spec.pairs:
        step.remove("spec")


def _tool(step: Map, log: RewriteLog) -> None:
    for word in ("pipe", "type"):
        pair = step.pair(word)
        if pair and not step.pair("tool"):
            log.add("R208" if word == "pipe" else "R205", pair.span, f"`{word}` of a step is `tool`")
            pair.key = "tool"
    pair = step.pair("tool")
    if pair is None:
        return
    if isinstance(pair.value, Leaf) and isinstance(pair.value.value, str):
        _tool_as_text(step, pair, log)
    elif isinstance(pair.value, Map) and isinstance(pair.value.get("pipe"), Seq):
        _piped_tool(step, pair, pair.value, log)


def _tool_as_text(step: Map, pair: MapEntry, log: RewriteLog) -> None:
    """Move the inputs, which are the keys that are not keywords of a step, into a task."""
    inputs = [other for other in step.pairs if other.key not in _STEP_WORDS and other is not pair]
    log.add(
        "R205", pair.span, f"`tool: {pair.value.text if isinstance(pair.value, Leaf) else ''}` with inputs on the step"
    )
    for other in inputs:
        step.pairs.remove(other)
    pair.value = Map([MapEntry("kind", pair.value), *inputs], flow=step.flow)


def _piped_tool(step: Map, pair: MapEntry, tool: Map, log: RewriteLog) -> None:
    log.add("R208", pair.span, "the tasks of `pipe` are the list under `tool`")
    for word in ("catch", "finally"):
        moved = tool.remove(word)
        if moved and not step.pair(word):
            step.pairs.append(moved)
    pair.value = tool.get("pipe") or tool


def _step_inputs(step: Map, log: RewriteLog) -> None:
    """Values that a step gives its tool go to the task that takes arguments; its own count before them."""
    takers = [task for _, task in tasks_of(step.get("tool")) if task.text("kind") in _ARGUMENTS]
    if len(takers) != 1:
        return
    task, name = takers[0], _ARGUMENTS[takers[0].text("kind")]
    for word in STEP_INPUTS:
        pair = step.pair(word)
        own = task.get(name)
        if pair is None or not isinstance(pair.value, Map) or not (own is None or isinstance(own, Map)):
            continue
        step.pairs.remove(pair)
        log.add("R211", pair.span, f"`{word}` of a step is `{name}` of its tool")
        if isinstance(own, Map):
            own.pairs.extend(given for given in pair.value.pairs if not own.pair(given.key))
        else:
            pair.key = name
            task.pairs.append(pair)


def _step_output(step: Map, log: RewriteLog) -> None:
    pair = step.pair("output")
    if pair and isinstance(pair.value, Map) and set(pair.value.keys()) & {"store", "output_select", "select"}:
        log.add("R212", pair.span, "`output` of a step is removed: the machine stores large results")
        step.pairs.remove(pair)


# ---- tasks


def shape_task(task: Map, log: RewriteLog) -> None:
    """Bring a task's kind, input names and settings to v10."""
    _unwrap(task, log)
    kind = task.text("kind")
    if task.pair("table") and kind in _SQL_PARAMETERS:
        _table(task, kind, log)
    named = task.pair("name")
    if kind == "workbook" and named and not task.pair("task"):
        log.add("R301", named.span, "`name` of `workbook` is `task`")
        named.key = "task"
    for pair in list(task.pairs):
        new = _spellings(kind).get(pair.key, "")
        if new.startswith(_SPEC):
            _to_spec(task, pair, new.removeprefix(_SPEC), log)
        elif new and not task.pair(new) and new not in _LEFT_ALONE:
            log.add("R301", pair.span, f"`{pair.key}` of `{kind}` is `{new}`")
            pair.key = _body_key(pair.value) if kind == "http" and new == "body" else new
    _settings(task, kind, log)
    exports = task.pair("exports")
    if exports and kind == "shell":
        log.add("R904", exports.span, f"`exports` has no counterpart: {_INSTEAD['exports']}")
    if kind and find_kind(kind) is None:
        log.add("R913", task.span, f"no tool of kind `{kind}` is installed")


def _table(task: Map, kind: str, log: RewriteLog) -> None:
    """Turn the name of a table and the values of its columns into the statement that writes a row."""
    table, values = task.pair("table"), task.pair("args") or task.pair("data")
    mode, key = task.text("mode") or "insert", next(filter(None, map(task.pair, _TABLE_KEYS)), None)
    held = key.value if key else None
    keys = [one.text for one in (held.values if isinstance(held, Seq) else [held]) if isinstance(one, Leaf)]
    if table is None or not isinstance(table.value, Leaf) or values is None or not isinstance(values.value, Map):
        return
    columns = values.value.keys()
    is_known = mode in ("insert", "append") or (mode == "upsert" and keys)
    if not columns or not is_known or not all(map(str.isidentifier, [*columns, *keys])):
        return
    marks = ", ".join(_SQL_PARAMETERS[kind].format(column) for column in columns)
    command = f"INSERT INTO {table.value.text} ({', '.join(columns)}) VALUES ({marks})"
    if mode == "upsert":
        updates = ", ".join(f"{column} = EXCLUDED.{column}" for column in columns if column not in keys)
        action = f"UPDATE SET {updates}" if updates else "NOTHING"
        command += f" ON CONFLICT ({', '.join(keys)}) DO {action}"
    log.add("R214", table.span, "`table` with the values of its columns is an `INSERT`")
    table.key, table.value, values.key = "command", scalar(command), "params"
    for word in ("mode", *_TABLE_KEYS):
        task.remove(word)


def _spellings(kind: str) -> dict[str, str]:
    known = find_kind(kind) if kind else None
    return {**(known.spellings if known else {}), **_FURTHER_SPELLINGS.get(kind, {})}


def _to_spec(task: Map, pair: MapEntry, name: str, log: RewriteLog) -> None:
    log.add("R302", pair.span, f"`{pair.key}` is a setting of the task")
    task.pairs.remove(pair)
    pair.key = name
    spec_of(task).pairs.append(pair)


def _body_key(value: Draft) -> str:
    """A mapping, a list or a value of its own type is JSON; other text is sent as it is."""
    if isinstance(value, Leaf) and isinstance(value.value, str):
        whole = value.value.strip().startswith("{{") and value.value.strip().endswith("}}")
        return "json" if whole else "body"
    return "json"


def _unwrap(task: Map, log: RewriteLog) -> None:
    """A task that holds its call under `tool` becomes the call itself."""
    if task.pair("kind"):
        return
    pair = task.pair("tool") or task.pair("type")
    if pair is None:
        return
    log.add("R206", pair.span, "a task is its tool call")
    if isinstance(pair.value, Map):
        at = task.pairs.index(pair)
        task.pairs[at : at + 1] = pair.value.pairs
    else:
        pair.key = "kind"


def _settings(task: Map, kind: str, log: RewriteLog) -> None:
    known = find_kind(kind)
    if known is None:
        return
    settings = {setting.name for setting in known.settings}
    inputs = {entry.name for entry in known.inputs}
    spec = task.map("spec")
    for pair in list(spec.pairs) if spec else ():
        if spec and pair.key in inputs and pair.key not in settings and not task.pair(pair.key):
            spec.pairs.remove(pair)
            task.pairs.append(pair)
            log.add("R301", pair.span, f"`{pair.key}` is an input, not a setting")
    if spec is not None and not spec.pairs:
        task.remove("spec")


def spec_of(task: Map) -> Map:
    """Return a task's `spec`, as a block where the task is one, so that rules have room."""
    pair = task.pair("spec")
    if pair is None:
        spec = inherited(task, "spec") or Map([], flow=task.flow)
        task.put("spec", spec)
        return spec
    if isinstance(pair.value, Map) and pair.value.flow and not task.flow:
        pair.value = Map(pair.value.pairs)
    return task.nested("spec")


# ---- pipelines


def task_list(step: Map) -> Seq:
    """Return a step's pipeline as a list, made from a single task where it is one."""
    pair = step.pair("tool")
    if pair is None:
        made = Seq([], flow=step.flow)
        step.insert(MapEntry("tool", made), after="loop" if step.pair("loop") else "step")
        return made
    if isinstance(pair.value, Seq):
        if pair.value.flow and not step.flow:
            pair.value = Seq(pair.value.items)
        return pair.value
    pair.value = Seq([SeqItem(pair.value)], flow=step.flow)
    return pair.value


def insert_first(step: Map, label: str, task: Map) -> None:
    """Put a task before the others; those without a label keep the one that their position gave them."""
    tasks = task_list(step)
    for position, item in enumerate(tasks.items, start=1):
        if isinstance(item.value, Map) and item.value.pair("kind") and not item.value.pair("name"):
            item.value.pairs.insert(0, MapEntry("name", scalar(f"task_{position}")))
    tasks.items.insert(0, SeqItem(labelled(free_label(step, label), task)))


def labelled(label: str, task: Map) -> Map:
    return mapping((label, task), flow=task.flow)


def free_label(step: Map, wanted: str) -> str:
    taken = {label for label, _ in tasks_of(step.get("tool"))}
    label, number = wanted, 2
    while label in taken:
        label, number = f"{wanted}_{number}", number + 1
    return label


def keep_result(task: Map) -> None:
    """Have a task end with `do: skip`, so that the result before it stays the pipeline's (S17)."""
    rules = sequence(error_rule(), else_rule(mapping(("do", "skip"), flow=True)))
    policy = spec_of(task).nested("policy")
    if not policy.pair("rules"):
        policy.put("rules", rules)


def error_rule() -> Map:
    when = scalar("{{ outcome.status == 'error' }}")
    return mapping(("when", when), ("then", mapping(("do", "fail"), flow=True)))


def else_rule(then: Map) -> Map:
    """Return the rule that holds when no other does."""
    return mapping(("else", mapping(("then", then), flow=then.flow)))
