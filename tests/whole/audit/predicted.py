"""Playbooks whose ends are predicted from the language definition, by rules of their own and not by the machine's."""

from __future__ import annotations

from typing import Any

from tests.whole.audit.cases import FAILED, Case, Cases, Data, failing, noop, playbook, rule, sets, step

DONE = "event.name == 'step.done'"


def success(ctx: Data | None = None, **more: Any) -> Data:
    return {"status": "success"} | ({} if ctx is None else {"ctx": ctx}) | more


def failed(*kinds: str, **more: Any) -> Data:
    return {"status": "failed", "kinds": list(kinds)} | more


def retries() -> Cases:
    """S14, S15: `attempts` counts every run of a task; a fresh entry starts at 1 again."""
    for attempts in (1, 2, 3, 4, 5):
        for failures in (0, 1, 2, 4):
            retry = rule("retry", FAILED, attempts=attempts)
            tasks = [failing("flaky", str(failures), retry, rule("continue", set_ctx={"tries": "{{ _attempt }}"}))]
            expected = success({"tries": failures + 1}) if failures < attempts else failed("template")
            yield Case(f"retry {attempts} of {failures}", playbook(step("start", *tasks)), expected)
    for failures in (1, 2, 3):
        tasks = [failing("flaky", str(failures), rule("retry", FAILED), rule("continue"))]
        expected = success() if failures < 3 else failed("template")
        yield Case(f"retry default {failures}", playbook(step("start", *tasks)), expected)
    again = noop(
        "again",
        rule("jump", "ctx.round | default(0) < 3", to="flaky", set_ctx={"round": "{{ ctx.round | default(0) + 1 }}"}),
        rule("continue"),
    )
    flaky = failing("flaky", "2", rule("retry", FAILED, attempts=3), rule("continue"))
    yield Case("attempts start anew after a jump", playbook(step("start", flaky, again)), success({"round": 3}))
    for backoff in ("none", "linear", "exponential"):
        retry = rule("retry", FAILED, attempts=3, backoff=backoff, delay=0.001)
        tasks = [failing("flaky", "2", retry, rule("continue", set_ctx={"tries": "{{ _attempt }}"}))]
        yield Case(f"backoff {backoff}", playbook(step("start", *tasks)), success({"tries": 3}))


def policies() -> Cases:
    """S13, S16, S17: what happens without a rule that matches, and what each directive does."""
    yield Case("no policy, error", playbook(step("start", failing("a"), sets("b", v=1))), failed("template", ctx={}))
    yield Case("no policy, ok", playbook(step("start", noop("a"), sets("b", v=1))), success({"v": 1}))
    unmatched = failing("a", "99", rule("fail", "outcome.status == 'ok'"))
    yield Case("no rule matches: continue", playbook(step("start", unmatched, sets("b", v=1))), success({"v": 1}))
    for do, ctx in (("continue", {"v": 1}), ("break", {}), ("skip", {"v": 1})):
        tasks = [failing("a", "99", rule(do, FAILED)), sets("b", v=1)]
        yield Case(f"error then {do}", playbook(step("start", *tasks)), success(ctx))
    tasks = [noop("a", rule("fail")), sets("b", v=1)]
    yield Case("fail on ok", playbook(step("start", *tasks)), {"status": "failed", "ctx": {}})
    jump = [noop("a", rule("jump", to="c")), sets("b", b=1), sets("c", c=1)]
    yield Case("jump forward", playbook(step("start", *jump)), success({"c": 1}))
    first = noop("a", rule("continue", "true", set_ctx={"v": 1}), rule("continue", "true", set_ctx={"v": 2}))
    yield Case("first match wins", playbook(step("start", first)), success({"v": 1}))
    both = noop("a", rule("continue", set_ctx={"x": "{{ ctx.y }}", "y": "{{ ctx.x }}"}))
    swap = playbook(step("start", sets("init", x=1, y=2), both))
    yield Case("right-hand sides before writes", swap, success({"x": 2, "y": 1}))
    for text, truth in (("true", True), ("False", False), (" TRUE ", True), ("no", True), ("", False), ("0", True)):
        tasks = [noop("a", rule("continue", f"'{text}'", set_ctx={"v": True}), rule("continue", set_ctx={"v": False}))]
        yield Case(f"text {text!r} as a guard", playbook(step("start", *tasks)), success({"v": truth}))
    for number in (0, 1, -1):
        tasks = [noop("a", rule("continue", str(number), set_ctx={"v": True}), rule("continue", set_ctx={"v": False}))]
        yield Case(f"number {number} as a guard", playbook(step("start", *tasks)), success({"v": bool(number)}))


def results() -> Cases:
    """S16, S29, S34: `_prev`, the pipeline's result, and which result an execution has."""
    py = {"kind": "python", "code": "result = n * 2", "args": {"n": "{{ _prev | default(1, true) }}"}}
    for count in (1, 2, 3):
        tasks = [{f"t{number}": py} for number in range(count)]
        yield Case(f"_prev through {count} tasks", playbook(step("start", *tasks)), success(result=2**count))
    tasks = [{"a": py}, noop("b", rule("skip"))]
    yield Case("skip leaves _prev", playbook(step("start", *tasks)), success(result=2))
    tasks = [{"a": py}, noop("b")]
    yield Case("continue replaces _prev", playbook(step("start", *tasks)), success(result=None))
    steps = [step("start", {"a": py}, to="end"), step("end", {"b": py})]
    yield Case("the last step's result", playbook(*steps), success(result=2))
    fork = {"spec": {"mode": "inclusive"}, "arcs": [{"step": "z"}, {"step": "y"}]}
    late = {"kind": "python", "code": "result = 'y'"}
    early = {"kind": "python", "code": "result = 'z'"}
    steps = [step("start", noop("a"), to=fork), step("y", {"t": late}), step("z", {"t": early})]
    yield Case("of several ends, the step written last", playbook(*steps), success(result="z"))
    steps = [step("start", {"a": py}, to="end"), step("end", sets("b", seen="{{ start }}"))]
    yield Case("a step's result by its name", playbook(*steps), success({"seen": 2}))


def loops() -> Cases:
    """S21 to S29: order, width, ctx, failures, nesting."""
    for mode in ("sequential", "parallel"):
        for count in (0, 1, 2, 5):
            items = list(range(count))
            loop = {"in": items, "iterator": "x", "spec": {"mode": mode}}
            py = {"t": {"kind": "python", "args": {"x": "{{ iter.x }}"}, "code": "result = x * x"}}
            expected = success(result=[number * number for number in items])
            yield Case(f"{mode} loop of {count}", playbook(step("start", py, loop=loop)), expected)
    sums = {"in": [1, 2, 3], "iterator": "x", "spec": {"mode": "sequential"}}
    add = sets("add", total="{{ ctx.total | default(0) + iter.x }}")
    yield Case("sequential ctx adds up", playbook(step("start", add, loop=sums)), success({"total": 6}))
    values = [3, 1, 2]
    reduced: dict[str, Any] = {
        "sum": 6,
        "min": 1,
        "max": 3,
        "count": 3,
        "any": True,
        "all": True,
        "first": 3,
        "last": 2,
        "append": [3, 1, 2],
    }
    for reducer, value in reduced.items():
        spec = {"mode": "parallel", "policy": {"reducers": {"v": reducer}}}
        loop = {"in": values, "iterator": "x", "spec": spec}
        case = playbook(step("start", sets("w", v="{{ iter.x }}"), loop=loop))
        yield Case(f"reducer {reducer}", case, success({"v": value}))
        before: dict[str, Any] = {
            "sum": 106,
            "min": 1,
            "max": 100,
            "first": 100,
            "last": 2,
        }
        if reducer in before:
            steps = [step("start", sets("b", v=100), to="go"), step("go", sets("w", v="{{ iter.x }}"), loop=loop)]
            yield Case(f"reducer {reducer} goes on from 100", playbook(*steps), success({"v": before[reducer]}))
    spec = {"mode": "parallel", "policy": {"reducers": {"v": "extend"}}}
    loop = {"in": values, "iterator": "x", "spec": spec}
    case = playbook(step("start", sets("w", v="{{ [iter.x, iter.x] }}"), loop=loop))
    yield Case("reducer extend", case, success({"v": [3, 3, 1, 1, 2, 2]}))
    loop = {"in": values, "iterator": "x", "spec": {"mode": "parallel", "policy": {"reducers": {"v": "merge"}}}}
    case = playbook(step("start", sets("w", v="{{ {iter.x | string: iter.index} }}"), loop=loop))
    yield Case("reducer merge", case, success({"v": {"3": 0, "1": 1, "2": 2}}))
    loop = {"in": [1, 2], "iterator": "x", "spec": {"mode": "parallel"}}
    case = playbook(step("start", sets("w", v="{{ iter.x }}"), loop=loop))
    yield Case("parallel writes differ", case, failed("ctx_conflict"))
    case = playbook(step("start", sets("w", v=7), loop=loop))
    yield Case("parallel writes agree", case, success({"v": 7}))
    loop = {"in": "{{ workload.map }}", "iterator": "x"}
    add = sets("add", seen="{{ ctx.seen | default([]) + [iter.x.key ~ iter.x.value] }}")
    case = playbook(step("start", add, loop=loop), workload={"map": {"a": 1, "b": 2}})
    yield Case("loop over a mapping", case, success({"seen": ["a1", "b2"]}))
    for value in (5, "text", True):
        case = playbook(
            step("start", noop("t"), loop={"in": "{{ workload.v }}", "iterator": "x"}), workload={"v": value}
        )
        yield Case(f"loop over {value!r}", case, failed("loop"))
    broken = noop("t", value="{{ workload.absent if iter.x == 2 else 1 }}")
    for mode in ("sequential", "parallel"):
        loop = {"in": [1, 2, 3], "iterator": "x", "spec": {"mode": mode}}
        yield Case(f"{mode} loop fails fast", playbook(step("start", broken, loop=loop)), failed("template"))
        effort = {"policy": {"failure": {"mode": "best_effort"}}}
        arcs = [{"step": "end", "args": {"loop": "{{ event.loop }}"}}]
        steps = [
            step("start", broken, loop=loop, spec=effort, to=arcs),
            step("end", sets("c", v="{{ args.loop.failed }}")),
        ]
        yield Case(f"{mode} loop with best effort", playbook(*steps), success({"v": 1}))
    inner = {"in": [10, 20], "iterator": "y", "spec": {"mode": "sequential"}}
    outer = {"in": [1, 2], "iterator": "x", "loop": inner}
    add = sets("add", seen="{{ ctx.seen | default([]) + [iter.parent.x + iter.y] }}")
    case = playbook(step("start", add, loop=outer))
    yield Case("nested loops", case, success({"seen": [11, 21, 12, 22]}, result=[[None, None], [None, None]]))
    page = noop(
        "page",
        rule(
            "jump",
            "(iter.page | default(1)) < iter.pages",
            to="page",
            set_iter={"page": "{{ iter.page | default(1) + 1 }}"},
            set_ctx={"read": "{{ ctx.read | default(0) + 1 }}"},
        ),
        rule("break", set_ctx={"read": "{{ ctx.read | default(0) + 1 }}"}),
    )
    loop = {"in": [1, 3, 2], "iterator": "pages"}
    yield Case("pages of each item", playbook(step("start", page, loop=loop)), success({"read": 6}))


def nets() -> Cases:
    """S30 to S34: gates, routers, args, failures."""
    for mode, expected in (("exclusive", {"a": 1}), ("inclusive", {"a": 1, "b": 1})):
        router = {"spec": {"mode": mode}, "arcs": [{"step": "a"}, {"step": "b"}]}
        steps = [step("start", noop("t"), to=router), step("a", sets("t", a=1)), step("b", sets("t", b=1))]
        yield Case(f"{mode} router", playbook(*steps), success(expected))
    for value in range(4):
        arcs = [{"step": f"s{number}", "when": f"{{{{ workload.v == {number} }}}}"} for number in range(3)]
        steps = [step("start", noop("t"), to=arcs)] + [step(f"s{n}", sets("t", at=n)) for n in range(3)]
        ctx = {"at": value} if value < 3 else {}
        yield Case(f"guards pick {value}", playbook(*steps, workload={"v": value}), success(ctx))
    steps = [step("start", noop("t"), to=[{"step": "a", "when": "{{ false }}"}]), step("a", noop("t"))]
    strict = playbook(*steps, executor={"spec": {"no_next_is_error": True}})
    yield Case("no arc holds", playbook(*steps), success({}))
    yield Case("no arc holds, and that is an error", strict, failed("no_next"))
    first = [{"step": "b", "args": {"x": 1, "y": 1}}]
    second = [{"step": "c", "args": {"y": 2}}]
    steps = [
        step("a", noop("t"), to=first),
        step("b", noop("t"), to=second),
        step("c", sets("t", x="{{ args.x }}", y="{{ args.y }}")),
    ]
    yield Case("args overlay", playbook(*steps), success({"x": 1, "y": 2}))
    mend = [{"step": "mend", "when": "{{ event.name == 'step.failed' }}"}]
    steps = [step("start", failing("t"), to=mend), step("mend", sets("t", kind="{{ args.kind | default('none') }}"))]
    yield Case("a handled failure", playbook(*steps), success({"kind": "none"}))
    steps = [step("start", failing("t"), to="mend"), step("mend", sets("t", v=1))]
    yield Case("an unguarded arc handles nothing", playbook(*steps), failed("template", ctx={"v": 1}))
    only = playbook(*steps, executor={"spec": {"unguarded_arcs": "success"}})
    yield Case("unguarded arcs on success only", only, failed("template", ctx={}))
    gate = {"policy": {"admit": {"rules": [{"when": "{{ ctx.open | default(false) }}", "then": {"allow": True}}]}}}
    fork = {"spec": {"mode": "inclusive"}, "arcs": [{"step": "gated"}, {"step": "opener"}]}
    steps = [
        step("start", noop("t"), to=fork),
        step("gated", sets("t", passed=True), spec=gate),
        step("opener", sets("t", open=True)),
    ]
    yield Case("a gate opens", playbook(*steps), success({"open": True, "passed": True}))
    del steps[2]
    fork = {"arcs": [{"step": "gated"}]}
    steps[0] = step("start", noop("t"), to=fork)
    yield Case("a gate that stays closed", playbook(*steps), success({}))
    yield Case("an entry that is never admitted", playbook(step("start", noop("t"), spec=gate)), failed("admission"))
    for name, spec, expected in (
        ("start", {}, "start"),
        ("first", {}, "first"),
        ("first", {"entry_step": "other"}, "other"),
    ):
        steps = [step(name, sets("t", at=name)), step("other", sets("t", at="other"))]
        made = playbook(*steps, executor={"spec": spec}) if spec else playbook(*steps)
        yield Case(f"entry at {expected} of {name} {bool(spec)}", made, success({"at": expected}))
    steps = [step("start", sets("t", a=1)), step("end", sets("t", final=True))]
    yield Case(
        "a final step", playbook(*steps, executor={"spec": {"final_step": "end"}}), success({"a": 1, "final": True})
    )
    for hops in (1, 2, 10, 100):
        arcs = [
            {
                "step": "a",
                "when": f"{{{{ args.n | default(0) < {hops} }}}}",
                "args": {"n": "{{ args.n | default(0) + 1 }}"},
            }
        ]
        steps = [step("a", sets("t", n="{{ args.n | default(0) }}"), to=arcs)]
        yield Case(f"a cycle of {hops}", playbook(*steps), success({"n": hops}))
    endless = step("a", sets("t", n="{{ args.n | default(0) }}"), to=[{"step": "a", "when": "{{ workload.go }}"}])
    limited = playbook(endless, executor={"spec": {"limits": {"max_step_runs": 20}}}, workload={"go": True})
    yield Case("a net out of fuel", limited, failed("fuel"))
    for width in (2, 3, 5):
        router = {"spec": {"mode": "inclusive"}, "arcs": [{"step": "s", "args": {"n": n}} for n in range(width)]}
        steps = [
            step("start", noop("t"), to=router),
            step("s", sets("t", last="{{ ctx.last | default(0) + 0 }}")),
        ]
        yield Case(f"{width} tokens for one step", playbook(*steps), success({"last": 0}))
    merged = playbook(step("start", sets("t", v="{{ workload.a.x + workload.a.y }}")), workload={"a": {"x": 1, "y": 2}})
    yield Case("workload defaults", merged, success({"v": 3}))


def sugar() -> Cases:
    """S39: `choose`, `while`, `until`."""
    for value in (1, 2, 3):
        branches = [
            {"when": "{{ workload.v == 1 }}", "then": [sets("one", at=1)]},
            {"when": "{{ workload.v == 2 }}", "then": [sets("two", at=2)]},
            {"else": {"then": [sets("other", at=0)]}},
        ]
        tasks = [{"choose": branches}, sets("after", met=True)]
        ctx = {"at": value if value < 3 else 0, "met": True}
        yield Case(f"choose {value}", playbook(step("start", *tasks), workload={"v": value}), success(ctx))
        tasks = [{"choose": branches[:2]}, sets("after", met=True)]
        ctx = {"at": value, "met": True} if value < 3 else {"met": True}
        yield Case(f"choose {value} without else", playbook(step("start", *tasks), workload={"v": value}), success(ctx))
    count = sets("count", n="{{ ctx.n | default(0) + 1 }}")
    for rounds in (0, 1, 5):
        loop = {"while": {"when": f"{{{{ ctx.n | default(0) < {rounds} }}}}", "do": [count]}}
        yield Case(f"while {rounds}", playbook(step("start", loop)), success({"n": rounds} if rounds else {}))
        loop = {"until": {"when": f"{{{{ ctx.n | default(0) >= {rounds} }}}}", "do": [count]}}
        yield Case(f"until {rounds}", playbook(step("start", loop)), success({"n": max(rounds, 1)}))
    loop = {"while": {"when": "{{ true }}", "max": 5, "do": [count]}}
    yield Case("while beyond its bound", playbook(step("start", loop)), failed("fuel"))
    nested = {
        "while": {"when": "{{ ctx.n | default(0) < 6 }}", "do": [{"choose": [{"when": "{{ true }}", "then": [count]}]}]}
    }
    yield Case("choose in while", playbook(step("start", nested)), success({"n": 6}))


def children() -> Cases:
    """S43: a child has its own ctx and gives back its result."""
    py = {"kind": "python", "args": {"n": "{{ workload.n }}"}, "code": "result = n + 1"}
    child = playbook(step("start", {"t": py}), path="audit/child", workload={"n": 0})
    for number in (1, 41):
        call = {"call": {"kind": "playbook", "path": "audit/child", "workload": {"n": number}}}
        call["call"]["spec"] = {"policy": {"rules": [rule("continue", set_ctx={"got": "{{ outcome.result.result }}"})]}}
        yield Case(f"a child of {number}", playbook(step("start", call)), success({"got": number + 1}), (child,))
    loop = {"in": [1, 2, 3], "iterator": "x", "spec": {"mode": "parallel", "policy": {"reducers": {"sum": "sum"}}}}
    call = {"call": {"kind": "playbook", "path": "audit/child", "workload": {"n": "{{ iter.x }}"}}}
    call["call"]["spec"] = {"policy": {"rules": [rule("continue", set_ctx={"sum": "{{ outcome.result.result }}"})]}}
    yield Case("children of a loop", playbook(step("start", call, loop=loop)), success({"sum": 9}), (child,))
    bad = playbook(step("start", failing("t")), path="audit/child")
    call = {"call": {"kind": "playbook", "path": "audit/child"}}
    yield Case("a child that fails", playbook(step("start", call)), {"status": "failed"}, (bad,))


def large() -> Cases:
    """S46: what is too large for an event is stored, and reads as if it were not."""
    for size in (1_000, 70_000, 300_000):
        py = {"kind": "python", "args": {"n": size}, "code": "result = {'text': 'x' * n, 'n': n}"}
        tasks = [{"make": py}, sets("look", size="{{ _prev.text | length }}", n="{{ _prev.n }}")]
        yield Case(f"a result of {size}", playbook(step("start", *tasks)), success({"size": size, "n": size}))
        steps = [step("start", {"make": py}, to="look"), step("look", sets("t", size="{{ start.text | length }}"))]
        yield Case(f"a step's result of {size}", playbook(*steps), success({"size": size}))


TEMPLATES: dict[str, Any] = {
    "1 + 1": 2,
    "7 // 2": 3,
    "7 / 2": 3.5,
    "7 % 3": 1,
    "2 ** 10": 1024,
    "'a' ~ 1": "a1",
    "-5": -5,
    "not true": False,
    "1 < 2 < 3": True,
    "1 == 1.0": True,
    "'a' in 'cat'": True,
    "3 not in [1, 2]": True,
    "[1, 2] + [3]": [1, 2, 3],
    "'x' * 3": "xxx",
    "1 if true else 2": 1,
    "(1, 2) | list": [1, 2],
    "{'a': 1}.a": 1,
    "{'a': 1}['a']": 1,
    "[1, 2, 3][-1]": 3,
    "[1, 2, 3][1:]": [2, 3],
    "'hello'[1]": "e",
    "'hello' | upper": "HELLO",
    "'A B' | lower": "a b",
    "'hello world' | title": "Hello World",
    "'abc' | length": 3,
    "[3, 1, 2] | sort": [1, 2, 3],
    "[1, 2, 3] | sum": 6,
    "[1, 2, 3] | max": 3,
    "[1, 2, 3] | min": 1,
    "[1, 2, 3] | first": 1,
    "[1, 2, 3] | last": 3,
    "[1, 2] | join('-')": "1-2",
    "[1, 1, 2] | unique | list": [1, 2],
    "'a,b' | replace(',', ';')": "a;b",
    "' x ' | trim": "x",
    "3.7 | round": 4.0,
    "3.14159 | round(2)": 3.14,
    "3.7 | int": 3,
    "'12' | int": 12,
    "'x' | int(5)": 5,
    "'1.5' | float": 1.5,
    "5 | string": "5",
    "[1, 2, 3] | reverse | list": [3, 2, 1],
    "workload.absent | default('d')": "d",
    "'' | default('d', true)": "d",
    "[{'a': 1}, {'a': 2}] | map(attribute='a') | list": [1, 2],
    "[1, 2, 3] | select('odd') | list": [1, 3],
    "[1, 2, 3] | reject('odd') | list": [2],
    "[{'a': 1}, {'a': 0}] | selectattr('a') | list | length": 1,
    "{'b': 1, 'a': 2} | dictsort | first | first": "a",
    "{'a': 1} | items | list | length": 1,
    "[1, 2, 3, 4] | batch(2) | list": [[1, 2], [3, 4]],
    "'abc' is string": True,
    "5 is number": True,
    "[] is iterable": True,
    "workload.absent is defined": False,
    "workload.absent is undefined": True,
    "none is none": True,
    "4 is even": True,
    "4 is divisibleby(2)": True,
    "'a b c'.split()": ["a", "b", "c"],
    "'abc'.startswith('a')": True,
    "'abc'.upper()": "ABC",
    "{'a': 1}.get('b', 7)": 7,
    "{'a': 1}.keys() | list": ["a"],
    "workload.absent.deeper.still | default(1)": 1,
    "workload.absent == 1": False,
    "true and 'x'": "x",
    "false or 'y'": "y",
    "[] or 'z'": "z",
    "1 > 2 or 2 > 1": True,
    "'%s-%s' | format(1, 2)": "1-2",
    "'abc' | first": "a",
    "range(3) | list": [0, 1, 2],
    "'a-b_c' | replace('-', '') | replace('_', '')": "abc",
    "[[1, 2], [3]] | sum(start=[])": [1, 2, 3],
    "'x' | center(3)": " x ",
    "'abcdef' | truncate(5, true, '…', 0)": "abcd…",
    "{'a': {'b': [1, {'c': 2}]}}.a.b[1].c": 2,
    "'1' == 1": False,
    "1 in {1: 2}": True,
    "'line' | indent(2, true)": "  line",
    "'a' < 'b'": True,
    "[1, [2]] == [1, [2]]": True,
    "'abc' | reverse": "cba",
    "'%.2f' % 3.14159": "3.14",
    "8 | filesizeformat": "8 Bytes",
    "'a b' | urlencode": "a%20b",
    "[1, 2, 3] | tojson": "[1, 2, 3]",
    "'äöü' | length": 3,
    "1e3": 1000.0,
    "10_000": 10000,
    "'a' 'b'": "ab",
    "[1, 2, 3] | map('string') | join": "123",
    "[3, 1] | sort(reverse=true)": [3, 1],
    "(2, 3) | sum": 5,
    "none | default(1)": None,
    "'TRUE' | lower == 'true'": True,
    "[0, 1] | select | list": [1],
    "'abc' | list": ["a", "b", "c"],
    "6 // 4 * 4 + 6 % 4": 6,
    "{'x': [1, 2]}.x | length": 2,
    "'a'.join(['1', '2'])": "1a2",
    "'  a'.strip()": "a",
    "'a.b'.split('.')[1]": "b",
    "'abc'.find('c')": 2,
    "'abc'.replace('b', 'x')": "axc",
    "[1, 2, 3].index(2)": 1,
    "'aXbX'.count('X')": 2,
    "'5'.zfill(3)": "005",
}
"""Expressions, and their values by Jinja2's documentation."""


def templates() -> Cases:
    """S8, S10, S12: the value of an expression, alone and inside text."""
    for number, (expression, value) in enumerate(TEMPLATES.items()):
        tasks = [sets("t", v=f"{{{{ {expression} }}}}")]
        yield Case(f"template {number}: {expression}", playbook(step("start", *tasks)), success({"v": value}))
    for text, value in (
        ("{{ 1 }}{{ 2 }}", "12"),
        ("a {{ 1 }}", "a 1"),
        ("{{ [1, 2] }} b", "[1, 2] b"),
        ("{% if true %}x{% else %}y{% endif %}", "x"),
        ("{% for n in [1, 2] %}{{ n }},{% endfor %}", "1,2,"),
        ("{% set n = 5 %}{{ n + 1 }}", "6"),
        ("no template", "no template"),
        ("{# comment #}x", "x"),
    ):
        yield Case(f"text {text}", playbook(step("start", sets("t", v=text))), success({"v": value}))
    for position in ("args", "set_ctx", "loop"):
        if position == "args":
            steps = [
                step("start", noop("t"), to=[{"step": "b", "args": {"v": "{{ ctx.absent }}"}}]),
                step("b", noop("t")),
            ]
            case = playbook(*steps)
        elif position == "set_ctx":
            case = playbook(step("start", sets("t", v="{{ ctx.absent }}")))
        else:
            case = playbook(step("start", noop("t"), loop={"in": "{{ ctx.absent }}", "iterator": "x"}))
        yield Case(f"undefined reaches {position}", case, {"status": "failed"})


def merges() -> Cases:
    """S25, S26, S58, S60: what loops in loops make of the same writes, by the mode and the reducer of each level."""

    def level(items: list[int], name: str, reducer: str = "", **more: Any) -> Data:
        policy = {"policy": {"reducers": {"k": reducer}}} if reducer else {}
        return {"in": items, "iterator": name, "spec": {"mode": "parallel"} | policy | more}

    inner_value = "{{ iter.y }}"
    for outer, inner, value in (
        ("append", "sum", [30, 30]),
        ("count", "sum", 2),
        ("sum", "count", 4),
        ("extend", "append", [10, 20, 10, 20]),
        ("last", "first", 10),
        ("max", "min", 10),
    ):
        loop = level([1, 2], "x", outer) | {"loop": level([10, 20], "y", inner)}
        case = playbook(step("start", sets("t", k=inner_value), loop=loop))
        yield Case(f"{inner} inside {outer}", case, success({"k": value}))
    grows = "{{ ctx.k | default(0) + iter.y }}"
    for outer, inner, written, value in (
        (level([1, 2], "x", "sum"), level([1, 2, 3], "y", mode="sequential"), grows, 12),
        (level([1, 2], "x", mode="sequential"), level([1, 2, 3], "y", "sum"), inner_value, 12),
        (level([1, 2], "x", mode="sequential"), level([1, 2, 3], "y", mode="sequential"), grows, 12),
    ):
        modes = f"{inner['spec']['mode']} inside {outer['spec']['mode']}"
        case = playbook(step("start", sets("t", k=written), loop=outer | {"loop": inner}))
        yield Case(f"a sum: {modes}", case, success({"k": value}))
    conflict = level([1, 2], "x", "sum") | {"loop": level([1, 2], "y")}
    yield Case(
        "an inner conflict is not the outer reducer's business",
        playbook(step("start", sets("t", k=inner_value), loop=conflict)),
        failed("ctx_conflict", ctx={}),
    )
    for written, value in (("{{ iter.x }}", 103), ("{{ ctx.k }}", 300), ("{{ ctx.k + iter.x }}", 303)):
        steps = [
            step("start", sets("t", k=100), to="all"),
            step("all", sets("t", k=written), loop=level([1, 2], "x", "sum")),
        ]
        yield Case(f"100 and a sum of {written}", playbook(*steps), success({"k": value}))
    broken = noop("b", value="{{ workload.absent if iter.x == 2 else 1 }}")
    for mode, value in (("parallel", 5), ("sequential", 7)):
        loop = level([1, 2, 4], "x", "sum" if mode == "parallel" else "", mode=mode)
        written = "{{ iter.x }}" if mode == "parallel" else "{{ ctx.k | default(0) + iter.x }}"
        best = {"policy": {"failure": {"mode": "best_effort"}}}
        case = playbook(step("start", sets("t", k=written), broken, loop=loop, spec=best))
        yield Case(f"writes of a failed iteration, {mode}", case, success({"k": value}))


def all_cases() -> list[Case]:
    families = (retries, policies, results, loops, merges, nets, sugar, children, large, templates)
    return [case for family in families for case in family()]
