"""Turns `next` in any of its older forms into a router with guarded arcs."""

from __future__ import annotations

from typing import NamedTuple

from noetlc.migrate.constructs import RewriteLog
from noetlc.migrate.document import Draft, Leaf, Map, MapEntry, Seq, SeqItem, mapping, scalar, split_layout, template
from noetlc.migrate.facts import StepFacts
from noetlc.migrate.policies import as_template
from noetlc.migrate.templates import escaped, expression_in, joined, negated, paths_read

_ARGS = ("args", "input", "with", "payload", "data")


def _is_true(value: Draft | None) -> bool:
    return isinstance(value, Leaf) and value.value is True


def _is_inclusive(router: Map) -> bool:
    spec = router.map("spec")
    return spec is not None and spec.text("mode") == "inclusive"


class CaseRoute(NamedTuple):
    """A condition and the arcs that it leads to. Without a condition it always holds; `otherwise` is an `else`."""

    condition: str
    arcs: list[Map]
    otherwise: bool = False


class RouteRewriter:
    def __init__(self, step: StepFacts, log: RewriteLog) -> None:
        self._step = step
        self._log = log

    def rewrite(self) -> None:
        body = self._step.body
        pair = body.pair("next")
        mode = self._next_mode()
        if pair is not None and self._is_router(pair.value):
            self._arcs(pair.value)
        elif pair is not None and isinstance(pair.value, Leaf) and pair.value.raw == "[]":
            self._log.add("R501", pair.span, "a `next` that leads nowhere is removed")
            body.pairs.remove(pair)
            return
        elif pair is not None:
            self._log.add("R501", pair.span, "`next` is a router with `arcs`")
            self._router(pair, pair.value)
        if pair is not None and mode and isinstance(pair.value, Map):
            spec = pair.value.nested("spec")
            if not spec.pair("mode"):
                spec.pairs.append(mode)
            pair.value.pairs.sort(key=lambda entry: entry.key != "spec")

    @staticmethod
    def _is_router(value: Draft) -> bool:
        return isinstance(value, Map) and (value.pair("arcs") is not None or value.pair("spec") is not None)

    def _arcs(self, value: Draft) -> None:
        """Bring the words of arcs that stand in a router already to v10."""
        arcs = value.seq("arcs") if isinstance(value, Map) else None
        if arcs and isinstance(value, Map) and not _is_inclusive(value):
            for item in list(arcs.items):
                self._else_arc(arcs, item)
        for arc in arcs.values if arcs else ():
            if isinstance(arc, Map):
                arc_shape(arc, self._log)
                guard = arc.leaf("when")
                if guard is not None:
                    as_template(guard, self._log)

    def _else_arc(self, arcs: Seq, item: SeqItem) -> None:
        """Move an arc for everything else to the end: `else: true` beside its step, or `else` with its step below."""
        arc = item.value
        other = arc.pair("else") if isinstance(arc, Map) and not arc.pair("when") else None
        if other is None or not isinstance(arc, Map):
            return
        if arc.pair("step") and _is_true(other.value):
            arc.pairs.remove(other)
        elif len(arc.pairs) == 1 and len(found := targets(other.value, self._log)) == 1:
            item.value = found[0]
        else:
            return
        self._log.add("R504", other.span, "`else` is a last arc")
        if arcs.items[-1] is not item:
            arcs.items.remove(item)
            arcs.items.append(item)

    def _next_mode(self) -> MapEntry | None:
        spec = self._step.body.map("spec")
        pair = spec.remove("next_mode") if spec else None
        if spec is None or pair is None:
            return None
        self._log.add("R202", pair.span, "`spec.next_mode` is `next.spec.mode`")
        if not spec.pairs:
            self._step.body.remove("spec")
        pair.key = "mode"
        return pair

    def _router(self, pair: MapEntry, value: Draft) -> None:
        if isinstance(value, Leaf):
            if value.is_alias:
                pair.value = mapping(("arcs", value), flow=True)
                return
            if not isinstance(value.value, str):
                return
            arc = mapping(("step", value), flow=True)
            self.guard(arc)
            pair.value = mapping(("arcs", Seq([SeqItem(arc)])), flow=self._step.body.flow)
            return
        entries = value.items if isinstance(value, Seq) else [SeqItem(value)]
        simple = [self._simple_arc(item, value.flow) for item in entries]
        if all(simple):
            for item, guarded in zip(entries, simple, strict=True):
                item.value = guarded or item.value
            arcs = value if isinstance(value, Seq) else Seq(entries)
            pair.layout, inner = split_layout(pair.layout)
            pair.value = mapping(MapEntry("arcs", arcs, inner), flow=value.flow)
            return
        routes = sorted((self._route(item.value) for item in entries), key=lambda route: route.otherwise)
        pair.value = router(self, routes, self._log, pair)

    def _simple_arc(self, item: SeqItem, flow: bool) -> Map | None:
        """Return an entry that is one arc, guarded; None for an entry with `then` or `else`."""
        value = item.value
        if isinstance(value, Leaf):
            value = mapping(("step", value), flow=True)
        if value.pair("then") if isinstance(value, Map) else True:
            return None
        assert isinstance(value, Map)
        if value.pair("else"):
            return None
        arc_shape(value, self._log)
        if not value.pair("step"):
            return None
        self.guard(value)
        return value

    def _route(self, entry: Draft) -> CaseRoute:
        if isinstance(entry, Map) and (entry.pair("then") or entry.pair("else")):
            guard = entry.leaf("when")
            if entry.pair("else"):
                self._log.add("R504", entry.span, "`else` is a last arc")
                beside = entry.pair("step") and _is_true(entry.get("else"))
                if beside:
                    entry.remove("else")
                to = entry if beside else entry.get("else")
                return CaseRoute("", targets(to, self._log), otherwise=True)
            self._log.add("R503", entry.span, "`when` and `then` are an arc")
            return CaseRoute(condition_of(guard, self._log), targets(entry.get("then"), self._log))
        if isinstance(entry, Map):
            guard = entry.leaf("when")
            entry.remove("when")
            return CaseRoute(condition_of(guard, self._log), targets(entry, self._log))
        return CaseRoute("", targets(entry, self._log))

    # ---- guards

    @property
    def success(self) -> str:
        """The condition that the step has succeeded; empty for a step that cannot fail."""
        if not self._step.body.pair("tool") and not self._step.body.pair("case"):
            return ""
        return "event.name == 'loop.done'" if self._step.has_loop else "event.name == 'step.done'"

    def guard(self, arc: Map) -> None:
        """A failed step went nowhere: an arc that does not test for failure holds on success only."""
        guard = arc.leaf("when")
        if guard is None or guard.value is True or expression_in(guard.value_text) in ("true", "True"):
            if self.success:
                self._log.add("R502", arc.span, "an arc without a guard was not taken after a failure")
                arc.put("when", template(self.success), after="step")
            return
        as_template(guard, self._log)
        if self.success and isinstance(guard.value, str) and not tests_for_failure(guard.value):
            self._log.add("R502", guard.span, "an arc that does not test for failure was not taken after one")
            wrap(guard, self.success)

    def guarded(self, condition: str) -> str:
        """Return a condition that does not hold after a failure, unless it tests for one."""
        if not self.success or tests_for_failure(f"{{{{ {condition} }}}}"):
            return condition
        return joined("and", self.success, condition)


def router(rewriter: RouteRewriter, routes: list[CaseRoute], log: RewriteLog, source: MapEntry) -> Map:
    """Return the router of routes; one with several targets under a condition is inclusive."""
    several = any(len(route.arcs) > 1 for route in routes)
    arcs: list[Map] = []
    before: list[str] = []
    for route in routes:
        condition = "" if route.otherwise else route.condition
        guard = rewriter.guarded(condition)
        if guard != condition:
            log.add("R502", source.span, "an arc that does not test for failure was not taken after one")
        if several:
            guard = joined("and", guard, *(negated(other) for other in before))
            before += [route.condition] if route.condition else []
        for arc in route.arcs:
            if guard:
                arc.put("when", template(guard), after="step")
            arcs.append(arc)
    made = Map([MapEntry("arcs", Seq([SeqItem(arc) for arc in arcs]))])
    if several:
        log.add("R505", source.span, "several targets under one condition")
        made.pairs.insert(0, MapEntry("spec", mapping(("mode", "inclusive"), flow=True)))
    return made


def targets(node: Draft | None, log: RewriteLog) -> list[Map]:
    """Return the arcs that a `then`, an `else` or a `next` names."""
    if isinstance(node, Seq):
        return [arc for value in node.values for arc in targets(value, log)]
    if isinstance(node, Leaf):
        return [mapping(("step", node))] if isinstance(node.value, str) else []
    if node is None:
        return []
    inner = node.get("next")
    if inner is not None and not node.pair("step"):
        if isinstance(inner, Map) and inner.pair("arcs"):
            inner = inner.get("arcs")
        found = targets(inner, log)
        for word in _ARGS:
            given = node.get(word)
            for arc in found:
                if isinstance(given, Map) and not arc.pair("args"):
                    arc.put("args", given)
        return found
    arc_shape(node, log)
    return [node] if node.pair("step") else []


def arc_shape(arc: Map, log: RewriteLog) -> None:
    for old in ("name", "next", "then"):
        pair = arc.pair(old)
        if pair and not arc.pair("step") and isinstance(pair.value, Leaf):
            pair.key = "step"
    for old in _ARGS[1:]:
        pair = arc.pair(old)
        if pair and not arc.pair("args") and isinstance(pair.value, Map):
            log.add("R301", pair.span, f"`{old}` of an arc is `args`")
            pair.key = "args"
    condition = arc.pair("expr") or arc.pair("condition")
    if condition and not arc.pair("when"):
        condition.key = "when"


def condition_of(guard: Leaf | None, log: RewriteLog) -> str:
    """Return a guard's expression; empty where it always holds."""
    if guard is None or guard.value is True:
        return ""
    as_template(guard, log)
    return expression_in(guard.value_text) or guard.value_text


def tests_for_failure(text: str) -> bool:
    """Return whether a guard distinguishes success from failure itself; what reads the result alone does not."""
    return any(path[0] == "event" and path[1:2] != ("result",) for path in paths_read(text))


def wrap(guard: Leaf, condition: str) -> None:
    """Add a condition before a guard's own, keeping how it is written."""
    text = guard.value_text
    inner = expression_in(text)
    if inner is None:
        return
    new = joined("and", condition, inner)
    at = new.find(inner)
    prefix, suffix = new[:at], new[at + len(inner) :]
    start = guard.raw.find("{{") + 2
    end = guard.raw.rfind("}}")
    while guard.raw[start : start + 1] in " -":
        start += 1
    while guard.raw[end - 1 : end] in " -\n":
        end -= 1
    before, after = escaped(prefix, guard.style), escaped(suffix, guard.style)
    guard.raw = guard.raw[:start] + before + guard.raw[start:end] + after + guard.raw[end:]
    guard.value = f"{{{{ {new} }}}}"


def admit_policy(step: Map, log: RewriteLog) -> None:
    """A step's `when` becomes its admission rule."""
    pair = step.pair("when")
    if pair is None or not isinstance(pair.value, Leaf):
        return
    step.pairs.remove(pair)
    guard = pair.value
    as_template(guard, log)
    if guard.value is True or expression_in(guard.value_text) in ("true", "True"):
        log.add("R201", pair.span, "`when: true` is the default and is removed")
        return
    log.add("R201", pair.span, "`when` of a step is its admission rule")
    allow = mapping(MapEntry("when", guard, pair.layout), ("then", mapping(("allow", True), flow=True)))
    deny = mapping(("else", mapping(("then", mapping(("allow", False), flow=True)), flow=True)))
    rules = Seq([SeqItem(allow), SeqItem(deny)])
    if not step.pair("spec"):
        step.insert(MapEntry("spec", Map([], flow=step.flow)), after="desc" if step.pair("desc") else "step")
    spec = step.pair("spec")
    if spec and isinstance(spec.value, Map) and spec.value.flow and not step.flow:
        spec.value = Map(spec.value.pairs)
    admit = step.nested("spec", "policy", "admit")
    admit.put("on_deny", scalar("drop"))
    admit.put("rules", rules)
