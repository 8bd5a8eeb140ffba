"""What templates read and call: names from outside, the fields read through them, filters, tests, functions, methods.

What a template calls, pipes and compares is found in the same walk. Nothing is reported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from noetlc.analysis.inputs import ON_ANY_TASK
from noetlc.syntax import ast, nodes
from noetlc.syntax import template_ast as t
from noetlc.syntax.document_cache import DocumentCache
from noetlc.syntax.span import Span
from noetlvm.language.filters import FILTERS, FUNCTIONS, NAMED_BY_ARGUMENT, TESTS
from noetlvm.language.methods import METHODS, Signature
from noetlvm.language.scopes import BARE_NAME_ORDER, VISIBLE, TemplatePosition, given_fields
from noetlvm.nearest import nearest
from noetlvm.record import IdentityRecord, Record, changed

if TYPE_CHECKING:
    from noetlc.analysis.model import Model, Site, TaskView


FOR_LOOP = "loop"
"""What `{% for %}` binds besides its own target."""

_PROVIDES_DEFAULT = frozenset({"default", "d"})
_EXISTENCE_TESTS = frozenset({"defined", "undefined", "none"})

_Scope: TypeAlias = frozenset[str]


class Access(NamedTuple):
    """One field of a path: `.name` or `['name']`, and the place of the name."""

    name: str
    span: Span


class NameUse(IdentityRecord):
    """A name that a template reads from outside itself, with the fields read through it: `iter.parent.page`."""

    node: t.Name
    fields: tuple[Access, ...]
    """The fields up to the first that is not written out; a called method is not a field, `get('x')` reads `x`."""
    whole: t.Expression
    """The expression that the whole path is."""
    is_dynamic: bool = False
    """The field after the last of `fields` is computed: `ctx[key]`."""
    is_optional: bool = False
    """The template handles its absence: `default`, `is defined`, `get`."""

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def path(self) -> tuple[str, ...]:
        return (self.node.name, *(field.name for field in self.fields))


class TemplateNames(IdentityRecord):
    """All that one template reads and does, each list in no particular order."""

    uses: tuple[NameUse, ...]
    for_loop_uses: tuple[NameUse, ...]
    """Uses of `loop` inside `{% for %}`."""
    accesses: tuple[Access, ...]
    """Every field that is read by a written name, whatever it is read from."""
    filters: tuple[t.Filter, ...]
    tests: tuple[t.Test, ...]
    calls: tuple[t.Call, ...]
    compares: tuple[t.Compare, ...]
    callable_loops: frozenset[int]
    """Identities of the calls `loop(…)` inside a recursive `{% for %}`: the one variable that can be called."""

    _by_whole: dict[int, NameUse]

    def use_of(self, node: t.Expression) -> NameUse | None:
        """Return the use that an expression is, or None if it is something else."""
        return self._by_whole.get(id(node))


class Reading(IdentityRecord):
    """One evaluated template of a playbook with all it reads."""

    site: Site
    template: t.Template
    names: TemplateNames

    def is_visible(self, name: str) -> bool:
        """Return whether a namespace exists where the template stands."""
        return name in VISIBLE[self.site.position]


def readings(model: Model) -> tuple[Reading, ...]:
    """Return every template that is evaluated, read; neither static data nor the older dialect's blocks are."""
    return tuple(
        Reading(site, template, names_in(template))
        for site, template in model.template_sites
        if site.position is not TemplatePosition.STATIC and site.input not in ON_ANY_TASK
    )


_cached: DocumentCache[str, tuple[t.Template, TemplateNames]] = DocumentCache()
"""By text. Names refer to nodes of their template by identity, so they go with that tree and no other."""


def names_in(template: t.Template) -> TemplateNames:
    known = _cached.get(template.text)
    if known is not None and known[0] is template:
        return known[1]
    walk = _Walk()
    walk.parts(template.parts, frozenset())
    names = walk.names()
    _cached[template.text] = (template, names)
    return names


class _Walk:
    """Goes through one template with the names that are bound at each place of it."""

    def __init__(self) -> None:
        self._uses: list[NameUse] = []
        self._for_loop_uses: list[NameUse] = []
        self._accesses: list[Access] = []
        self._filters: list[t.Filter] = []
        self._tests: list[t.Test] = []
        self._calls: list[t.Call] = []
        self._compares: list[t.Compare] = []
        self._callable_loops: set[int] = set()
        self._optional: set[int] = set()
        self._tested: set[int] = set()
        self._recursive = False

    def names(self) -> TemplateNames:
        tested = {use.path for use in self._uses if id(use.whole) in self._tested}
        uses = tuple(_made_optional(use, tested) for use in self._uses) if tested else tuple(self._uses)
        return TemplateNames(
            uses,
            tuple(self._for_loop_uses),
            tuple(self._accesses),
            tuple(self._filters),
            tuple(self._tests),
            tuple(self._calls),
            tuple(self._compares),
            frozenset(self._callable_loops),
            {id(use.whole): use for use in uses if not use.is_dynamic},
        )

    def parts(self, parts: tuple[t.Part, ...], scope: _Scope) -> _Scope:
        """Read parts in order and return the names bound after them."""
        for part in parts:
            if isinstance(part, t.Output):
                self._expression(part.expression, scope)
            elif isinstance(part, t.If):
                scope = self._if(part, scope)
            elif isinstance(part, t.For):
                self._for(part, scope)
            elif isinstance(part, t.Set):
                self._expression(part.value, scope)
                scope |= _targets(part.target)
            elif isinstance(part, t.SetBlock):
                self.parts(part.body, scope)
                if part.filter:
                    self._expression(part.filter, scope)
                scope |= _targets(part.target)
        return scope

    def _if(self, part: t.If, scope: _Scope) -> _Scope:
        """An `if` opens no scope: what a branch sets may be set afterwards."""
        bound = scope
        for branch in part.branches:
            self._expression(branch.test, scope)
            bound |= self.parts(branch.body, scope)
        return bound | self.parts(part.otherwise, scope)

    def _for(self, part: t.For, scope: _Scope) -> None:
        self._expression(part.iterable, scope)
        inner = scope | _targets(part.target) | {FOR_LOOP}
        outer_recursive, self._recursive = self._recursive, part.recursive
        if part.test:
            self._expression(part.test, inner)
        self.parts(part.body, inner)
        self._recursive = outer_recursive
        self.parts(part.otherwise, scope)

    def _expression(self, root: t.Expression, scope: _Scope) -> None:
        waiting: list[t.Node] = [root]
        while waiting:
            node = waiting.pop()
            if isinstance(node, t.Name | t.Getattr | t.Getitem) or _get_key(node) is not None:
                self._path(node, scope, waiting)
            elif isinstance(node, t.Call):
                self._call(node, scope, waiting)
            else:
                self._note(node)
                waiting.extend(t.children(node))

    def _note(self, node: t.Node) -> None:
        if isinstance(node, t.Filter):
            self._filters.append(node)
            if node.name in _PROVIDES_DEFAULT:
                self._optional.add(id(node.node))
        elif isinstance(node, t.Test):
            self._tests.append(node)
            if node.name in _EXISTENCE_TESTS:
                self._tested.add(id(node.node))
        elif isinstance(node, t.Compare):
            self._compares.append(node)
        elif isinstance(node, t.Or):  # `ctx.limit or 10`: the last operand stands in for what is absent
            self._optional.update(id(operand) for operand in node.operands[:-1])

    def _call(self, call: t.Call, scope: _Scope, waiting: list[t.Node]) -> None:
        """What is called is neither a variable nor a field; what a method is called on is read."""
        self._calls.append(call)
        callee = call.node
        if isinstance(callee, t.Name):
            if callee.name == FOR_LOOP and FOR_LOOP in scope and self._recursive:
                self._callable_loops.add(id(call))
        elif isinstance(callee, t.Getattr):
            self._accesses.append(Access(callee.name, callee.name_span))
            waiting.append(callee.node)
        else:
            waiting.append(callee)
        waiting.extend(child for child in t.children(call) if child is not callee)

    def _path(self, whole: t.Node, scope: _Scope, waiting: list[t.Node]) -> None:
        """Read a chain of fields from its end to its beginning."""
        assert isinstance(whole, t.Expression)
        steps: list[Access | None] = []  # None: a computed index
        node, optional = whole, id(whole) in self._optional
        while not isinstance(node, t.Name):
            if isinstance(node, t.Getattr):
                steps.append(Access(node.name, node.name_span))
                node = node.node
            elif isinstance(node, t.Getitem):
                steps.append(self._subscript(node, waiting))
                node = node.node
            elif (key := _get_key(node)) is not None:
                assert isinstance(node, t.Call)
                assert isinstance(node.node, t.Getattr)
                self._calls.append(node)
                waiting.extend(child for child in t.children(node) if child is not node.node)
                steps.append(key)
                node, optional = node.node.node, True
            else:
                waiting.append(node)
                break
        self._accesses.extend(step for step in steps if step)
        if isinstance(node, t.Name):
            self._use(node, steps[::-1], whole, optional, scope)

    def _subscript(self, node: t.Getitem, waiting: list[t.Node]) -> Access | None:
        if isinstance(node.index, t.Const) and isinstance(node.index.value, str):
            return Access(node.index.value, node.index.span)
        waiting.append(node.index)
        return None

    def _use(
        self, name: t.Name, steps: list[Access | None], whole: t.Expression, optional: bool, scope: _Scope
    ) -> None:
        fields: list[Access] = []
        for step in steps:
            if step is None:
                break
            fields.append(step)
        use = NameUse(name, tuple(fields), whole, len(fields) < len(steps), optional)
        if name.name not in scope:
            self._uses.append(use)
        elif name.name == FOR_LOOP:
            self._for_loop_uses.append(use)


def _get_key(node: t.Node) -> Access | None:
    """Return the key of `x.get('key')`, which reads a field as `x.key` does."""
    if not (isinstance(node, t.Call) and isinstance(node.node, t.Getattr) and node.node.name == "get" and node.args):
        return None
    first = node.args[0]
    return Access(first.value, first.span) if isinstance(first, t.Const) and isinstance(first.value, str) else None


def _targets(target: t.Expression) -> frozenset[str]:
    return frozenset(node.name for node in t.walk(target) if isinstance(node, t.Name))


def _made_optional(use: NameUse, tested: set[tuple[str, ...]]) -> NameUse:
    """A path that the template tests somewhere, and all below it, may be absent."""
    path = use.path
    if use.is_optional or not any(path[:length] in tested for length in range(1, len(path) + 1)):
        return use
    return changed(use, is_optional=True)


class Definitions(Record):
    """Which names the playbook itself defines, by the namespace in which a bare name would find them (S11)."""

    args: frozenset[str]
    ctx: frozenset[str]
    workload: frozenset[str]
    steps: frozenset[str]
    iter_by_owner: dict[int, frozenset[str]]
    """Names under `iter`, by identity of the pipeline's owner."""
    iter_anywhere: frozenset[str]
    labels_by_owner: dict[int, frozenset[str]]
    """Labels of the tasks of a list, whose results its own tasks read by name (S48)."""

    def namespaces_of(self, name: str, site: Site) -> list[str]:
        """Return the namespaces in which a bare name at `site` can be found, the winning one first."""
        tables = {"args": self.args, "ctx": self.ctx, "iter": self._iter(site), "workload": self.workload}
        return [namespace for namespace in BARE_NAME_ORDER if name in tables[namespace]]

    def defines(self, name: str, site: Site) -> bool:
        """Return whether a bare name at `site` can be found at all."""
        return name in self.steps or self.is_label(name, site) or bool(self.namespaces_of(name, site))

    def is_label(self, name: str, site: Site) -> bool:
        """True if a bare name at `site` can be the label of a task of the same pipeline (S48)."""
        return name in self._labels(site)

    def known_to(self, site: Site) -> Iterator[str]:
        """Yield every name that could be meant at `site`, namespaces included."""
        own = (self._iter(site), self._labels(site), VISIBLE[site.position])
        return chain(self.args, self.ctx, self.workload, self.steps, *own)

    def _labels(self, site: Site) -> frozenset[str]:
        is_in_task = "_prev" in VISIBLE[site.position] and site.owner is not None
        return self.labels_by_owner.get(id(site.owner), frozenset()) if is_in_task else frozenset()

    def _iter(self, site: Site) -> frozenset[str]:
        if "iter" not in VISIBLE[site.position] or site.owner is None:
            return frozenset()
        # A workbook's tasks see the loop of whichever step uses them.
        return self.iter_anywhere if site.owner.in_workbook else self.iter_by_owner.get(id(site.owner), frozenset())


def definitions(model: Model) -> Definitions:
    from noetlc.analysis.model import patches, thens

    ctx: set[str] = set()
    set_iter: dict[int, set[str]] = {}
    args = set(_arc_args(model))
    for view in model.tasks:
        written = set_iter.setdefault(id(view.owner), set())
        for _, then in thens(view.task):
            for patch, entry in patches(then):
                (written if patch == "set_iter" else ctx).add(entry.key.text)
        if view.kind == "workbook" and isinstance(given := view.task.get_extra("args"), nodes.Mapping):
            args.update(entry.key.text for entry in given.entries)
    iter_by_owner = {
        id(owner): frozenset(set_iter.get(id(owner), set())) | _iterators(owner.loops) for owner in model.owners
    }
    return Definitions(
        frozenset(args),
        frozenset(ctx),
        model.workload_keys,
        frozenset(model.steps_by_name),
        iter_by_owner,
        frozenset().union(*iter_by_owner.values()),
        {id(owner): frozenset(_read_names(model, views)) for owner, views in model.tasks_by_owner.items()},
    )


def _read_names(model: Model, views: Sequence[TaskView]) -> Iterator[str]:
    """Yield the first names by which the results of a list's tasks are read; of `save.insert`, `save` (S42)."""
    from noetlc.analysis.workbook_calls import read_label

    for view in views:
        read = read_label(view.task, view.label, model.workbook)
        if read.result is not None or read.inner:
            yield view.label.partition(".")[0]


def _arc_args(model: Model) -> Iterator[str]:
    """Yield what arcs hand on; a token keeps it from step to step (S32), so every step may see it."""
    for step in model.steps:
        for arc in step.arcs:
            for entry in arc.args.entries if arc.args else ():
                yield entry.key.text


def _iterators(loops: tuple[ast.Loop, ...]) -> frozenset[str]:
    """Return what the loops themselves put under `iter`."""
    if not loops:
        return frozenset()
    return given_fields("iter") | {loop.iterator.text for loop in loops if loop.iterator}


Sort: TypeAlias = Literal["filter", "test", "function", "method"]

_TABLES: dict[Sort, Mapping[str, Signature]] = {
    "filter": FILTERS,
    "test": TESTS,
    "function": FUNCTIONS,
    "method": {name: method.signature for name, method in METHODS.items()},
}


class Application(IdentityRecord):
    """One filter, test, function or method with its arguments."""

    sort: Sort
    name: str
    span: Span
    """Where the name stands, without quotes."""
    positional: int
    keywords: tuple[str, ...]
    is_open: bool
    """Some arguments come from `*x` or `**x`, so their number is not known."""
    receiver: t.Expression | None = None

    @property
    def signature(self) -> Signature | None:
        return _TABLES[self.sort].get(self.name)


def applications(names: TemplateNames) -> Iterator[Application]:
    for filter in names.filters:
        yield _application("filter", filter, filter.name, filter.name_span, filter.node)
        yield from _named_by_argument(filter)
    for test in names.tests:
        yield _application("test", test, test.name, test.name_span, test.node)
    for call in names.calls:
        callee = call.node
        if isinstance(callee, t.Name):
            yield _application("function", call, callee.name, callee.name_span)
        elif isinstance(callee, t.Getattr):
            yield _application("method", call, callee.name, callee.name_span, callee.node)


def unknown_applications(model: Model, sort: Sort, rejected: Mapping[str, str]) -> Iterator[tuple[str, Span, str]]:
    """Yield each use of a name that does not exist, its place in the file, and the name that was probably meant."""
    for reading in model.readings:
        for use in applications(reading.names):
            if use.sort == sort and use.signature is None:
                meant = "" if use.name in rejected else nearest(use.name, _TABLES[sort])
                yield use.name, model.place(reading.site, use.span), meant


def _application(
    sort: Sort, node: t.Filter | t.Test | t.Call, name: str, span: Span, receiver: t.Expression | None = None
) -> Application:
    is_open = node.dyn_args is not None or node.dyn_kwargs is not None
    return Application(sort, name, span, len(node.args), _keywords(node), is_open, receiver)


def _named_by_argument(filter: t.Filter) -> Iterator[Application]:
    named = NAMED_BY_ARGUMENT.get(filter.name)
    if named is None or len(filter.args) <= named[1]:
        return
    sort: Sort = "filter" if named[0] == "filter" else "test"
    position = named[1]
    name = filter.args[position]
    if isinstance(name, t.Const) and isinstance(name.value, str):
        span = type(name.span)(name.span.start + 1, name.span.end - 1)
        is_open = filter.dyn_args is not None or filter.dyn_kwargs is not None
        yield Application(sort, name.value, span, len(filter.args) - position - 1, _keywords(filter), is_open)


def _keywords(node: t.Filter | t.Test | t.Call) -> tuple[str, ...]:
    return tuple(keyword.name for keyword in node.kwargs)
