"""What a template's value is made of: the data that flows into what it puts out, and which of it is secret.

A value is made of what it joins, picks, filters or repeats; not of what it only tests: a test, a comparison or a
length reveals next to nothing of its operand. Nothing here reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TypeAlias

from noetlc.analysis.model import Model, Owner, Site, TaskView, thens
from noetlc.syntax import ast
from noetlc.syntax import template_ast as t
from noetlc.syntax.span import Span
from noetlvm.language.methods import METHODS
from noetlvm.language.scopes import FIELDS, NAMESPACES, Shape, TemplatePosition
from noetlvm.language.tool_kinds import Input, Language, find_kind
from noetlvm.record import Record

Path: TypeAlias = tuple[str, ...]

_MEASURES = frozenset({"length", "count", "wordcount"})
"""Filters that reveal no more of a value than its size."""

_NUMBERS = _MEASURES | {"int", "float", "abs", "round"}
"""Filters whose value is a number, which is harmless in any text. Their arguments may be anything."""

_MEASURING_METHODS = frozenset({"count", "endswith", "find", "index", "rfind", "rindex", "startswith"}) | {
    name for name in METHODS if name.startswith("is")
}
"""Methods that answer a question about their receiver."""

_ASKING = (t.Compare, t.Test, t.Not)
_HARMLESS_SHAPES = frozenset({Shape.INTEGER, Shape.NUMBER, Shape.BOOLEAN})

_ENCODED_INTO_A_URL = frozenset({("http", "params")})
"""Inputs that are no URL themselves but end up in one, as (kind, input)."""

_LOCAL_ORIGINS_MAX = 3
"""How many origins are recorded for a `{% set %}` name: one for each kind of secret, so that none is lost."""


class DataOrigin(Record):
    """A piece of data that a template's value is made of, and where the template reads it."""

    path: Path
    """The names read, without computed indexes: `keychain`, `api`, `token`."""
    span: Span


class SecretRead(Record):
    """A secret that flows into a task's input or into what its policy stores."""

    site: Site
    text: str
    """The secret as the template writes it: `keychain.api.token`."""
    span: Span
    """Its place in the file."""


class Splice(Record):
    """Data that becomes part of a text which is read as SQL, shell or Python."""

    site: Site
    text: str
    span: Span
    is_whole: bool
    """The data is all of the text."""


def secrets_in(template: t.Template, also: frozenset[str] = frozenset()) -> list[DataOrigin]:
    """Return the secrets that a template puts out; `also` names what is secret here besides `keychain`."""
    return _Trace(_MEASURES, lambda path: _is_secret(path, also)).parts(template.parts)


def data_in(template: t.Template) -> list[DataOrigin]:
    """Return the data that a template puts out and that could be any text at all."""
    return _Trace(_NUMBERS, _may_be_text).parts(template.parts)


def secret_reads(model: Model) -> tuple[SecretRead, ...]:
    """Return every secret that a task's input, or a patch of its policy, is made of."""
    secret_names = _secret_names(model)
    found: list[SecretRead] = []
    for site, template in model.template_sites:
        if site.position not in (TemplatePosition.TASK_INPUT, TemplatePosition.TASK_PATCH) or site.task is None:
            continue
        also = secret_names.get(id(site.task.task), frozenset())
        if "keychain" not in template.text and not also:
            continue
        for origin in secrets_in(template, also):
            text = template.text[origin.span.start : origin.span.end]
            found.append(SecretRead(site, text, model.place(site, origin.span)))
    return tuple(found)


def declared_input(site: Site) -> Input | None:
    """Return what the task's kind declares about the input that a site is part of; None where it declares nothing."""
    kind = find_kind(site.task.kind) if site.task and site.input else None
    return kind.input(site.input) if kind else None


def becomes_url(site: Site) -> bool:
    declared = declared_input(site)
    if declared is None or site.task is None:
        return False
    return declared.language == "url" or (site.task.kind, declared.name) in _ENCODED_INTO_A_URL


MADE_HERE = frozenset({"execution_id", "iter.index", "_attempt"})
"""Values that the machine makes itself: an identifier or a number cannot change the meaning of a text."""


def splices(model: Model, language: Language, is_read_so: Callable[[Site], bool] | None = None) -> Iterator[Splice]:
    """Yield the data in texts of a language, each once a task, for a task needs one parameter for it.

    `is_read_so` decides for a site that is not the input's whole value.
    """
    seen: set[tuple[int, str]] = set()
    for site, template in model.template_sites:
        declared = declared_input(site)
        if declared is None or declared.language != language:
            continue
        if not is_whole_input(site) and not declared.reads_items and not (is_read_so and is_read_so(site)):
            continue
        for origin in data_in(template):
            text = template.text[origin.span.start : origin.span.end]
            use = id(site.task), text
            if use not in seen and text not in MADE_HERE and _is_defined(model, site, text):
                seen.add(use)
                yield Splice(site, text, model.place(site, origin.span), template.is_single)


def _is_defined(model: Model, site: Site, text: str) -> bool:
    """Return whether anything defines the name that a text begins with; otherwise P215 reports it."""
    name = re.match(r"\w+", text)
    return name is None or name[0] in NAMESPACES or model.definitions.defines(name[0], site)


def is_whole_input(site: Site) -> bool:
    """Return whether a site is its input's value itself and not an item or a field of it."""
    return site.task is not None and site.task.task.get_extra(site.input) is site.scalar


class _Trace:
    """Follows values through one template. `ends` are filters that let nothing of their operand through."""

    def __init__(self, ends: frozenset[str], wanted: Callable[[Path], bool]) -> None:
        self._ends = ends
        self._wanted = wanted
        self._locals: dict[str, list[DataOrigin]] = {}

    def parts(self, parts: tuple[t.Part, ...]) -> list[DataOrigin]:
        return [origin for part in parts for origin in self._part(part)]

    def _part(self, part: t.Part) -> list[DataOrigin]:
        if isinstance(part, t.Output):
            return self._expression(part.expression)
        if isinstance(part, t.If):
            bodies = [*(branch.body for branch in part.branches), part.otherwise]
            return [origin for body in bodies for origin in self.parts(body)]
        if isinstance(part, t.For):
            return self._for(part)
        if isinstance(part, t.Set):
            self._bind(part.target, self._expression(part.value))
        elif isinstance(part, t.SetBlock):
            filtered = self._expression(part.filter) if part.filter else []
            self._bind(part.target, self.parts(part.body) + filtered)
        return []

    def _for(self, part: t.For) -> list[DataOrigin]:
        outside = dict(self._locals)
        self._locals["loop"] = []
        self._bind(part.target, self._expression(part.iterable))
        found = self.parts(part.body)
        self._locals = outside
        return found + self.parts(part.otherwise)

    def _bind(self, target: t.Expression, origins: list[DataOrigin]) -> None:
        """Add to what a name may hold: another branch may have set it too."""
        for node in t.walk(target):
            if isinstance(node, t.Name):
                known = {origin.path[0]: origin for origin in [*origins, *self._locals.get(node.name, [])]}
                self._locals[node.name] = list(known.values())[:_LOCAL_ORIGINS_MAX]

    def _expression(self, root: t.Expression) -> list[DataOrigin]:
        found: list[DataOrigin] = []
        waiting: list[t.Node] = [root]
        while waiting:
            node = waiting.pop()
            path, computed = _path(node)
            if path:
                found.extend(self._read(path, node.span))
                waiting.extend(computed)
            else:
                waiting.extend(reversed(self._carriers(node)))
        return found

    def _read(self, path: Path, span: Span) -> list[DataOrigin]:
        if path[0] in self._locals:
            return self._locals[path[0]]
        return [DataOrigin(path, span)] if self._wanted(path) else []

    def _carriers(self, node: t.Node) -> list[t.Node]:
        """Return the nodes below that a node's value is made of."""
        if isinstance(node, _ASKING):
            return []
        if isinstance(node, t.Cond):
            return [node.then, *([node.otherwise] if node.otherwise else [])]
        below = t.children(node)
        if isinstance(node, t.Filter) and node.name in self._ends:
            return [child for child in below if child is not node.node]
        if isinstance(node, t.Call):
            return [*_receiver(node), *(child for child in below if child is not node.node)]
        return below


def _receiver(call: t.Call) -> list[t.Node]:
    """Return what a method is called on, unless the method only tests it; a function has no receiver."""
    if isinstance(call.node, t.Getattr):
        return [] if call.node.name in _MEASURING_METHODS else [call.node.node]
    return [] if isinstance(call.node, t.Name) else [call.node]


def _path(node: t.Node) -> tuple[Path, list[t.Node]]:
    """Return the names of a path and its computed indexes; no names where the node is not a path."""
    names: list[str] = []
    computed: list[t.Node] = []
    while isinstance(node, t.Getattr | t.Getitem):
        if isinstance(node, t.Getattr):
            names.append(node.name)
        elif isinstance(node.index, t.Const) and isinstance(node.index.value, str):
            names.append(node.index.value)
        else:
            computed.append(node.index)
        node = node.node
    return ((node.name, *reversed(names)), computed) if isinstance(node, t.Name) else ((), [])


def _is_secret(path: Path, also: frozenset[str]) -> bool:
    if path[0] == "outcome":
        return "outcome" in also and path[1:2] in ((), ("result",))
    return path[0] == "keychain" or path[0] in also


def _may_be_text(path: Path) -> bool:
    field = FIELDS.get(".".join(path))
    return field is None or field.shape not in _HARMLESS_SHAPES


def _secret_names(model: Model) -> dict[int, frozenset[str]]:
    """Return, by identity of the task, which of `outcome` and `_prev` holds the result of a tool that gives secrets."""
    names: dict[int, frozenset[str]] = {}
    for owner, views in model.tasks_by_owner.items():
        givers = [view for view in views if _gives_secret(view.task)]
        if not givers:
            continue
        for view in givers:
            names[id(view.task)] = names.get(id(view.task), frozenset()) | {"outcome"}
        for task in (*_next_in_line(owner), *_jumped_to(givers, views)):
            names[id(task)] = names.get(id(task), frozenset()) | {"_prev"}
    return names


def _gives_secret(entry: ast.PipelineEntry) -> bool:
    kind = find_kind(entry.kind.text) if isinstance(entry, ast.Task) and entry.kind else None
    return kind is not None and kind.gives_secret


def _next_in_line(owner: Owner) -> Iterator[ast.Task]:
    """Yield the tasks directly after one that returns a secret and can continue to them."""
    lists = [owner.entries]
    while lists:
        entries = lists.pop()
        for entry, after in pairwise(entries):
            if isinstance(entry, ast.Task) and isinstance(after, ast.Task) and _gives_secret(entry) and _goes_on(entry):
                yield after
        for entry in entries:
            if not isinstance(entry, ast.Task):
                lists.extend(ast.bodies(entry))


def _goes_on(task: ast.Task) -> bool:
    directives = [then.do.text for _, then in thens(task) if then.do]
    return "continue" in directives or not any(rule.else_ for rule in task.rules)


def _jumped_to(givers: list[TaskView], views: tuple[TaskView, ...]) -> Iterator[ast.Task]:
    labels = {view.label: view.task for view in views}
    for view in givers:
        for _, then in thens(view.task):
            if then.to and then.to.text in labels:
                yield labels[then.to.text]
