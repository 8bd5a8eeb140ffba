"""The credentials that a playbook uses.

A playbook without a `keychain` relies on what its runtime has: every entry that a task names is then declared for it,
in the form that the tool needs. One with a `keychain` must declare all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from noetlc.syntax import ast
from noetlc.syntax.nodes import Mapping, MappingEntry, Node, Scalar, plain
from noetlc.syntax.span import Span
from noetlc.syntax.template_ast import Const, Getattr, Getitem, Name, walk
from noetlvm.language.keychain import ShapeError, read_auth
from noetlvm.nearest import nearest

if TYPE_CHECKING:
    from noetlc.analysis.model import Model

_FORMS = {"postgres": "postgres_credential", "nats": "nats_credential"}
"""The form of an entry that is not declared, by how it is used or by the kind of the task that names it."""

_ANY_FORM = "secret_manager"
_WORKLOAD = re.compile(
    r"""\s*\{\{-?\s*(?:workload\.)?(\w+(?:\.\w+)*)\s*(?:\|\s*d(?:efault)?\(\s*(['"])([^'"]*)\2\s*\)\s*)?-?\}\}\s*"""
)


class NamedEntry(NamedTuple):
    """A keychain entry that a task names."""

    span: Span
    name: str
    form: str
    """The kind of entry that the task needs."""


def named_entries(playbook: ast.Playbook) -> Iterator[NamedEntry]:
    """Yield the entries that `auth` and `attach` name, as far as that is known without a run."""
    for task in playbook.all_tasks:
        form = _FORMS.get(nearest(task.tool_kind, _FORMS), _ANY_FORM)
        for node in _naming(task):
            try:
                use = read_auth(plain(node))
            except ShapeError:
                continue  # the tool reports what is wrong with it
            name = workload_default(playbook, use.entry) if "{{" in use.entry else use.entry
            if name and isinstance(name, str):
                yield NamedEntry(node.span, name, _FORMS.get(use.scheme, form))


def implied_keychain(playbook: ast.Playbook) -> dict[str, NamedEntry]:
    """Return the entries of a playbook that has no `keychain`, by name."""
    found: dict[str, NamedEntry] = {}
    if "keychain" not in playbook.keys:
        for used in named_entries(playbook):
            found.setdefault(used.name, used)
    return found


def entries_read(model: Model) -> Iterator[tuple[Span, str]]:
    """Yield the names that templates read under `keychain`, those of the keychain's own settings included."""
    for site, template in model.template_sites:
        if "keychain" not in template.text:
            continue
        for node in walk(template):
            match node:
                case Getattr(node=Name(name="keychain"), name=name):
                    yield model.place(site, node.name_span), name
                case Getitem(node=Name(name="keychain"), index=Const(value=str(name))):
                    yield model.place(site, node.index.span), name


def workload_default(playbook: ast.Playbook, template: str) -> object:
    """Return the default that a template consists of, the workload's or its own; None without a plain one."""
    match = _WORKLOAD.fullmatch(template)
    if match is None:
        return None
    entry: Node | None = playbook.workload
    for key in match[1].split("."):
        entry = entry.get(key) if isinstance(entry, Mapping) else None
    if isinstance(entry, Scalar) and not entry.is_template:
        return entry.value
    return match[3] if entry is None else None


def _naming(task: ast.Task) -> Iterator[Node]:
    """Yield what names an entry each: the value of `auth`, and the values of `attach`."""
    auth, attach = task.get_extra("auth"), task.get_extra("attach")
    if auth is not None:
        yield auth
    if isinstance(attach, Mapping):
        yield from (entry.value for entry in attach.entries if isinstance(entry, MappingEntry))
