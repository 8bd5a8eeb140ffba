"""Turns the entries of `case` into policy rules, tasks and arcs.

What an entry does with the task (retry, collect, set) and where it leads are decided apart: in each, the first entry
counts whose guard holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from noetlc.migrate.constructs import RewriteLog, described
from noetlc.migrate.document import Draft, Leaf, Map, MapEntry, Seq, SeqItem, mapping, scalar, sequence, template
from noetlc.migrate.facts import PlaybookFacts, StepFacts, reads, step_facts
from noetlc.migrate.names import NameScope, ReadAt
from noetlc.migrate.policies import ERROR, RETRY_SETTINGS, SUCCESS, attempts_of, complete, policy_rules, retry_then
from noetlc.migrate.routing import CaseRoute, RouteRewriter, router, targets, wrap
from noetlc.migrate.shapes import else_rule, free_label, insert_first, keep_result, labelled, shape_task, task_list
from noetlc.migrate.state import free_step, insert_step
from noetlc.migrate.templates import expression_in, joined, negated, paths_read, renamed_text
from noetlc.syntax import template_ast as t
from noetlc.syntax.span import Span
from noetlc.syntax.template_parser import parse_template

_EVENTS = re.compile(r"\bevent\.(?:name|type)\b")
_ON_ERROR = re.compile(r"""["'](?:call\.error|call\.failed|step\.failed|step\.error)["']""")
_ENTERING = re.compile(r"""["']step\.(?:enter|started|start)["']""")

Rename = Callable[[Draft, NameScope], None]


class CaseEntry(NamedTuple):
    """One entry: its guard as written, and its actions in order."""

    guard: str
    actions: tuple[MapEntry, ...]
    otherwise: bool
    span: Span | None = None

    @property
    def on_error(self) -> bool:
        return _ON_ERROR.search(self.guard) is not None


class CaseRewriter:
    """Rewrites the `case` of one step. `next` is a router already."""

    def __init__(self, facts: PlaybookFacts, step: StepFacts, log: RewriteLog, rename: Rename) -> None:
        self._facts = facts
        self._step = step
        self._log = log
        self._rename = rename
        self._routes = RouteRewriter(step, log)

    def rewrite(self) -> None:
        pair = self._step.body.remove("case")
        if pair is None:
            return
        entries = sorted(self._entries(pair.value), key=lambda entry: entry.otherwise)
        routes: list[CaseRoute] = []
        rules: list[Map] = []
        branches: list[Map] = []
        for entry in entries:
            tasks = self._tasks(entry)
            leads = [action for action in entry.actions if action.key in ("next", "step")]
            if tasks and entry.on_error:
                routes += self._step_on_error(entry, tasks, leads)
                leads = []
            elif tasks:
                branches += self._branch(entry, tasks, entries)
            rules += self._rules(entry)
            routes += self._route(entry, leads)
        self._add_rules(rules, pair)
        self._add_branches(branches)
        self._add_routes(routes, pair)

    def _entries(self, case: Draft) -> Iterator[CaseEntry]:
        values = case.values if isinstance(case, Seq) else [case]
        for value in values:
            if not isinstance(value, Map):
                continue
            guard = value.leaf("when") or value.leaf("expr")
            text = guard.text if guard is not None and guard.value is not None else ""
            if guard is not None and isinstance(guard.value, str) and "{{" not in text:
                text = f"{{{{ {text} }}}}"
            if guard is not None and (isinstance(guard.value, bool) or expression_in(text) in ("true", "True")):
                text = ""
            then = value.get("then")
            if then is not None:
                yield CaseEntry(text, tuple(_actions(then)), otherwise=False, span=guard.span if guard else None)
            other = value.get("else")
            if other is not None:
                inner = other.get("then") if isinstance(other, Map) else None
                yield CaseEntry("", tuple(_actions(inner or other)), otherwise=True)

    # ---- guards

    def _condition(self, entry: CaseEntry, where: ReadAt) -> str:
        scope = NameScope(self._facts, where, self._step, self._step.last)
        condition = expression_in(renamed_text(entry.guard, scope)) or ""
        for code in dict.fromkeys(scope.codes):
            self._log.add(code, entry.span, described(code))
        for code, message in scope.reports:
            self._log.add(code, entry.span, message)
        return condition

    def _without_event(self, entry: CaseEntry) -> str:
        """Return the guard without its operands on the event, for a place that is only reached after success."""
        return self._condition(entry._replace(guard=_drop_in_text(entry.guard)), ReadAt.AFTER)

    # ---- rules of the task

    def _rules(self, entry: CaseEntry) -> list[Map]:
        """Return the rules of an entry; a call for the next page has a second one, for when no more are made."""
        then, directive, bound = Map([]), "continue", ""
        condition = self._condition(entry, ReadAt.RULE)
        for action in entry.actions:
            if action.key == "retry" and isinstance(action.value, Map):
                directive, bound = self._retry(then, action, action.value)
            elif action.key in ("fail", "do") and (action.key == "fail" or _text(action.value) == "fail"):
                directive = "fail"
            elif action.key == "result":
                self._log.add("R901", action.span, "`result` of a case has no counterpart; it is left in a comment")
                self._log.leave(self._step.name, "R901", action.span)
        self._writes(then, entry)
        if not then.pairs and directive == "continue":
            return []
        if directive == "continue" and entry.on_error:
            directive = "break"  # what follows in the step is for a tool that has succeeded
        then.pairs.insert(0, MapEntry("do", scalar(directive)))
        if directive in ("retry", "fail") and (entry.otherwise or not condition):
            return [else_rule(then)]
        if not _tests_for_failure(condition):
            condition = joined("and", SUCCESS, condition)
        made = [mapping(("when", template(joined("and", condition, bound))), ("then", then))]
        last = Map([MapEntry("do", scalar("continue"))])
        self._writes(last, entry)
        if bound and len(last.pairs) > 1:
            made.append(mapping(("when", template(condition)), ("then", last)))
        return made

    def _writes(self, then: Map, entry: CaseEntry) -> None:
        for action in entry.actions:
            if action.key == "collect" and isinstance(action.value, Map):
                self._collect(then, action, action.value)
            elif action.key in ("set", "set_ctx", "vars") and isinstance(action.value, Map):
                self._set(then, action, action.value)

    def _retry(self, then: Map, action: MapEntry, settings: Map) -> tuple[str, str]:
        """Return the directive of a `retry`, and the condition under which it may run again."""
        changing = [pair for pair in settings.pairs if pair.key not in RETRY_SETTINGS]
        if not changing:
            self._log.add("R602", action.span, "`retry` of a case is a policy rule")
            then.pairs.extend(pair for pair in retry_then(settings, self._log, action.span).pairs if pair.key != "do")
            return "retry", ""
        self._log.add("R603", action.span, "`retry` with other inputs is a jump to the task")
        task = self._main_task()
        if task is None:
            return "continue", ""
        label = self._main_label(task)
        scope, prefix = ("iter", "") if self._step.has_loop else ("ctx", f"{self._step.name}_")
        first = Map([])
        for pair in changing:
            self._rename(pair.value, NameScope(self._facts, ReadAt.RULE, self._step, self._step.last))
            inputs = pair.value if isinstance(pair.value, Map) else None
            holder = task.nested(pair.key) if inputs is not None else task
            for value in inputs.pairs if inputs is not None else [pair]:
                next_value = template(f"{scope}.{prefix}{value.key}")
                given = holder.get(value.key)
                if not isinstance(given, Leaf) or given.value != next_value.value:
                    first.put(f"{prefix}{value.key}", given or scalar(""))
                    holder.put(value.key, next_value)
                then.nested(f"set_{scope}").put(f"{prefix}{value.key}", value.value)
        bound, calls = attempts_of(settings), f"{prefix}calls"
        if bound:
            first.put(calls, scalar(1))
            then.nested(f"set_{scope}").put(calls, template(f"{scope}.{calls} + 1"))
        start = mapping(("do", "continue"), (f"set_{scope}", first))
        policy = mapping(("policy", mapping(("rules", sequence(else_rule(start))))))
        if first.pairs:
            insert_first(self._step.body, f"{label}_start", mapping(("kind", "noop"), ("spec", policy)))
        then.put("to", scalar(label))
        return "jump", f"{scope}.{calls} < {bound}" if bound else ""

    def _main_task(self) -> Map | None:
        return self._step.tasks[0].body if self._step.tasks else None

    def _main_label(self, task: Map) -> str:
        """Return the first task's label, given to it where it has none."""
        label = self._step.tasks[0].label
        if not label:
            label = free_label(self._step.body, "call")
            task.pairs.insert(0, MapEntry("name", scalar(label)))
        return label

    def _collect(self, then: Map, action: MapEntry, settings: Map) -> None:
        self._log.add("R604", action.span, "`collect` is `set_ctx`")
        key = settings.text("into").rpartition(".")[2] or f"{self._step.name}_collected"
        value = self._collected(settings)
        how = settings.text("strategy") or settings.text("mode") or "extend"
        if how in ("replace", "set"):
            new = value
        elif self._step.is_parallel:
            reducer = "append" if how == "append" else "extend"
            self._step.body.nested("loop", "spec", "policy", "reducers").put(key, scalar(reducer))
            new = value
        else:
            new = f"(ctx.{key} | default([])) + " + (f"[{value}]" if how == "append" else f"({value} | default([]))")
        then.nested("set_ctx").put(key, template(new))

    def _collected(self, settings: Map) -> str:
        scope = NameScope(self._facts, ReadAt.RULE, self._step, self._step.last)
        source, path = settings.text("from"), settings.text("path")
        text = source or path
        expression = expression_in(text) if "{{" in text else text
        new = expression_in(renamed_text(f"{{{{ {expression} }}}}", scope)) if expression else None
        if not source or (new == expression and not str(expression).startswith("outcome")):
            new = f"outcome.result.{expression}" if expression else "outcome.result"
        return f"{new}.{path}" if source and path else str(new)

    def _set(self, then: Map, action: MapEntry, values: Map) -> None:
        self._log.add("R605", action.span, "`set` of a case is `set_ctx`")
        self._rename(values, NameScope(self._facts, ReadAt.RULE, self._step, self._step.last))
        for entry in values.pairs:
            scope, _, name = entry.key.rpartition(".")
            then.nested("set_iter" if scope == "iter" else "set_ctx").put(name, entry.value)

    def _add_rules(self, rules: list[Map], source: MapEntry) -> None:
        task = self._main_task()
        if not rules or task is None:
            return
        known = policy_rules(task)
        known.items[:0] = [SeqItem(rule) for rule in rules]
        known.items.sort(key=lambda item: isinstance(item.value, Map) and item.value.pair("else") is not None)
        if complete(known):
            self._log.add("R609", source.span, "an error that no entry handled failed the step: a rule retries it")

    # ---- tasks of an entry

    def _tasks(self, entry: CaseEntry) -> list[tuple[str, Map]]:
        found: list[tuple[str, Map]] = []
        for action in entry.actions:
            value = action.value
            if action.key == "pipe" and isinstance(value, Seq):
                found += [
                    (label, body) for item in value.values if isinstance(item, Map) for label, body in _named(item)
                ]
            elif action.key == "tool" and isinstance(value, Map):
                found.append(("", value))
            elif action.key not in _ACTIONS and isinstance(value, Map) and (value.pair("tool") or value.pair("kind")):
                found.append((action.key, value))
            elif action.key == "finally" and not self._step.body.pair("finally"):
                self._log.add("R902", action.span, "`finally` has no counterpart")
                self._step.body.pairs.append(action)
        catch = next((action.value for action in entry.actions if action.key == "catch"), None)
        for label, body in found:
            shape_task(body, self._log)
            self._rename(body, NameScope(self._facts, ReadAt.AFTER, self._step, self._step.last))
            if catch is not None:
                catch_rules(body, label, catch, self._log)
        return found

    def _branch(self, entry: CaseEntry, tasks: list[tuple[str, Map]], entries: list[CaseEntry]) -> list[Map]:
        """Return the tasks as entries of the step's list: in a branch of `choose`, unless they always run."""
        piped = any(action.key == "pipe" for action in entry.actions)
        self._log.add("R608" if piped else "R606", tasks[0][1].span, "tasks of a case run after the tool")
        alone = self._main_task() is None
        chained = piped and any(path[0] == "_prev" for _, body in tasks[1:] for path in reads(body))
        if not alone and not chained:
            for _, body in tasks:
                keep_result(body)
        made = [labelled(label or free_label(self._step.body, "then"), body) for label, body in tasks]
        others = [other for other in entries if entry.otherwise and not other.otherwise and not other.on_error]
        found = [self._without_event(other) for other in others or [entry]]
        condition = joined("and", *(negated(each) if others else each for each in found if each))
        if alone and (_ENTERING.search(entry.guard) or not condition):
            return made
        if not condition:
            return made
        branch = mapping(("when", template(condition)), ("then", sequence(*made)))
        return [mapping(("choose", sequence(branch)))]

    def _add_branches(self, branches: list[Map]) -> None:
        if branches:
            task_list(self._step.body).items.extend(SeqItem(branch) for branch in branches)

    def _step_on_error(self, entry: CaseEntry, tasks: list[tuple[str, Map]], leads: list[MapEntry]) -> list[CaseRoute]:
        if self._step.has_loop:
            self._log.add("R912", tasks[0][1].span, "tasks after an error of one iteration")
            return []
        self._log.add("R607", tasks[0][1].span, "tasks after an error are a step of their own")
        name = free_step(self._facts.root, f"{self._step.name}_on_error")
        made = mapping(
            ("step", name), ("tool", sequence(*(labelled(label or "handle", body) for label, body in tasks)))
        )
        after = step_facts(made)
        onward = [arc for lead in leads for arc in self._targets(lead, entry)]
        if onward:
            made.put("next", router(RouteRewriter(after, self._log), [CaseRoute("", onward)], self._log, leads[0]))
        insert_step(self._facts.root, self._step.body, made)
        arc = mapping(("step", name), ("args", mapping(("error", template("event.error")))))
        return [CaseRoute(self._condition(entry, ReadAt.ARC), [arc])]

    # ---- routing

    def _route(self, entry: CaseEntry, leads: list[MapEntry]) -> list[CaseRoute]:
        if not leads:
            return []
        arcs = [arc for lead in leads for arc in self._targets(lead, entry)]
        for lead in leads:
            self._log.add("R601", lead.span, "`case` that leads to a step is an arc")
        return [CaseRoute("" if entry.otherwise else self._condition(entry, ReadAt.ARC), arcs, entry.otherwise)]

    def _targets(self, lead: MapEntry, entry: CaseEntry) -> list[Map]:
        found = targets(lead.value, self._log)
        given = next((action.value for action in entry.actions if action.key in ("args", "input", "with")), None)
        for arc in found:
            if isinstance(given, Map) and not arc.pair("args"):
                arc.put("args", given)
            self._rename(arc, NameScope(self._facts, ReadAt.ARC, self._step))
        return found

    def _add_routes(self, routes: list[CaseRoute], source: MapEntry) -> None:
        if not routes:
            return
        routes.sort(key=lambda route: route.otherwise)
        made = router(self._routes, routes, self._log, source)
        known = self._step.body.map("next")
        later = known.seq("arcs") if known else None
        if known is None or later is None:
            self._step.body.put("next", made)
            return
        arcs = made.seq("arcs")
        spec = made.pair("spec")
        if spec and not known.pair("spec"):
            known.pairs.insert(0, spec)
            for arc in later.values:
                guard = arc.leaf("when") if isinstance(arc, Map) else None
                if guard is not None:
                    wrap(guard, joined("and", *(negated(route.condition) for route in routes if route.condition)))
        later.items[:0] = arcs.items if arcs else []


_ACTIONS = frozenset(
    {"next", "step", "retry", "collect", "set", "set_ctx", "vars", "result", "pipe", "catch", "finally", "tool", "args"}
    | {"fail", "do", "input", "with"}
)


def _actions(then: Draft) -> Iterator[MapEntry]:
    """Yield the actions of a `then`: a mapping, a list of mappings, or the name of a step."""
    if isinstance(then, Seq):
        for value in then.values:
            yield from _actions(value)
    elif isinstance(then, Leaf):
        if isinstance(then.value, str):
            yield MapEntry("step", then)
    elif then.pair("step") and then.leaf("step"):
        rest = [pair for pair in then.pairs if pair.key in ("step", "args", "input", "with", "when", "spec")]
        yield MapEntry("step", Map(rest))
        yield from (pair for pair in then.pairs if pair not in rest)
    else:
        yield from then.pairs


def _tests_for_failure(condition: str) -> bool:
    """Return whether a condition on an outcome distinguishes success from failure itself."""
    return any(
        path[0] == "outcome" and path[1:2] != ("result",) for path in paths_read(f"{{{{ {condition or 'true'} }}}}")
    )


def _named(entry: Map) -> Iterator[tuple[str, Map]]:
    first = entry.pairs[0]
    if len(entry.pairs) == 1 and isinstance(first.value, Map) and first.key != "tool":
        yield first.key, first.value
    else:
        name = entry.remove("name")
        yield (name.value.text if name and isinstance(name.value, Leaf) else ""), entry


def _text(node: Draft) -> str:
    return node.text if isinstance(node, Leaf) else ""


def catch_rules(body: Map, label: str, catch: Draft, log: RewriteLog) -> None:
    """Write the conditions of a `catch` as rules of one task."""
    conditions = catch.get("cond") if isinstance(catch, Map) else catch
    rules = policy_rules(body)
    for condition in conditions.values if isinstance(conditions, Seq) else ():
        if not isinstance(condition, Map):
            continue
        guard = condition.leaf("when") or condition.leaf("expr")
        text = guard.text if guard else ""
        does = condition.map("else") or condition
        does = does.map("then") or does
        if re.search(rf"_task\s*==\s*(?!['\"]{re.escape(label)}['\"])['\"]", text):
            continue  # about another task
        expression = expression_in(renamed_text(text, _Caught())) if text else ""
        then = Map([_copy(pair) for pair in does.pairs if pair.key not in ("when", "expr")], flow=True)
        origin = then.pair("from")
        if origin and then.text("do") == "retry" and _text(origin.value) != label:
            then.put("do", scalar("jump"))
            origin.key = "to"
        elif origin:
            then.pairs.remove(origin)
        log.add("R411", condition.span, "a condition of `catch` is a policy rule")
        rules.items.append(SeqItem(mapping(("when", template(joined("and", ERROR, expression or ""))), ("then", then))))
    complete(rules)


def _copy(pair: MapEntry) -> MapEntry:
    value = pair.value
    return MapEntry(pair.key, Leaf(value.raw, value.value, value.source) if isinstance(value, Leaf) else value)


class _Caught:
    """Names inside `catch`: the error is the outcome's."""

    def path(self, path: tuple[str, ...]) -> tuple[int, str] | None:
        if path[0] in ("_err", "error"):
            return 1, "outcome.error"
        return None

    def constant(self, path: tuple[str, ...], value: str) -> str:
        return value


def _drop_in_text(guard: str) -> str:
    expression = expression_in(guard)
    return f"{{{{ {_drop_operands(expression)} }}}}" if expression and _drop_operands(expression) else ""


def _drop_operands(expression: str) -> str:
    """Return a condition without the operands that test the event's name."""
    tree = parse_template(f"{{{{ {expression} }}}}")
    part = tree.parts[0] if tree.parts else None
    whole = part.expression if isinstance(part, t.Output) else None
    operands = whole.operands if isinstance(whole, t.And) else (whole,) if whole else ()
    texts = [tree.text[operand.span.start : operand.span.end] for operand in operands]
    return joined("and", *(text for text in texts if not _EVENTS.search(text)))


def step_catch(step: StepFacts, log: RewriteLog) -> None:
    """A step's `catch` and `finally` beside a pipeline."""
    catch = step.body.remove("catch")
    if catch:
        for task in step.tasks:
            catch_rules(task.body, task.label, catch.value, log)
    final = step.body.pair("finally")
    if final:
        log.add("R902", final.span, "`finally` has no counterpart")
