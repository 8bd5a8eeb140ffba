"""Declares the credentials that tasks name: every name that can occur, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from noetlc.migrate.constructs import RewriteLog
from noetlc.migrate.document import Draft, Leaf, Map, MapEntry, Seq, SeqItem, mapping, plain_data
from noetlc.migrate.facts import reads, steps_of, tasks_of
from noetlc.migrate.templates import paths_read
from noetlc.syntax import template_ast as t
from noetlc.syntax.span import Span
from noetlc.syntax.template_parser import parse_template
from noetlvm.language.keychain import ShapeError, read_auth

_ATTACHING = ("auth", "attach", "credentials")
_ANY = "secret_manager"
_KINDS = {
    "postgres": "postgres_credential",
    "nats": "nats_credential",
    "http": "bearer_token",
    "basic": "basic_auth",
    "basic_auth": "basic_auth",
    "api_key": "api_key",
    "apikey": "api_key",
    "header": "api_key",
}
"""Kinds of entries, by the tool that uses them or by how it does."""


class CredentialUse(NamedTuple):
    """The name of a credential, which may be a template, its place, and the kind of entry that it must be."""

    name: str
    kind: str
    span: Span | None


def declare_credentials(root: Map, log: RewriteLog) -> None:
    keychain = root.seq("keychain")
    declared = {entry.text("name") for entry in keychain.values if isinstance(entry, Map)} if keychain else set()
    needed: dict[str, str] = {}
    for body in _tasks(root):
        for use in _uses(body):
            for name in _names(root, use, log):
                needed.setdefault(name, use.kind)
        for path in reads(body):
            if path[0] == "keychain" and len(path) > 1 and (len(path) > 2 or path[1] not in needed):
                needed[path[1]] = _ANY  # its fields are read, or it may be anything
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


def _tasks(root: Map) -> Iterator[Map]:
    for step in steps_of(root):
        yield from (body for _, body in tasks_of(step.get("tool")))
    workbook = root.map("workbook")
    tasks = workbook.map("tasks") if workbook else None
    for pair in tasks.pairs if tasks else ():
        yield from (body for _, body in tasks_of(pair.value))


# ---- uses


def _uses(task: Map) -> Iterator[CredentialUse]:
    kind = task.text("kind")
    if kind != "duckdb":
        yield from _auth(task.get("auth"), _KINDS.get(kind, _ANY))
        return
    for word in _ATTACHING:
        attached = task.map(word)
        for pair in attached.pairs if attached else ():
            inner = pair.value.get("auth") if isinstance(pair.value, Map) else None
            yield from _auth(inner or pair.value, _ANY)


def _auth(auth: Draft | None, kind: str) -> Iterator[CredentialUse]:
    if auth is None:
        return
    try:
        use = read_auth(plain_data(auth))
    except ShapeError:
        return  # lint reports what is wrong with it
    yield CredentialUse(use.entry, _KINDS.get(use.scheme, kind), auth.span)


# ---- names


def _names(root: Map, use: CredentialUse, log: RewriteLog) -> list[str]:
    """Return the names that a text can be; one that is only known at run time is reported."""
    if "{{" not in use.name:
        return [use.name]
    tree = parse_template(use.name.strip())
    part = tree.parts[0] if tree.is_single and not tree.problems else None
    values = _values(part.expression, root.map("workload")) if isinstance(part, t.Output) else None
    if values is None:
        if not any(path[0] == "keychain" for path in paths_read(use.name)):
            log.add("R908", use.span, f"`auth: {use.name}` is only known at run time")
        return []
    return [value for value in dict.fromkeys(values) if isinstance(value, str) and value]


def _values(node: t.Expression | None, workload: Map | None) -> list[object] | None:
    """Return the values that an expression over the workload's defaults can have; None where that is unknown."""
    match node:
        case None:
            return []
        case t.Const(value=value):
            return [value]
        case t.Cond(then=then, otherwise=otherwise):
            return _all(_values(then, workload), _values(otherwise, workload))
        case t.Or(operands=operands) | t.And(operands=operands):
            return _all(*(_values(operand, workload) for operand in operands))
        case t.Filter(name="default" | "d", node=given, args=args):
            return _all(_values(given, workload) or [], *(_values(arg, workload) for arg in args[:1]))
        case t.Filter(name="trim" | "string" | "lower" | "upper", node=given):
            return _values(given, workload)
        case t.Getitem(node=t.Dict(pairs=pairs)):
            return _all(*(_values(pair.value, workload) for pair in pairs))
    return _default(node, workload)


def _all(*parts: list[object] | None) -> list[object] | None:
    found: list[object] = []
    for part in parts:
        if part is None:
            return None
        found += part
    return found


def _default(node: t.Expression, workload: Map | None) -> list[object] | None:
    """Return the default that a path reads; with a computed key, all those that it may read."""
    keys: list[str | None] = []
    while isinstance(node, t.Getattr | t.Getitem):
        match node:
            case t.Getattr(name=name) | t.Getitem(index=t.Const(value=str(name))):
                keys.append(name)
            case _:
                keys.append(None)
        node = node.node
    if not isinstance(node, t.Name):
        return None
    keys += [] if node.name == "workload" else [node.name]
    found: list[Draft] = [workload] if workload is not None else []
    for key in reversed(keys):
        found = [
            pair.value
            for held in found
            if isinstance(held, Map)
            for pair in held.pairs
            if key is None or pair.key == key
        ]
    values: list[object] = [
        value.value for value in found if isinstance(value, Leaf) and not value.is_template and value.value is not None
    ]
    return values or None
