"""A reference interpreter of the older dialects: small, slow, and written from their documents, not from `migrate`.

It runs a playbook with scripted tools and returns its path: the steps, the calls of tools and the status.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any, NamedTuple

import jinja2


class _DataFirst(jinja2.Environment):
    """`a.items` is a field before it is a method."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self.getitem(obj, attribute)


_ENVIRONMENT = _DataFirst(undefined=jinja2.ChainableUndefined)
_STEPS_MAX = 50
_DONE, _FAILED = "done", "failed"


class Path(NamedTuple):
    """What a run did."""

    steps: list[str]
    calls: list[str]
    """`step/task` for each call of a tool, retries included."""
    status: str
    ctx: dict[str, Any]


def run_older(playbook: dict[str, Any], given: dict[str, Any]) -> Path:
    return _Run(playbook, given).run()


class _Run:
    def __init__(self, playbook: dict[str, Any], given: dict[str, Any]) -> None:
        self.steps = {_name(step): step for step in playbook["workflow"]}
        self.first = "start" if "start" in self.steps else next(iter(self.steps))
        self.workload = {**(playbook.get("workload") or {}), **given.get("payload", {})}
        self.root_vars = dict(playbook.get("vars") or {})
        self.ctx: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        self.answers = given.get("tools", {})
        self.requested: dict[str, int] = defaultdict(int)
        self.path: list[str] = []
        self.calls: list[str] = []
        self.failed = False
        self.pages = 0
        """Calls for a next page so far: the case at hand has one step that pages."""

    def run(self) -> Path:
        tokens: list[tuple[str, dict[str, Any]]] = [(self.first, {})]
        while tokens and len(self.path) < _STEPS_MAX:
            name, args = tokens.pop(0)
            step = self.steps[name]
            if not self.holds(step.get("when", True), self.scope(args)):
                continue  # the guard is evaluated when the token arrives
            tokens += self.run_step(name, step, args)
        return Path(self.path, self.calls, "failed" if self.failed else "success", self.ctx)

    # ---- values

    def scope(self, args: dict[str, Any], **more: Any) -> dict[str, Any]:
        shared = {**self.root_vars, **self.ctx}
        names = {"workload": self.workload, "ctx": self.ctx, "args": args, "token": {"args": args}, "vars": shared}
        return {**self.results, **self.workload, **shared, **args, **names, **more}

    def value(self, node: Any, scope: dict[str, Any]) -> Any:
        if isinstance(node, dict):
            return {key: self.value(inner, scope) for key, inner in node.items()}
        if isinstance(node, list):
            return [self.value(inner, scope) for inner in node]
        if isinstance(node, str) and "{{" in node:
            text = node.strip()
            if text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1:
                return _ENVIRONMENT.compile_expression(text[2:-2], undefined_to_none=False)(**scope)
            return _ENVIRONMENT.from_string(node).render(**scope)
        return node

    def holds(self, guard: Any, scope: dict[str, Any]) -> bool:
        if isinstance(guard, str) and "{{" not in guard:
            guard = f"{{{{ {guard} }}}}"
        return bool(self.value(guard, scope))

    # ---- steps

    def run_step(self, name: str, step: dict[str, Any], args: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        self.path.append(name)
        tasks = _tasks(step)
        local: dict[str, Any] = {}
        loop = step.get("loop")
        if loop:
            items = self.value(loop.get("in", loop.get("collection")), self.scope(args))
            iterator = loop.get("iterator", loop.get("element"))
            ends = [
                self.pipeline(name, step, tasks, args, local, {iterator: item, "index": index})
                for index, item in enumerate(items)
            ]
            ended = next((end for end in ends if end[0] == _FAILED), (_DONE, [end[1] for end in ends], None))
        else:
            ended = self.pipeline(name, step, tasks, args, local, None)
        status, result, error = ended
        event = {"name": {_DONE: "loop.done" if loop else "step.done", _FAILED: "step.failed"}[status]}
        event |= {"result": result, "error": error, "status": "success" if status == _DONE else "error"}
        if status == _DONE:
            self.results[name] = result
        scope = self.scope(args, event=event, result=result, response=_wrapped(result), error=error)
        scope["vars"] = {**scope["vars"], **local}
        if status == _DONE:
            self.ctx.update(self.value(step.get("vars") or {}, scope))
            scope["vars"].update(self.ctx)
        return self.route(step, status, scope, args)

    def pipeline(
        self,
        name: str,
        step: dict[str, Any],
        tasks: list[tuple[str, dict[str, Any]]],
        args: dict[str, Any],
        local: dict[str, Any],
        iteration: dict[str, Any] | None,
    ) -> tuple[str, Any, Any]:
        """Run the tasks with a program counter; return how they ended, the result and the error."""
        at, previous, attempts = 0, None, 1
        scope = self.scope(args)
        iteration = dict(iteration) if iteration is not None else None
        while at < len(tasks):
            label, task = tasks[at]
            outcome = self.call(name, label, task, iteration)
            scope = self.scope(args, outcome=outcome, _prev=previous, _task=label, _attempt=attempts)
            scope["vars"] = {**scope["vars"], **local}
            if iteration is not None:
                scope = {**scope, **iteration, "iter": iteration}
            scope |= {"result": outcome["result"], "response": _wrapped(outcome["result"])}
            scope |= {"_err": outcome["error"]}
            directive = self.directive(step, task, outcome, scope)
            local.update(self.value(directive.get("set_vars") or {}, scope))
            self.ctx.update(self.value(directive.get("set_ctx") or {}, scope))
            self.share(directive.get("set_shared") or {}, scope)
            if iteration is not None:
                iteration.update(self.value(directive.get("set_iter") or {}, scope))
            do = directive["do"]
            if do == "retry" and attempts >= _number(directive.get("attempts", 3)):
                do = "fail"
            if do == "fail":
                self.case_tasks(name, step, "call.error", {**scope, "error": outcome["error"]})
                return _FAILED, None, outcome["error"]
            if do == "retry":
                attempts += 1
                continue
            attempts = 1
            if not task.get("_sink"):  # what is stored stays the result
                previous = self.value(directive["set_prev"], scope) if "set_prev" in directive else outcome["result"]
            if do == "break":
                break
            at = [known for known, _ in tasks].index(directive["to"]) if do == "jump" else at + 1
        result = {"result": previous, "response": _wrapped(previous)}
        error = self.case_tasks(name, step, "call.done", {**scope, **result})
        return (_FAILED, None, error) if error else (_DONE, previous, None)

    def case_tasks(self, name: str, step: dict[str, Any], event: str, scope: dict[str, Any]) -> dict[str, Any] | None:
        """Run the tasks of the `case` entries that hold after the step's own tool; return the error of one."""
        names = [event, "step.exit"] if event == "call.done" else [event]
        matched = event == "call.error"  # `else` is for a success
        for entry in step.get("case") or []:
            for guard, then in _branches(entry):
                if "step.enter" in str(guard):
                    continue
                scopes = [{**scope, "event": {"name": each}} for each in names]
                if not matched if guard is None else any(self.holds(guard, each) for each in scopes):
                    matched = True
                    for label, task in _case_tasks(then):
                        outcome = self.call(name, label, task, None)
                        if outcome["status"] == "error":
                            error: dict[str, Any] = outcome["error"]
                            return error
        return None

    def share(self, patch: dict[str, Any], scope: dict[str, Any]) -> None:
        for key, write in patch.items():
            if not isinstance(write, dict):
                write = {"set": write}
            operation = write.get("op") or next(iter(write))
            value = self.value(write["value"] if "op" in write else write[operation], scope)
            if operation == "set":
                self.ctx[key] = value
            elif operation == "sum":
                self.ctx[key] = self.ctx.get(key, 0) + value
            else:
                self.ctx[key] = [*self.ctx.get(key, []), value]

    def directive(
        self, step: dict[str, Any], task: dict[str, Any], outcome: dict[str, Any], scope: dict[str, Any]
    ) -> dict[str, Any]:
        """Top-down, first match wins; `else` when nothing matched; by default an error fails."""
        own = task.get("retry") or {}
        code = (outcome.get("http") or {}).get("status")
        wanted = self.holds(own.get("retry_when", True), {**scope, "status_code": code})
        if outcome["status"] == "error" and wanted and scope["_attempt"] < own.get("max_attempts", 1):
            return {"do": "retry", "attempts": own["max_attempts"]}  # the tool itself, before any rule
        rules = task.get("eval") or []
        for rule in rules:
            if "expr" in rule and self.holds(rule["expr"], scope):
                return {"do": "continue", **rule}
        for rule in rules:
            if "else" in rule:
                return {"do": "continue", **rule["else"]}
        found = self.case_directive(step, task, outcome, scope)
        if found:
            return found
        return {"do": "fail" if outcome["status"] == "error" else "continue"}

    # ---- case

    def case_directive(
        self, step: dict[str, Any], task: dict[str, Any], outcome: dict[str, Any], scope: dict[str, Any]
    ) -> dict[str, Any] | None:
        if task.get("_catch"):
            for condition in task["_catch"] if outcome["status"] == "error" else []:
                does: dict[str, Any] = condition.get("else", condition)
                if self.holds(condition.get("when", True), scope):
                    return does.get("then") or does
            return None
        name = "call.done" if outcome["status"] == "success" else "call.error"
        scope = {**scope, "event": {"name": name}, "error": outcome["error"]}
        for entry in step.get("case") or []:
            for guard, then in _branches(entry):
                acts = {key: value for key, value in then.items() if key in ("set", "retry", "collect", "fail")}
                if outcome["status"] == "error" and not _tests(guard) and not acts.keys() & {"retry", "fail"}:
                    continue
                if acts and (guard is None or self.holds(guard, scope)):
                    found = self.act(acts, task, scope)
                    handled = outcome["status"] == "error" and found["do"] == "continue"
                    return {"do": "break"} if handled else found  # what follows is for a tool that has succeeded
        return None

    def act(self, acts: dict[str, Any], task: dict[str, Any], scope: dict[str, Any]) -> dict[str, Any]:
        for key, value in self.value(acts.get("set") or {}, scope).items():
            self.ctx[key.removeprefix("ctx.")] = value
        collect = acts.get("collect")
        if collect:
            source = collect.get("from") or f"result.{collect['path']}"
            got = self.value(source if "{{" in source else f"{{{{ {source} }}}}", scope)
            single = (collect.get("strategy") or collect.get("mode")) == "append"
            self.ctx[collect["into"]] = self.ctx.get(collect["into"], []) + ([got] if single else got)
        if "fail" in acts:
            return {"do": "fail"}
        retry = acts.get("retry")
        if retry and "params" in retry:
            self.pages += 1
            more = self.pages < retry.get("max_attempts", _STEPS_MAX)
            return {"do": "jump", "to": task["_label"]} if more else {"do": "continue"}
        if retry:
            return {"do": "retry", "attempts": retry["max_attempts"]}
        return {"do": "continue"}

    # ---- routing

    def route(
        self, step: dict[str, Any], status: str, scope: dict[str, Any], args: dict[str, Any]
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return the tokens. A failed step goes only where a guard tests for failure."""
        taken = self.case_route(step, status, scope)
        if taken is not None:
            return self.tokens(taken, scope, args)
        arcs = step.get("next") or []
        arcs = arcs if isinstance(arcs, list) else [arcs]
        inclusive = (step.get("spec") or {}).get("next_mode") == "inclusive"
        found: list[tuple[str, dict[str, Any]]] = []
        for arc in arcs:
            guard, target = _arc(arc)
            if status == _FAILED and not _tests(guard):
                continue
            if guard is None or self.holds(guard, scope):
                found += self.tokens(target, scope, args)
                if not inclusive:
                    break
        if status == _FAILED and not found:
            self.failed = True
        return found

    def case_route(self, step: dict[str, Any], status: str, scope: dict[str, Any]) -> Any:
        """Return where the first entry of `case` that leads somewhere leads to; None if there is none."""
        for entry in step.get("case") or []:
            for guard, then in _branches(entry):
                if ("next" not in then and "step" not in then) or (status == _FAILED and not _tests(guard)):
                    continue
                names = ["call.error"] if status == _FAILED else ["call.done", "step.exit"]
                scopes = [
                    {**scope, "event": {**scope["event"], "name": name}} for name in (*names, scope["event"]["name"])
                ]
                if guard is None or any(self.holds(guard, each) for each in scopes):
                    return then.get("next", then)
        return None

    def tokens(self, target: Any, scope: dict[str, Any], args: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        if isinstance(target, list):
            return [token for one in target for token in self.tokens(one, scope, args)]
        if isinstance(target, str):
            return [(target, dict(args))]
        return [(target["step"], {**args, **self.value(target.get("args") or {}, scope)})]

    # ---- tools

    def call(self, step: str, label: str, task: dict[str, Any], iteration: dict[str, Any] | None) -> dict[str, Any]:
        keys = [f"{step}/{label}", label]
        if iteration is not None:
            keys = [f"{key}[{iteration['index']}]" for key in keys] + keys
        key = next((key for key in keys if key in self.answers), None)
        if key is None:
            return {"status": "success", "result": None, "error": None}
        self.calls.append(f"{step}/{label}")
        answer = self.answers[key]
        if isinstance(answer, list):
            answer = answer[min(self.requested[key], len(answer) - 1)]
            self.requested[key] += 1
        return _outcome(answer)


def _outcome(answer: str) -> dict[str, Any]:
    word, _, rest = answer.partition(" ")
    if word == "ok":
        return {"status": "success", "result": json.loads(rest), "error": None, "http": {}}
    if word == "http":
        code, _, body = rest.partition(" ")
        status, data = int(code), json.loads(body)
        http = {"status": status, "headers": {}}
        if status < 400:
            result = {"status": status, "status_code": status, "data": data}
            return {"status": "success", "result": result, "error": None, "http": http}
        return {"status": "error", "result": None, "error": {"kind": "http", "status": status}, "http": http}
    kind, _, message = rest.partition(" ")
    error = {"kind": kind, "message": message, "retryable": word == "retryable"}
    return {"status": "error", "result": None, "error": error, "http": {}, "pg": {"message": message}}


class _Wrapped(dict[str, Any]):
    """A result that may also be read under `data`, as the older tools gave it."""


def _wrapped(result: Any) -> Any:
    return _Wrapped({"data": result, **result}) if isinstance(result, dict) and "data" not in result else result


def _tests(guard: Any) -> bool:
    """Return whether a guard tests the event or the error: nothing else is for a failed step."""
    return re.search(r"\b(event\.(?!result)|error|_err)", str(guard or "")) is not None


def _number(value: Any) -> int:
    return value if isinstance(value, int) else int(re.match(r"\d+", value)[0])  # type: ignore[index]


def _name(step: dict[str, Any]) -> str:
    return str(step.get("step", step.get("name")))


def _tasks(step: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    tool = step.get("tool", step.get("pipe", step.get("type")))
    if isinstance(tool, str):
        tool = {"kind": tool}
    if isinstance(tool, dict):
        label = "call" if _pages(step) else "task_1"
        if tool["kind"] != "workbook":  # there it names the task of the workbook
            label = tool.get("name", label)
        found = [(label, {**tool, "_label": label})]
    else:
        found = [next(iter(entry.items())) for entry in tool or []]
    is_named = not isinstance(tool, dict)
    found = [one for label, task in found for one in ((label, task), *_sinks(task, f"{label}_" if is_named else ""))]
    found += _sinks(step, "")
    for entry in step.get("case") or []:
        for _, then in _branches(entry):
            if "pipe" in then and "step.enter" in entry["when"]:
                catch = (then.get("catch") or {}).get("cond") or [{"when": "{{ false }}"}]
                bodies = [one for task in then["pipe"] for one in task.items()]
                found += [(label, {**body["tool"], "_catch": catch}) for label, body in bodies]
    return found


def _sinks(holder: dict[str, Any], prefix: str) -> list[tuple[str, dict[str, Any]]]:
    blocks = {f"{prefix}{word}": holder[word] for word in ("sink", "save") if word in holder}
    return [(label, {**block.get("tool", block), "_sink": True}) for label, block in blocks.items()]


def _case_tasks(then: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the tasks of an entry that are to run after the step's own tool."""
    piped = [one for task in then.get("pipe") or [] for one in task.items()]
    named = [(key, value) for key, value in then.items() if isinstance(value, dict) and "tool" in value]
    return [(label, body["tool"]) for label, body in (*piped, *named)]


def _pages(step: dict[str, Any]) -> bool:
    thens = [then for entry in step.get("case") or [] for _, then in _branches(entry)]
    return any("params" in (then.get("retry") or {}) for then in thens)


def _branches(entry: dict[str, Any]) -> list[tuple[Any, dict[str, Any]]]:
    """Return guard and actions of an entry; the guard of an `else` is None."""
    found: list[tuple[Any, dict[str, Any]]] = []
    for guard, key in ((entry.get("when"), "then"), (None, "else")):
        if key in entry:
            parts = entry[key] if isinstance(entry[key], list) else [entry[key]]
            actions: dict[str, Any] = {}
            for part in parts:
                actions |= part if isinstance(part, dict) else {"step": part}
            found.append((guard, actions))
    return found


def _arc(arc: Any) -> tuple[Any, Any]:
    if isinstance(arc, str):
        return None, arc
    if "else" in arc:
        return None, arc["else"]
    if "then" in arc:
        return arc["when"], arc["then"]
    return arc.get("when"), arc
