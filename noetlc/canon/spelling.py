"""Rewrites other spellings to the names that the language and the tool kinds declare.

Lint, the canonical form and code generation see the canonical names only; the places are the author's. Each kind
declares the other names of its inputs (`ToolKind.spellings`). Besides:

    written                                        becomes
    ---------------------------------------------  ---------------------------------------------------------------
    a setting of the kind among the inputs         `spec.<setting>`
    an input of the kind under the task's `spec`   that input
    `retry: {max_attempts: 3, …}` on a task        a policy: retry on error, then fail
    `job.uuid`, `job.execution_id`                 `execution_id`, unless the playbook defines `job`
    `loop_index` in a loop                         `iter.index`, unless the playbook defines `loop_index`
    an input without a value that takes a mapping  nothing
    or a list
    an arc without `when`, with                    an arc with a guard that holds on success only (S55)
    `executor.spec.unguarded_arcs: success`

A name is left as it is if the task gives the canonical one too; lint reports that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from noetlc.analysis.flow import DEFAULT_ATTEMPTS
from noetlc.analysis.inputs import Respelling
from noetlc.analysis.names import names_in
from noetlc.canon.flow import made, policy_of, scalar, with_policy
from noetlc.syntax import ast, nodes
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar
from noetlc.syntax.span import Span
from noetlc.syntax.template_parser import parse_template
from noetlc.syntax.tree import Rewriter, structs
from noetlvm.language.tool_kinds import SPEC, ToolKind, find_kind
from noetlvm.record import changed

RETRY = "retry"

_RETRY_KEYS = {
    "attempts": "attempts",
    "max_attempts": "attempts",
    "count": "attempts",
    "delay": "delay",
    "delay_seconds": "delay",
    "initial_delay": "delay",
    "interval": "delay",
    "backoff": "backoff",
    "backoff_multiplier": "multiplier",
    "backoff_factor": "multiplier",
    "multiplier": "multiplier",
    "max_delay": "most",
    "when": "when",
    "retry_when": "when",
}
_RETRY_NAMES = {"status_code": "outcome.http.status", "error": "outcome.error", "attempt": "_attempt"}
"""What the condition of a `retry` calls the outcome of its task."""
_RETRY_NAME = re.compile(rf"(?<![\w.'\"])(?:{'|'.join(_RETRY_NAMES)})(?![\w'\"(])")
_BACKOFFS = {"none": "none", "fixed": "none", "constant": "none", "linear": "linear", "exponential": "exponential"}
_FAILED = "outcome.status == 'error'"
_SUCCEEDED = "{{ event.name != 'step.failed' }}"

_TEMPLATE_NAMES = {
    "job": {"uuid": "execution_id", "execution_id": "execution_id", "id": "execution_id"},
    "loop_index": {"": "iter.index"},
}
"""Names of templates, by their first field, and what they become."""


class Spelled(NamedTuple):
    """A playbook in canonical spelling."""

    playbook: ast.Playbook
    respellings: tuple[Respelling, ...] = ()


def canonical_spelling(playbook: ast.Playbook, text: str) -> Spelled:
    """Return a playbook in canonical spelling; the same one if it is already. `text` is its source."""
    rewriter = _Spelling(playbook, text)
    rewritten = rewriter.rewrite(playbook)
    return Spelled(rewritten, tuple(sorted(rewriter.found)))


class _Spelling(Rewriter):
    def __init__(self, playbook: ast.Playbook, text: str) -> None:
        self._has_names = any(name in text for name in _TEMPLATE_NAMES)
        self.found: list[Respelling] = []
        self._names: dict[str, dict[str, str]] | None = None
        self._playbook = playbook
        spec = playbook.executor_spec
        self._guards_arcs = bool(spec and spec.unguarded_arcs and spec.unguarded_arcs.text == "success")

    def scalar(self, name: str, leaf: Scalar) -> Scalar:
        return self._template(leaf) if self._has_names and name != "desc" else leaf

    def data(self, node: Node) -> Node:
        if not self._has_names:
            return node
        if isinstance(node, Scalar):
            return self._template(node)
        if isinstance(node, nodes.Sequence):
            items = tuple(self.data(item) for item in node.items)
            is_same = all(new is old for new, old in zip(items, node.items, strict=True))
            return node if is_same else nodes.Sequence(node.span, items)
        values = [self.data(item.value) for item in node.entries]
        if all(new is item.value for new, item in zip(values, node.entries, strict=True)):
            return node
        return Mapping(
            node.span, tuple(MappingEntry(item.key, new) for item, new in zip(node.entries, values, strict=True))
        )

    def entry(self, entry: ast.PipelineEntry) -> ast.PipelineEntry:
        rewritten: ast.PipelineEntry = self.rewrite(entry)
        return rewritten

    def struct(self, struct: ast.Struct) -> ast.Struct:
        if self._guards_arcs and isinstance(struct, ast.Arc) and struct.when is None:
            place = struct.key_span("step")
            return changed(struct, keys={**struct.keys, "when": place}, when=scalar(place, _SUCCEEDED))
        kind = find_kind(struct.kind.text) if isinstance(struct, ast.Task) and struct.kind else None
        if kind is None or kind.open or not isinstance(struct, ast.Task):
            return struct
        task = self._retry(struct, kind) if struct.get_extra(RETRY) is not None else struct
        return self._inputs(task, kind)

    # ---- inputs and settings

    def _inputs(self, task: ast.Task, kind: ToolKind) -> ast.Task:
        under_spec = task.settings
        given = [item for item in task.extra if not _is_empty(item, kind)]
        targets = [(item, _target(kind, item.key.text)) for item in given]
        targets += [(item, _target_of_setting(kind, item.key.text)) for item in under_spec]
        written = [item.key.text for item in given] + [SPEC + item.key.text for item in under_spec]
        if len(given) == len(task.extra) and written == [target for _, target in targets]:
            return task
        taken = set(written)
        inputs: list[MappingEntry] = []
        settings: list[MappingEntry] = []
        for (item, target), name in zip(targets, written, strict=True):
            if target != name and target in taken:
                target = name  # both are given
            elif target != name:
                taken.add(target)
                self.found.append(Respelling(item.key.span, name, target))
            holder = settings if target.startswith(SPEC) else inputs
            holder.append(_renamed(item, target.removeprefix(SPEC)))
        return _with_inputs(task, tuple(inputs), tuple(settings))

    # ---- retry

    def _retry(self, task: ast.Task, kind: ToolKind) -> ast.Task:
        """Turn the `retry` of a task into a policy; one that a policy cannot express is left for lint to report."""
        written = next(item for item in task.extra if item.key.text == RETRY)
        has_policy = task.spec is not None and task.spec.policy is not None
        policy = None if kind.input(RETRY) or has_policy else retry_policy(written.value)
        if policy is None:
            return task
        self.found.append(Respelling(written.key.span, RETRY, "spec.policy"))
        rest = tuple(item for item in task.extra if item is not written)
        return with_policy(_with_inputs(task, rest, task.settings), policy)

    # ---- templates

    def _template(self, leaf: Scalar) -> Scalar:
        if not any(name in leaf.text for name in _TEMPLATE_NAMES) or not leaf.is_template:
            return leaf
        edits = sorted(self._edits(leaf))
        for span, canonical in edits:
            self.found.append(Respelling(leaf.span, leaf.text[span.start : span.end], canonical))
        return nodes.edited(leaf, edits) if edits else leaf

    def _edits(self, leaf: Scalar) -> Iterator[tuple[Span, str]]:
        if self._names is None:
            defined = _defined(self._playbook)
            self._names = {name: fields for name, fields in _TEMPLATE_NAMES.items() if name not in defined}
        template = parse_template(leaf.text)
        for use in () if template.problems else names_in(template).uses:
            fields = self._names.get(use.name, {})
            first = use.fields[0] if use.fields else None
            if "" in fields:
                yield use.node.span, fields[""]
            elif first is not None and first.name in fields and len(use.fields) == 1:
                yield use.whole.span, fields[first.name]


def retry_policy(value: Node) -> ast.TaskPolicy | None:
    """Return the policy of a task-level `retry`: a number of attempts, or a mapping; None if none expresses it."""
    span = value.span
    given: dict[str, Node] = {"attempts": value}
    if isinstance(value, Mapping):
        given = {_RETRY_KEYS.get(item.key.text, ""): item.value for item in value.entries if not _is_no_jitter(item)}
    if "" in given or not all(isinstance(node, Scalar) for node in given.values()):
        return None
    scalars = {name: node for name, node in given.items() if isinstance(node, Scalar)}
    attempts = scalars.get("attempts", scalar(span, DEFAULT_ATTEMPTS))
    backoff, when = _backoff(scalars), _condition(scalars.get("when"))
    if not (type(attempts.value) is int or attempts.is_template) or backoff is None or when is None:
        return None
    delay = scalars.get("delay")
    waits = _growing_delay(scalars) if backoff == "exponential" else ""
    if waits:
        backoff, delay = "none", scalar(span, waits)
    retry = made(ast.Then, span, do="retry", attempts=attempts, backoff=backoff, delay=delay)
    fail = [(f"{{{{ {_FAILED} }}}}", made(ast.Then, span, do="fail"))] if when != _FAILED else []
    return policy_of(span, (f"{{{{ {when} }}}}", retry), *fail, (None, made(ast.Then, span, do="continue")))


def _is_no_jitter(item: MappingEntry) -> bool:
    return item.key.text == "jitter" and isinstance(item.value, Scalar) and not item.value.value


def _backoff(given: dict[str, Scalar]) -> str | None:
    if "backoff" in given:
        return _BACKOFFS.get(given["backoff"].text)
    factor = given["multiplier"].value if "multiplier" in given else 1
    if not isinstance(factor, int | float):
        return None
    return "exponential" if factor > 1 else "none"


def _growing_delay(given: dict[str, Scalar]) -> str:
    """Return the delay as a template where it does not just double, for `backoff: exponential` does."""
    delay, most = given.get("delay"), given.get("most")
    factor = given["multiplier"].value if "multiplier" in given else 2
    if delay is None or (factor == 2 and most is None):
        return ""
    waited = f"{_inner(delay)} * {factor} ** (_attempt - 1)"
    return f"{{{{ [{waited}, {_inner(most)}] | min }}}}" if most else f"{{{{ {waited} }}}}"


def _inner(number: Scalar) -> str:
    return f"({number.text.strip().strip('{}').strip()})" if number.is_template else number.text


def _condition(when: Scalar | None) -> str | None:
    """Return the expression on which to retry: on an error, and only if the author's condition holds."""
    if when is None:
        return _FAILED
    text = when.text.strip()
    if not when.is_template or not text.startswith("{{") or text.count("{{") > 1 or "{%" in text:
        return None
    condition = text.removeprefix("{{").removesuffix("}}").strip()
    return f"{_FAILED} and ({_RETRY_NAME.sub(lambda found: _RETRY_NAMES[found[0]], condition)})"


def _target(kind: ToolKind, name: str) -> str:
    """Return the canonical name of an input: another input, `auth`, or `spec.<setting>`."""
    if kind.input(name) or (name == "auth" and kind.takes_auth):
        return name
    meant = kind.canonical(name)
    return SPEC + name if meant == name and kind.setting(name) else meant


def _is_empty(item: MappingEntry, kind: ToolKind) -> bool:
    """True for an input that holds others, and here holds nothing."""
    declared = kind.input(_target(kind, item.key.text))
    if declared is None or not isinstance(item.value, Scalar) or item.value.value is not None:
        return False
    return "null" not in declared.types and not {"object", "array"}.isdisjoint(declared.types)


def _target_of_setting(kind: ToolKind, name: str) -> str:
    """Return the canonical name of a key of the task's `spec`, which may be an input at the wrong place."""
    if kind.setting(name):
        return SPEC + name
    meant = kind.canonical(name)
    return meant if meant.startswith(SPEC) or kind.input(meant) else SPEC + name


def _renamed(item: MappingEntry, name: str) -> MappingEntry:
    return item if item.key.text == name else MappingEntry(changed(item.key, text=name, value=name), item.value)


def _with_inputs(task: ast.Task, inputs: tuple[MappingEntry, ...], settings: tuple[MappingEntry, ...]) -> ast.Task:
    """Return a task with other inputs and other settings in its `spec`."""
    replaced = {item.key.text for item in task.extra}
    places = {key: place for key, place in task.keys.items() if key not in replaced and key != "spec"}
    places |= {item.key.text: item.key.span for item in inputs}
    spec = task.spec
    if spec or settings:
        spec = spec or ast.TaskSpec(span=settings[0].value.span)
        own = {key: place for key, place in spec.keys.items() if key == "policy"}
        spec = changed(spec, keys={**{item.key.text: item.key.span for item in settings}, **own}, extra=settings)
        places["spec"] = task.keys.get("spec", spec.span)
    return changed(task, keys=places, extra=inputs, spec=spec)


def _defined(playbook: ast.Playbook) -> set[str]:
    """Return every name that a bare name could mean: workload keys, steps, iterators, arguments and patches."""
    found = {item.key.text for item in playbook.workload.entries} if playbook.workload else set()
    for struct in structs(playbook):
        for mapping in _written(struct):
            found.update(item.key.text for item in mapping.entries)
        named = (
            struct.step if isinstance(struct, ast.Step) else struct.iterator if isinstance(struct, ast.Loop) else None
        )
        if named:
            found.add(named.text)
    return found


def _written(struct: ast.Struct) -> Iterator[Mapping]:
    if isinstance(struct, ast.Arc) and struct.args:
        yield struct.args
    if isinstance(struct, ast.Then):
        yield from (patch for patch in (struct.set_ctx, struct.set_iter) if patch)
