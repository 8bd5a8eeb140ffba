"""Turns what a task did with its outcome into policy rules: `eval`, `retry`, `set`, and rules in other shapes."""

from __future__ import annotations

import re

from noetlc.migrate.constructs import RewriteLog
from noetlc.migrate.document import (
    Draft,
    Leaf,
    Map,
    MapEntry,
    Seq,
    SeqItem,
    inherited,
    mapping,
    scalar,
    sequence,
    split_layout,
    template,
)
from noetlc.migrate.facts import PlaybookFacts, StepFacts, TaskFacts
from noetlc.migrate.shapes import else_rule, error_rule, free_label, labelled, spec_of, task_list
from noetlc.migrate.templates import expression_in, joined
from noetlc.syntax import ast
from noetlc.syntax.span import Span
from noetlc.syntax.tree import attributes

ERROR = "outcome.status == 'error'"
SUCCESS = "outcome.status == 'ok'"
_DIGITS = re.compile(r"(\d+)\D")
_PATCHES = frozenset({"set_ctx", "set_iter", "set_vars", "set_shared", "set_prev", "set"})
_DIRECTIVE_KEYS = _PATCHES.union(map(ast.yaml_key, attributes(ast.Then)))
_ATTEMPTS = ("max_attempts", "attempts", "count")
RETRY_SETTINGS = frozenset(
    {*_ATTEMPTS, "initial_delay", "delay", "delay_seconds", "backoff_multiplier", "multiplier"}
    | {"backoff", "backoff_factor", "max_delay", "jitter", "when", "max_pages"}
)
"""What a `retry` of another dialect may contain, besides other inputs of its task."""
_REDUCERS = frozenset({"sum", "min", "max", "count", "any", "all", "first", "last", "append", "extend", "merge"})
_REDUCER_WORDS = {"add": "sum", "increment": "sum", "incr": "sum", "concat": "extend", "set": "last", "replace": "last"}


class PolicyRewriter:
    """Rewrites the policies of one step's tasks."""

    def __init__(self, facts: PlaybookFacts, step: StepFacts, log: RewriteLog) -> None:
        self._facts = facts
        self._step = step
        self._log = log

    def rewrite(self, task: TaskFacts) -> None:
        body = task.body
        evaluated = body.pair("eval")
        if evaluated and isinstance(evaluated.value, Seq):
            self._eval(body, evaluated, evaluated.value)
        elif evaluated and isinstance(evaluated.value, Leaf) and evaluated.value.is_alias:
            self._log.add("R401", evaluated.span, "`eval` is `spec.policy.rules`; the rules stand at the anchor")
            self._as_rules(body, evaluated)
        rules = rules_of(body)
        if rules is not None:
            for item in list(rules.items):
                if isinstance(item.value, Map):
                    self._rule(item.value)
        self._retry(body)
        self._task_set(task)
        if rules is not None:
            self._set_prev(task, rules)

    def _eval(self, body: Map, pair: MapEntry, rules: Seq) -> None:
        self._log.add("R401", pair.span, "`eval` is `spec.policy.rules`")
        self._as_rules(body, pair)
        for item in rules.items:
            if isinstance(item.value, Map):
                self._entry(item.value)
        rules.items.sort(key=lambda item: isinstance(item.value, Map) and item.value.pair("else") is not None)
        if complete(rules):
            self._log.add("R402", pair.span, "an error that no rule matched failed the task: a rule retries it")

    def _as_rules(self, body: Map, pair: MapEntry) -> None:
        """Put the value of `eval` under `spec.policy.rules`."""
        at = body.pairs.index(pair)
        body.pairs.remove(pair)
        rules = MapEntry("rules", pair.value, pair.layout)
        if not body.pair("spec"):
            outer, rules.layout = split_layout(pair.layout)
            spec = inherited(body, "spec") or Map([], flow=body.flow)
            body.pairs.insert(at, MapEntry("spec", spec, outer))
        spec_of(body).nested("policy").pairs.append(rules)

    def _entry(self, entry: Map) -> None:
        """`{expr, do, …}` becomes `{when, then: {do, …}}`."""
        condition = entry.pair("expr")
        if condition and not entry.pair("when"):
            condition.key = "when"
        if not entry.pair("when") and not entry.pair("else"):
            then = entry.map("then") or Map(list(entry.pairs), flow=entry.flow)
            entry.pairs = [MapEntry("else", mapping(("then", then), flow=entry.flow))]

    # ---- rules

    def _rule(self, rule: Map) -> None:
        """Bring a rule to `{when, then}` or `{else: {then}}`."""
        otherwise = rule.pair("else")
        if otherwise:
            self._else(rule, otherwise)
            return
        condition = rule.pair("expr")
        if condition and not rule.pair("when"):
            self._log.add("R401", condition.span, "`expr` is `when`")
            condition.key = "when"
        rest = [pair for pair in rule.pairs if pair.key in _DIRECTIVE_KEYS]
        then = rule.map("then")
        if rest:
            if then is None:
                if rule.pair("do"):
                    self._log.add("R408", rest[0].span, "what a rule does stands under `then`")
                then = Map([], flow=rule.flow)
                rule.put("then", then)
            then.pairs.extend(rest)
            rule.pairs = [pair for pair in rule.pairs if pair not in rest]
        guard = rule.leaf("when")
        if guard is not None:
            as_template(guard, self._log)
        if then is not None:
            self._then(then)

    def _else(self, rule: Map, otherwise: MapEntry) -> None:
        rest = [pair for pair in rule.pairs if pair is not otherwise]
        body = otherwise.value
        if not isinstance(body, Map):
            body = Map([], flow=rule.flow)
        if rest:  # `- else:` with what it does beside it
            body = Map([*body.pairs, *rest], flow=rule.flow)
            rule.pairs = [otherwise]
            otherwise.value = body
        then = body.map("then")
        if then is None:
            self._log.add("R408", otherwise.span, "what `else` does stands under `then`")
            then = body
            otherwise.value = mapping(("then", then), flow=then.flow)
        self._then(then)

    def _then(self, then: Map) -> None:
        self._patches(then)
        if not then.pair("do"):
            self._log.add("R409", then.span, "a rule without `do` continues")
            then.pairs.insert(0, MapEntry("do", scalar("continue")))
        backoff = then.pair("backoff")
        if backoff and isinstance(backoff.value, Leaf) and backoff.value.text in ("fixed", "constant"):
            self._log.add("R403", backoff.span, "`backoff: fixed` is `none`")
            backoff.value = Leaf("none", "none")
        attempts = then.pair("attempts")
        if attempts and isinstance(attempts.value, Leaf) and isinstance(attempts.value.value, str):
            found = _DIGITS.match(attempts.value.text)
            if found:
                self._log.add("R410", attempts.span, f"`attempts: {attempts.value.text}` is read as {found[1]}")
                attempts.value = Leaf(found[1], int(found[1]))

    def _patches(self, then: Map) -> None:
        for word in ("set_vars", "set"):
            pair = then.remove(word)
            if pair and isinstance(pair.value, Map):
                self._log.add(
                    "R404" if word == "set_vars" else "R801", pair.span, f"`{word}` is `set_ctx` or `set_iter`"
                )
                self._scoped(then, pair.value, pair)
        shared = then.remove("set_shared")
        if shared and isinstance(shared.value, Map):
            self._shared(then, shared, shared.value)

    def _scoped(self, then: Map, patch: Map, source: MapEntry) -> None:
        """Write each key to the scope that stores it; a patch of one scope keeps its layout."""
        targets = [self._target(pair.key) for pair in patch.pairs]
        scopes = {scope for scope, _ in targets}
        for pair, (_, name) in zip(patch.pairs, targets, strict=True):
            pair.key = name
        if len(scopes) == 1 and not then.pair(word := f"set_{scopes.pop()}"):
            source.key = word
            then.pairs.append(source)
            return
        for pair, (scope, _) in zip(patch.pairs, targets, strict=True):
            then.nested(f"set_{scope}").pairs.append(pair)

    def _target(self, key: str) -> tuple[str, str]:
        scope, _, name = key.rpartition(".")
        if scope in ("ctx", "iter"):
            return scope, name
        if scope in ("", "vars"):
            planned = self._facts.vars.by_step.get((self._step.name, name))
            if planned:
                found_scope, _, found = planned.partition(".")
                return found_scope, found
            if scope == "" and self._step.has_loop and not self._facts.vars.initial & {name}:
                return "iter", name
        return "ctx", name

    def _shared(self, then: Map, pair: MapEntry, patch: Map) -> None:
        """Writes with a reducer become `set_ctx` and an entry of the loop's reducers."""
        for entry in list(patch.pairs):
            reducer, value = _reducer(entry.value)
            if not self._step.is_parallel:
                entry.value = _sequential(entry.key, reducer, value)
            elif reducer:
                self._reducers().put(entry.key, scalar(reducer))
                entry.value = value
            else:
                self._log.add("R906", entry.span, f"`set_shared` of `{entry.key}` has no reducer; `last` was assumed")
                self._reducers().put(entry.key, scalar("last"))
        self._log.add("R405", pair.span, "`set_shared` is `set_ctx` with a reducer")
        known = then.map("set_ctx")
        if known:
            known.pairs.extend(patch.pairs)
        else:
            pair.key = "set_ctx"
            then.pairs.append(pair)

    def _reducers(self) -> Map:
        return self._step.body.nested("loop", "spec", "policy", "reducers")

    def parallel_writes(self) -> None:
        """Give each `ctx` key that a parallel loop writes a reducer, as the last write counted."""
        if not self._step.is_parallel:
            return
        for task in self._step.tasks:
            rules = rules_of(task.body)
            for rule in rules.values if rules else ():
                then = then_of(rule) if isinstance(rule, Map) else None
                written = then.map("set_ctx") if then else None
                for pair in written.pairs if written else ():
                    self._reduce(pair)

    def _reduce(self, pair: MapEntry) -> None:
        if not self._reducers().pair(pair.key):
            message = f"`{pair.key}` is written by parallel iterations: the last item's value counts"
            self._log.add("R406", pair.span, message)
            self._reducers().put(pair.key, scalar("last"))

    # ---- retry, set and set_prev of a task

    def _retry(self, body: Map) -> None:
        pair = body.pair("retry")
        if pair is None:
            return
        if isinstance(pair.value, Leaf) and isinstance(pair.value.value, bool | int):
            settings = mapping(("max_attempts", int(pair.value.value) or 1)) if pair.value.value else mapping()
        elif isinstance(pair.value, Map):
            settings = pair.value
        else:
            return
        body.pairs.remove(pair)
        self._log.add("R303", pair.span, "`retry` is a policy rule")
        guard = settings.leaf("when") or settings.leaf("retry_when")
        condition = expression_in(guard.text) if guard else None
        for setting in settings.pairs:
            if setting.key not in RETRY_SETTINGS | {"retry_when"}:
                self._log.add("R917", setting.span, f"`{setting.key}` of `retry` has no counterpart")
                self._log.leave(self._step.name, "R917", setting.span)
        if not settings.pairs:
            return
        rules = policy_rules(body)
        then = retry_then(settings, self._log, pair.span)
        more = _attempts_left(then) if rules.items else ""
        rule = mapping(("when", template(joined("and", ERROR, more, condition or ""))), ("then", then))
        rules.items.insert(0, SeqItem(rule))
        complete(rules)

    def _task_set(self, task: TaskFacts) -> None:
        """`set` on a task writes names when the task has succeeded."""
        for word in ("set", "set_ctx", "set_iter"):
            pair = task.body.pair(word)
            if pair is not None and isinstance(pair.value, Map):
                scope = word.partition("_")[2]
                for entry in pair.value.pairs if scope else ():
                    entry.key = f"{scope}.{entry.key.rpartition('.')[2]}"
                self._log.add("R802", pair.span, f"`{word}` on a task is written by its policy")
                self._task_patch(task, pair, pair.value)

    def _task_patch(self, task: TaskFacts, pair: MapEntry, patch: Map) -> None:
        """Write the patch in every rule that a success can take; in a last one where there is none."""
        task.body.pairs.remove(pair)
        rules = policy_rules(task.body)
        if not any(isinstance(rule, Map) and rule.pair("else") for rule in rules.values):
            if not handles_errors(rules):
                rules.items.append(SeqItem(error_rule()))
            rules.items.append(SeqItem(else_rule(mapping(("do", "continue")))))
        thens = [then for rule in rules.values if isinstance(rule, Map) and (then := _success_of(rule))]
        for then in thens[:-1]:
            again = Map([MapEntry(entry.key, entry.value) for entry in patch.pairs], flow=patch.flow)
            self._scoped(then, again, MapEntry(pair.key, again))
        if thens:
            self._scoped(thens[-1], patch, pair)

    def _set_prev(self, task: TaskFacts, rules: Seq) -> None:
        """A value that replaces `_prev` is returned by a task of its own."""
        thens = [then for rule in rules.values if isinstance(rule, Map) and (then := then_of(rule))]
        if not any(then.pair("set_prev") for then in thens):
            return
        if any(then.pair("set_prev") and then.text("do") != "continue" for then in thens):
            self._log.add("R907", task.body.span, "`set_prev` with a directive other than `continue`")
            return
        scope = "iter" if self._step.has_loop else "ctx"
        key = f"{task.label or 'task'}_value"
        for then in thens:
            pair = then.remove("set_prev")
            if then.text("do") == "continue":
                then.nested(f"set_{scope}").put(key, pair.value if pair else template("outcome.result"))
        if not any(isinstance(rule, Map) and rule.pair("else") for rule in rules.values):
            rest = mapping(("do", "continue"), (f"set_{scope}", mapping((key, template("outcome.result")))))
            rules.items.append(SeqItem(else_rule(rest)))
        self._log.add("R407", task.body.span, "`set_prev` is a task that returns the value")
        body = mapping(
            ("kind", "python"), ("args", mapping(("value", template(f"{scope}.{key}")))), ("code", "result = value")
        )
        tasks = task_list(self._step.body)
        at = next((n for n, item in enumerate(tasks.items) if _holds(item.value, task.body)), len(tasks.items) - 1)
        tasks.items.insert(at + 1, SeqItem(labelled(free_label(self._step.body, key), body)))


def _holds(entry: Draft, body: Map) -> bool:
    return entry is body or (isinstance(entry, Map) and any(pair.value is body for pair in entry.pairs))


# ---- parts of policies


def rules_of(body: Map) -> Seq | None:
    spec = body.map("spec")
    policy = spec.map("policy") if spec else None
    return policy.seq("rules") if policy else None


def policy_rules(body: Map) -> Seq:
    """Return a task's rules, made where there are none."""
    found = rules_of(body)
    if found is None:
        found = sequence()
        spec_of(body).nested("policy").put("rules", found)
    return found


def then_of(rule: Map) -> Map | None:
    otherwise = rule.map("else")
    return (otherwise or rule).map("then")


def _success_of(rule: Map) -> Map | None:
    """Return what a rule does after a success; None for a rule that is for errors, or that does not continue."""
    guard, then = rule.leaf("when"), then_of(rule)
    for_errors = guard is not None and ERROR in guard.value_text
    return then if then and not for_errors and then.text("do") in ("", "continue", "jump", "break", "skip") else None


def handles_errors(rules: Seq) -> bool:
    """Return whether the rules decide about every error."""
    for rule in rules.values:
        if isinstance(rule, Map):
            guard = rule.leaf("when")
            if rule.pair("else") or (guard and expression_in(guard.value_text) == ERROR):
                return True
    return False


def complete(rules: Seq) -> bool:
    """End rules as the older language did: what no rule matched fails if it is an error, and continues if not.

    Return whether a rule for errors was needed.
    """
    needed = not handles_errors(rules)
    if needed:
        rules.items.append(SeqItem(error_rule()))
    if not any(isinstance(rule, Map) and rule.pair("else") for rule in rules.values):
        rules.items.append(SeqItem(else_rule(mapping(("do", "continue"), flow=True))))
    return needed


def _attempts_left(then: Map) -> str:
    """Return the condition under which a tool tried again by itself; the last outcome is for the other rules."""
    attempts = then.leaf("attempts")
    written = attempts.value_text if attempts else "3"
    return f"_attempt < {expression_in(written) or written}"


def retry_then(settings: Map, log: RewriteLog, span: Span | None) -> Map:
    """Return the `then` of a retry, from the settings of another dialect."""
    then = mapping(("do", "retry"), flow=True)
    then.put("attempts", _first(settings, *_ATTEMPTS) or scalar(3))
    delay = _first(settings, "initial_delay", "delay", "delay_seconds")
    backoff, computed = _backoff(settings, delay)
    then.put("backoff", Leaf(backoff, backoff))
    if computed:
        log.add("R304", span, "the delay is computed from `_attempt`")
        then.put("delay", template(computed))
    elif delay is not None:
        then.put("delay", delay)
    if settings.pair("jitter"):
        log.add("R305", span, "`jitter` is removed")
    return then


def attempts_of(settings: Map) -> str:
    """Return how often a retry may run its task, as an expression; empty where it does not specify."""
    found = _first(settings, *_ATTEMPTS, "max_pages")
    return _number(found) if isinstance(found, Leaf) else ""


def _first(settings: Map, *names: str) -> Draft | None:
    return next((found for name in names if (found := settings.get(name)) is not None), None)


def _backoff(settings: Map, delay: Draft | None) -> tuple[str, str]:
    """Return the backoff, and the delay as an expression where no backoff of v10 gives it."""
    named = settings.text("backoff")
    if named == "linear":
        return "linear", ""
    factor = _first(settings, "backoff_multiplier", "multiplier", "backoff_factor")
    value = factor.value if isinstance(factor, Leaf) else None
    if named == "exponential" and factor is None:
        value = 2
    grows = value is not None and value not in (0, 1)
    most = _first(settings, "max_delay")
    if not isinstance(delay, Leaf) or not grows or (value == 2 and most is None):
        return ("exponential" if grows else "none"), ""
    waited = f"{_number(delay)} * {_number(factor) if isinstance(factor, Leaf) else 2} ** (_attempt - 1)"
    return "none", f"[{waited}, {_number(most)}] | min" if isinstance(most, Leaf) else waited


def _number(leaf: Leaf) -> str:
    inner = expression_in(leaf.value_text)
    return f"({inner})" if inner else leaf.value_text


def as_template(guard: Leaf, log: RewriteLog) -> None:
    """A condition without marks becomes a template."""
    if isinstance(guard.value, str) and "{{" not in guard.value and "{%" not in guard.value and guard.value.strip():
        log.add("R709", guard.span, "a condition is a template")
        made = template(guard.value.strip())
        guard.raw, guard.value = made.raw, made.value


def _reducer(value: Draft) -> tuple[str, Draft]:
    """Read `{sum: x}` or `{op: sum, value: x}`; any other value has no reducer."""
    if isinstance(value, Map):
        operation = value.text("op") or value.text("reducer") or value.text("mode")
        operation = _REDUCER_WORDS.get(operation, operation)
        inner = value.get("value")
        if operation in _REDUCERS and inner is not None:
            return operation, inner
        if len(value.pairs) == 1:
            word = _REDUCER_WORDS.get(value.pairs[0].key, value.pairs[0].key)
            if word in _REDUCERS:
                return word, value.pairs[0].value
    return "", value


def _sequential(key: str, reducer: str, value: Draft) -> Draft:
    """Return the value that one iteration after the other writes in place of a reducer."""
    if not isinstance(value, Leaf):
        return value
    text = str(value.value)
    new = expression_in(text) or (text if not isinstance(value.value, str) else f"'{text}'")
    forms = {
        "sum": f"(ctx.{key} | default(0)) + ({new})",
        "count": f"(ctx.{key} | default(0)) + 1",
        "append": f"(ctx.{key} | default([])) + [{new}]",
        "extend": f"(ctx.{key} | default([])) + ({new})",
        "max": f"[ctx.{key} | default({new}), {new}] | max",
        "min": f"[ctx.{key} | default({new}), {new}] | min",
        "first": f"ctx.{key} | default({new})",
    }
    return template(forms[reducer]) if reducer in forms else value
