"""Random playbooks: every construct of the language, in a size that a simulation runs in milliseconds.

A playbook is plain data, as its YAML would be read; guards and gates have a few fixed forms, so that the checker can
evaluate them by itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

Document = dict[str, Any]

SUCCEEDED = "{{ event.status == 'success' }}"
FAILED = "{{ event.status == 'error' }}"
ROUNDS = "{{ (args.round | default(0)) < 2 }}"
NEXT_ROUND = {"round": "{{ (args.round | default(0)) + 1 }}"}
GUARDS = ("", SUCCEEDED, FAILED)
"""Forms of a guard; empty: none. ROUNDS is only for arcs that lead back."""

RETRYABLE = "{{ outcome.error.retryable }}"
THREE = "{{ outcome.result == 3 }}"
INDEX = "{{ iter.index + 1 }}"
REDUCERS = ("sum", "max", "min", "count", "append", "last", "first")
SUGAR = frozenset({"choose", "while", "until"})
MAIN, CHILD = "sim/main", "sim/child"
SECRET_NAME = "api"

_STEPS_MAX = 5
_FAN_OUTS_MAX = 2
_RATE_SHARE = 0.25
_WORKBOOK_SHARE = 0.25
_UNGUARDED_SHARE = 0.15
_POOL_SHARE = 0.1
_DELAY_SHARE = 0.4
POOL = "special"
"""A pool that not every worker claims from."""
SHARED = "shared"
"""Name of the task of a workbook."""


def flag(name: str) -> str:
    """Return the form of a gate or guard that reads a flag of `ctx`."""
    return f"{{{{ ctx.{name} }}}}"


def random_playbooks(random: Random) -> list[Document]:
    """Return a main playbook and the one that it may run as a child."""
    has_secret = random.random() < 0.3
    child = _Playbook(random, CHILD, random.randint(1, 2), has_children=False, has_secret=has_secret).document()
    main = _Playbook(random, MAIN, random.randint(1, _STEPS_MAX), has_children=True, has_secret=has_secret).document()
    # From numbers of their own: all else of a seed stays what it was before there were these.
    more = Random(f"more {random.random()}")
    made = [main, child] if calls_child(main) else [main]
    for document in made:
        _limit_rates(document, more)
        if more.random() < _WORKBOOK_SHARE:
            _share_tasks(document, more)
        _place_and_delay(document, Random(f"place {more.random()}"))
    return made


def _place_and_delay(document: Document, random: Random) -> None:
    """Give some steps a pool and rounds of sugar a delay; let arcs without a guard follow successes only."""
    if random.random() < _UNGUARDED_SHARE:
        document["executor"]["spec"]["unguarded_arcs"] = "success"
    for step in document["workflow"]:
        if "tool" in step and random.random() < _POOL_SHARE:
            step.setdefault("spec", {})["pool"] = POOL
        for entry in step.get("tool", []):
            for sugar in (entry[name] for name in ("while", "until") if name in entry):
                if random.random() < _DELAY_SHARE:
                    sugar["delay"] = random.choice((1, 9))


def calls_child(main: Document) -> bool:
    """Return whether a playbook runs another one as a child."""
    return any(task.get("kind") == "playbook" for step in main["workflow"] for _, task in tasks_in(step))


def _limit_rates(document: Document, random: Random) -> None:
    """Let iterations of some loops begin at a limited rate."""
    for step in document["workflow"]:
        loop = step.get("loop")
        if loop and "loop" not in loop and random.random() < _RATE_SHARE:
            loop["spec"]["rate"] = {"max": random.randint(1, 2), "per": random.choice((0.5, 2, 9))}


def _share_tasks(document: Document, random: Random) -> None:
    """Move a tool call to the workbook, alone or with a second task, and call it from one more step."""
    places = [
        (tasks, number, label)
        for tasks in (step["tool"] for step in document["workflow"] if "tool" in step)
        for number, entry in enumerate(tasks)
        for label, task in entry.items()
        if isinstance(task, dict) and task.get("kind") == "http"
    ]
    if not places:
        return
    tasks, number, label = random.choice(places)
    shared, call = tasks[number][label], {"kind": "workbook", "task": SHARED}
    is_list = random.random() < 0.5
    document["workbook"] = {"tasks": {SHARED: [{"one": shared}, {"two": {"kind": "noop"}}] if is_list else shared}}
    tasks[number] = {label: call}
    random.choice(places)[0].append({"called": dict(call)})


def inlined(document: Document) -> Document:
    """Return a playbook with the tasks of its workbook where they are called; their labels begin with the call's."""
    workbook = document.get("workbook", {}).get("tasks", {})
    steps = [dict(step) for step in document["workflow"]]
    for step in steps:
        if "tool" in step:
            step["tool"] = [made for entry in step["tool"] for made in _called(entry, workbook)]
    return document | {"workflow": steps}


def _called(entry: Document, workbook: Document) -> list[Document]:
    ((label, task),) = entry.items()
    if not isinstance(task, dict) or task.get("kind") != "workbook":
        return [entry]
    shared = workbook[task["task"]]
    if isinstance(shared, dict):
        return [{label: shared}]
    return [{f"{label}.{name}": one for name, one in inner.items()} for inner in shared]


def tasks_in(step: Document) -> Iterator[tuple[str, Document]]:
    """Yield label and task of a step, those inside of sugar too."""
    yield from _tasks_in(step.get("tool", []))


def _tasks_in(tasks: list[Document]) -> Iterator[tuple[str, Document]]:
    rounds: Counter[str] = Counter()
    for entry in tasks:
        ((label, task),) = entry.items()
        if label == "choose":
            for branch in task:
                yield from _tasks_in(branch["else"]["then"] if "else" in branch else branch["then"])
        elif label in ("while", "until"):
            rounds[label] += 1
            yield from _tasks_in(task["do"])
            if "delay" in task:  # the compiler makes a task of it
                yield f"{label}_{rounds[label]}.wait", {"kind": "noop"}
        else:
            yield label, task


def text_of(document: Document) -> str:
    """Return a playbook as text: JSON, which is YAML too."""
    return json.dumps(document, indent=1)


class _Playbook:
    def __init__(self, random: Random, path: str, steps: int, *, has_children: bool, has_secret: bool) -> None:
        self._random = random
        self._path = path
        self._names = [f"s{number}" for number in range(steps)]
        self._has_children = has_children
        self._has_secret = has_secret
        self._fan_outs = 0

    def document(self) -> Document:
        random = self._random
        steps = [self._step(number) for number in range(len(self._names))]
        executor: dict[str, Any] = {"policy": {"limits": {"max_payload_bytes": 4096}}}
        if random.random() < 0.25:
            executor["final_step"] = "last"
            steps.append({"step": "last", "tool": [{"sum_up": self._noop("t", set_ctx={"final": 1})}]})
        if random.random() < 0.1:
            executor["no_next_is_error"] = True
        document: Document = {
            "apiVersion": "noetl.io/v2",
            "kind": "Playbook",
            "metadata": {"name": self._path.rpartition("/")[2], "path": self._path},
            "executor": {"spec": executor},
            "workload": {"items": [1, 2, 3], "nested": {"a": 1, "b": 2}},
            "workflow": steps,
        }
        if self._has_secret:
            document["keychain"] = [{"name": SECRET_NAME, "kind": "bearer_token"}]
        return document

    # ---- steps

    def _step(self, number: int) -> Document:
        random = self._random
        step: Document = {"step": self._names[number]}
        policy: dict[str, Any] = {}
        if number and random.random() < 0.3:
            policy["admit"] = self._gate()
        if random.random() < 0.12:
            limit = random.choice(("timeout_s", "timeout_s", "deadline_s"))
            policy["lifecycle"] = {limit: random.choice((4, 10, 25))}
        reducers: dict[str, str] = {}
        is_parallel = False
        if random.random() < 0.4:
            step["loop"], reducers, is_parallel = self._loop(2 if random.random() < 0.25 else 1)
            if random.random() < 0.4:
                policy["failure"] = {"mode": "best_effort"}
        if random.random() < 0.92:
            step["tool"] = self._tasks(is_loop="loop" in step, is_parallel=is_parallel, reducers=reducers)
        if policy:
            step["spec"] = {"policy": policy}
        arcs = self._arcs(number)
        if arcs:
            step["next"] = {"arcs": arcs}
            if len(arcs) > 1 and self._fan_outs < _FAN_OUTS_MAX and random.random() < 0.6:
                self._fan_outs += 1
                step["next"]["spec"] = {"mode": "inclusive"}
        return step

    def _gate(self) -> Document:
        gate: Document = {
            "rules": [
                {"when": flag(f"flag_{self._random.randint(0, 2)}"), "then": {"allow": True}},
                {"else": {"then": {"allow": False}}},
            ]
        }
        return gate | {"on_deny": "drop"} if self._random.random() < 0.3 else gate

    def _arcs(self, number: int) -> list[Document]:
        random = self._random
        later = self._names[number + 1 :]
        arcs = [self._arc(random.choice(later)) for _ in range(random.randint(1, 2))] if later else []
        if later and all(arc["step"] != later[0] for arc in arcs):
            arcs.append({"step": later[0]})
        if number and random.random() < 0.12:
            arcs.insert(0, {"step": random.choice(self._names[: number + 1]), "when": ROUNDS, "args": NEXT_ROUND})
        return arcs

    def _arc(self, target: str) -> Document:
        arc: Document = {"step": target}
        guard = self._random.choice(GUARDS)
        if guard:
            arc["when"] = guard
        if self._random.random() < 0.3:
            arc["args"] = {"from": "{{ execution_id }}", "k": self._random.randint(0, 9)}
        return arc

    # ---- loops

    def _loop(self, levels: int) -> tuple[Document, dict[str, str], bool]:
        random = self._random
        reducers: dict[str, str] = {}
        is_parallel = random.random() < 0.65
        spec: dict[str, Any] = {"mode": "parallel" if is_parallel else "sequential"}
        if is_parallel:
            spec["max_in_flight"] = random.randint(1, 3)
            reducers = {f"total_{name}": name for name in random.sample(REDUCERS, random.randint(0, 2))}
            spec["policy"] = {"reducers": dict(reducers)} if reducers else {}
            if random.random() < 0.2:
                spec["policy"]["exec"] = "local"
            if not spec["policy"]:
                del spec["policy"]
        items: Any = random.choice(([1, 2, 3], [4, 5], [7], [], "{{ workload.items }}", "{{ workload.nested }}"))
        loop: Document = {"in": items, "iterator": f"n{levels}", "spec": spec}
        if levels > 1:
            inner, inner_reducers, inner_parallel = self._loop(levels - 1)
            inner["in"] = inner["in"][:2] if isinstance(inner["in"], list) else [1, 2]
            loop["in"] = [1, 2]
            loop["loop"] = inner
            return loop, reducers | inner_reducers if reducers else {}, is_parallel or inner_parallel
        return loop, reducers, is_parallel

    # ---- tasks

    def _tasks(self, *, is_loop: bool, is_parallel: bool, reducers: dict[str, str]) -> list[Document]:
        random = self._random
        tasks = [
            self._entry(f"t{number}", is_loop=is_loop, is_parallel=is_parallel, reducers=reducers)
            for number in range(1, random.randint(1, 3) + 1)
        ]
        if is_loop and random.random() < 0.2:
            tasks += self._pages(random.randint(2, 3))
        return tasks

    def _entry(self, label: str, *, is_loop: bool, is_parallel: bool, reducers: dict[str, str]) -> Document:
        random = self._random
        chance = random.random()
        if chance < 0.08:
            branch = [{f"{label}_a": self._call(label)}]
            other = [{f"{label}_b": self._noop(label)}]
            return {"choose": [{"when": flag("flag_0"), "then": branch}, {"else": {"then": other}}]}
        if chance < 0.13:
            body = [{f"{label}_w": self._call(label, rules=[self._continue_on_error()])}]
            return {"while": {"when": "{{ (_prev | default(0, true)) is not number }}", "max": 2, "do": body}}
        if chance < 0.18:
            return {"until": {"when": "{{ true }}", "max": 3, "do": [{f"{label}_u": self._call(label)}]}}
        if chance < 0.26 and self._has_children:
            return {label: {"kind": "playbook", "path": CHILD, "workload": {"items": [random.randint(1, 5)]}}}
        if is_parallel and reducers and chance < 0.7:
            key = random.choice(sorted(reducers))
            return {label: self._noop(label, set_ctx={key: INDEX})}
        if not is_parallel and chance < 0.45:
            return {label: self._noop(label, set_ctx={f"flag_{random.randint(0, 2)}": random.randint(1, 9)})}
        return {label: self._call(label, rules=self._rules(is_loop=is_loop))}

    def _pages(self, pages: int) -> list[Document]:
        """Return tasks that read pages by a jump back."""
        turn: list[Document] = [
            {"when": f"{{{{ (iter.page | default(1)) < {pages} }}}}",
             "then": {"do": "jump", "to": "page", "set_iter": {"page": "{{ (iter.page | default(1)) + 1 }}"}}},
            {"else": {"then": {"do": "break"}}},
        ]  # fmt: skip
        return [{"page": self._call("page")}, {"turn": self._noop("turn", rules=turn)}]

    def _rules(self, *, is_loop: bool) -> list[Document]:
        random = self._random
        retry = {"do": "retry", "attempts": random.randint(2, 4), "delay": random.choice((0, 1, 2, 7))}
        retry["backoff"] = random.choice(("none", "linear", "exponential"))
        forms: tuple[Callable[[], list[Document]], ...] = (
            list,
            lambda: [{"when": RETRYABLE, "then": retry}],
            lambda: [{"when": RETRYABLE, "then": retry}, {"else": {"then": {"do": "continue"}}}],
            lambda: [{"when": FAILED.replace("event", "outcome"), "then": {"do": "skip"}}],
            lambda: [self._continue_on_error()],
            lambda: [
                {"when": THREE, "then": {"do": "fail"}},
                {"else": {"then": {"do": "break"}}},
            ],
        )
        return random.choice(forms)()

    def _continue_on_error(self) -> Document:
        return {"else": {"then": {"do": "continue"}}}

    def _call(self, label: str, rules: list[Document] | None = None) -> Document:
        call: Document = {"kind": "http", "url": f"http://sim.invalid/{label}"}
        if self._has_secret and self._random.random() < 0.6:
            call["headers"] = {"Authorization": f"Bearer {{{{ keychain.{SECRET_NAME}.token }}}}"}
        if rules:
            call["spec"] = {"policy": {"rules": rules}}
        return call

    def _noop(
        self, _label: str, *, set_ctx: dict[str, Any] | None = None, rules: list[Document] | None = None
    ) -> Document:
        if set_ctx:
            rules = [{"else": {"then": {"do": "continue", "set_ctx": set_ctx}}}]
        return {"kind": "noop", "spec": {"policy": {"rules": rules}}} if rules else {"kind": "noop"}
