"""Workbook calls: what is put in their place, under which labels, with which arguments (S42)."""

from __future__ import annotations

import pytest

from tests.noetlc.canon.canonical import canonical, data, labels, refused, tasks

HEAD = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: shared, path: demo/shared}
workload: {api: "https://example.org"}
"""

PASS = "spec: {policy: {rules: [{else: {then: %s}}]}}"


def playbook(tool: str, tasks: str, loop: str = "") -> str:
    return f"{HEAD}workflow:\n  - step: start\n{loop}    tool:\n{tool}workbook:\n  tasks:\n{tasks}"


def one_input(argument: str, read: str) -> object:
    """Return what an input that reads an argument becomes in a single task."""
    call = f"      - save: {{kind: workbook, task: note, args: {argument}}}\n"
    return tasks(playbook(call, f"    note: {{kind: noop, text: {read}}}\n"))["save"]["text"]


def test_a_single_task_goes_by_the_label_of_its_call() -> None:
    text = playbook(
        "      - save: {kind: workbook, task: note}\n      - {kind: workbook, task: note}\n",
        "    note: {kind: noop, text: hello}\n",
    )
    assert tasks(text) == {"save": {"kind": "noop", "text": "hello"}, "task_2": {"kind": "noop", "text": "hello"}}
    assert "workbook" not in data(text)


def test_a_list_gets_the_calling_label_as_prefix_and_as_a_mark() -> None:
    text = playbook(
        "      - save: {kind: workbook, task: both}\n",
        """    both:
      - insert: {kind: noop}
      - {kind: noop}
      - choose: [{when: "{{ workload.api }}", then: [{kind: noop}]}]
""",
    )
    assert labels(text) == [
        "save",
        "save.insert",
        "save.task_2",
        "save.choose_1.when_1",
        "save.choose_1.when_1.task_1",
        "save.choose_1.end",
    ]
    assert tasks(text)["save"] == {"kind": "noop", "spec": {"flow": {}}}


def test_jumps_inside_a_workbook_stay_inside_and_a_jump_to_a_call_enters_it() -> None:
    text = playbook(
        "      - save: {kind: workbook, task: both}\n"
        f"      - again: {{kind: noop, {PASS % '{do: jump, to: save}'}}}\n",
        """    both:
      - a: {kind: noop}
      - b:
          kind: noop
          spec: {policy: {rules: [{when: "{{ ctx.x }}", then: {do: jump, to: a}}, {else: {then: {do: break}}}]}}
""",
    )
    found = tasks(text)
    assert found["save.b"]["spec"]["policy"]["rules"][0]["then"]["to"] == "save.a"
    assert found["again"]["spec"]["policy"]["rules"][0]["else"]["then"]["to"] == "save"


def test_calls_nest_and_inner_arguments_lie_over_outer_ones() -> None:
    text = playbook(
        "      - save: {kind: workbook, task: outer, args: {table: orders, who: me}}\n",
        """    outer:
      - first: {kind: workbook, task: inner, args: {table: "{{ args.table }}_old"}}
      - second: {kind: workbook, task: inner}
    inner: {kind: noop, table: "{{ args.table }}", who: "{{ args.who }}"}
""",
    )
    found = tasks(text)
    assert found["save.first"] == {"kind": "noop", "table": "{{ 'orders' }}_old", "who": "me"}
    assert found["save.second"] == {"kind": "noop", "table": "orders", "who": "me"}


def test_an_argument_means_what_it_means_at_its_own_call() -> None:
    text = playbook(
        '      - save: {kind: workbook, task: outer, args: {x: "{{ args.y }}", y: 5}}\n',
        """    outer: {kind: workbook, task: inner, args: {z: "{{ args.x }}"}}
    inner: {kind: noop, text: "{{ args.z }}"}
""",
    )
    assert tasks(text)["save"]["text"] == "{{ args.y }}"


@pytest.mark.parametrize(
    ("argument", "read", "expected"),
    [
        ("{x: 3}", '"{{ args.x }}"', 3),
        ("{x: [1, {a: b}]}", '"{{ args.x }}"', [1, {"a": "b"}]),
        ('{x: "{{ workload.api | upper }}"}', '"{{ args.x }}"', "{{ workload.api | upper }}"),
        ("{x: a}", '"{{ x }}"', "a"),
        ("{x: a}", "\"{{ args['x'] }}\"", "a"),
        ("{x: a}", "\"{{ args.get('x', 1) }}\"", "a"),
        ("{x: a}", '"<{{ args.x }}>"', "<{{ 'a' }}>"),
        ("{x: 3}", '"{{ args.x + 1 }}"', "{{ (3) + 1 }}"),
        ('{x: "{{ workload.n + 1 }}"}', '"{{ args.x * 2 }}"', "{{ (workload.n + 1) * 2 }}"),
        ('{x: {a: "{{ workload.api }}"}}', '"{{ args.x.a }}/"', "{{ {'a': workload.api}.a }}/"),
        ("{x: 1}", '"{{ args.y }}"', "{{ args.y }}"),
        ("{x: 1}", '"{{ args }}"', "{{ dict(args, x=1) }}"),
        ("{x-y: 1}", '"{{ args | tojson }}"', "{{ dict(args, **{'x-y': 1}) | tojson }}"),
        ("{x: 1}", '"{{ args[workload.key] }}"', "{{ dict(args, x=1)[workload.key] }}"),
        ("{x: 1}", '"{% for x in [1] %}{{ x }}{% endfor %}{{ x }}"', "{% for x in [1] %}{{ x }}{% endfor %}{{ 1 }}"),
        ("{ctx: 1}", '"{{ ctx.a }}"', "{{ ctx.a }}"),
        (
            '{x: "a{{ workload.api }}b"}',
            '"{{ args.x | upper }}"',
            "{{ ('a' ~ workload.api ~ 'b' if workload.api is defined else workload.api) | upper }}",
        ),
        ('{x: "a{{ execution_id }}b"}', '"{{ args.x | upper }}"', "{{ ('a' ~ execution_id ~ 'b') | upper }}"),
        ("{x: null}", '"-{{ args.x }}"', "-{{ none }}"),
    ],
)
def test_reads_of_arguments_become_the_arguments(argument: str, read: str, expected: object) -> None:
    assert one_input(argument, read) == expected


def test_guards_delays_and_patches_get_arguments_too() -> None:
    text = playbook(
        "      - save: {kind: workbook, task: note, args: {limit: 3}}\n",
        """    note:
      kind: noop
      spec:
        label: "{{ args.limit }}"
        policy:
          rules:
            - when: "{{ ctx.n < args.limit }}"
              then: {do: retry, attempts: 2, delay: "{{ args.limit }}"}
            - else: {then: {do: continue, set_ctx: {n: "{{ args.limit }}"}}}
""",
    )
    spec = tasks(text)["save"]["spec"]
    assert spec["label"] == 3
    rules = spec["policy"]["rules"]
    assert rules[0]["when"] == "{{ ctx.n < (3) }}"
    assert rules[0]["then"]["delay"] == "{{ 3 }}"
    assert rules[1]["else"]["then"]["set_ctx"] == {"n": 3}


def test_the_spec_of_a_call_is_a_layer_around_its_tasks() -> None:
    text = playbook(
        "      - save: {kind: workbook, task: note, spec: {a: call, b: call}}\n",
        "    note: {kind: noop, spec: {b: task}}\n",
    )
    assert tasks(text)["save"]["spec"] == {"a": "call", "b": "task"}


def test_the_policy_of_a_call_judges_its_single_task_in_the_callers_words() -> None:
    text = playbook(
        "      - first: {kind: noop}\n"
        "      - save: {kind: workbook, task: note, args: {x: 1}, spec: {policy: {rules: "
        '[{when: "{{ args.x }}", then: {do: jump, to: first}}, {else: {then: {do: continue}}}]}}}\n',
        "    note: {kind: noop, text: hello}\n",
    )
    rules = tasks(text)["save"]["spec"]["policy"]["rules"]
    assert rules[0] == {"when": "{{ args.x }}", "then": {"do": "jump", "to": "first"}}


def test_what_was_put_in_leads_back_to_the_workbook_and_to_the_call() -> None:
    form = canonical(playbook("      - save: {kind: workbook, task: note}\n", "    note: {kind: noop, text: hello}\n"))
    origin = form.origin("start", "save")
    assert origin.construct == "workbook note"
    assert origin.call is not None
    assert "hello" in form.source.text[slice(*origin.span)]
    assert "task: note" in form.source.text[slice(*origin.call)]


TWO = """    two:
      - a: {kind: noop, text: "%s"}
      - b: {kind: noop, text: "%s"}
"""


@pytest.mark.parametrize("argument", ["_prev.id", "ctx.n", "ctx", "n", "iter.n"])
def test_an_argument_that_may_have_changed_where_it_is_read_is_refused(argument: str) -> None:
    written = TWO.replace(
        'text: "%s"}', f'text: "%s", {PASS % "{do: continue, set_ctx: {n: 1}, set_iter: {n: 1}}"}}}', 1
    )
    call = f'      - save: {{kind: workbook, task: two, args: {{x: "{{{{ {argument} }}}}"}}}}\n'
    loop = "    loop: {in: [1], iterator: item}\n"
    message, place = refused(playbook(call, written % ("", "{{ args.x }}"), loop))
    assert message.startswith(f"`args.x` is `{argument}` here")
    assert "args.x" in place
    assert tasks(playbook(call, written % ("{{ args.x }}", ""), loop))["save.a"]["text"] == f"{{{{ {argument} }}}}"


@pytest.mark.parametrize("argument", ["workload.api", "ctx.other", "args.id", "execution_id"])
def test_an_argument_that_cannot_change_may_be_read_anywhere(argument: str) -> None:
    call = f'      - save: {{kind: workbook, task: two, args: {{x: "{{{{ {argument} }}}}"}}}}\n'
    assert tasks(playbook(call, TWO % ("", "{{ args.x }}")))["save.b"]["text"] == f"{{{{ {argument} }}}}"


def test_the_first_guard_of_a_choose_still_sees_the_result_before_the_call() -> None:
    call = '      - save: {kind: workbook, task: pick, args: {x: "{{ _prev }}"}}\n'
    pick = """    pick:
      - choose:
          - when: "{{ args.x }}"
            then: [a: {kind: noop, text: "{{ args.x }}"}, b: {kind: noop%s}]
"""
    assert tasks(playbook(call, pick % ""))["save.a"]["text"] == "{{ _prev }}"
    assert refused(playbook(call, pick % ', text: "{{ args.x }}"'))


@pytest.mark.parametrize(
    ("call", "shared", "reported"),
    [
        ('args: "{{ ctx.all }}"', "{kind: noop}", "written out"),
        ("args: {x: '{% if workload.api %}a{% endif %}'}", '{kind: noop, text: "a{{ args.x }}"}', "statements"),
        ("args: {x: .nan}", '{kind: noop, text: "a{{ args.x }}"}', "`.nan`"),
        (
            "args: {x: '{{ item }}'}",
            '{kind: noop, text: "{% for item in [1] %}{{ args.x }}{% endfor %}"}',
            "binds `item`",
        ),
        (PASS % "{do: continue}", "[{kind: noop}, {kind: noop}]", "no outcome of its own"),
        (PASS % "{do: continue}", f"{{kind: noop, {PASS % '{do: fail}'}}}", "both"),
    ],
)
def test_what_cannot_be_said_is_refused(call: str, shared: str, reported: str) -> None:
    message, _ = refused(playbook(f"      - save: {{kind: workbook, task: it, {call}}}\n", f"    it: {shared}\n"))
    assert reported in message


def test_the_reading_tasks_own_label_is_no_argument_of_a_list() -> None:
    call = '      - save: {kind: workbook, task: two, args: {x: "{{ _task }}"}}\n'
    assert "`_task`" in refused(playbook(call, TWO % ("{{ args.x }}", "")))[0]


def test_calls_that_double_their_tasks_are_stopped() -> None:
    doubling = "".join(
        f"    t{n}: [{{kind: workbook, task: t{n - 1}}}, {{kind: workbook, task: t{n - 1}}}]\n" for n in range(1, 31)
    )
    message, _ = refused(playbook("      - {kind: workbook, task: t30}\n", "    t0: {kind: noop}\n" + doubling))
    assert "more than 20,000 tasks" in message


@pytest.mark.parametrize("pair", ['"{{ args.x ~ args.x }}"', '["{{ args.x }}", "{{ args.x }}"]'])
def test_arguments_that_double_are_stopped(pair: str) -> None:
    doubling = "".join(f"    t{n}: {{kind: workbook, task: t{n - 1}, args: {{x: {pair}}}}}\n" for n in range(1, 41))
    text = playbook(
        "      - {kind: workbook, task: t40, args: {x: ab}}\n",
        '    t0: {kind: noop, text: "{{ args.x }}"}\n' + doubling,
    )
    assert "too" in refused(text)[0]


def test_calls_and_arguments_that_nest_without_end_are_stopped() -> None:
    def chain(length: int, argument: str) -> str:
        calls = "".join(
            f"    t{n}: {{kind: workbook, task: t{n - 1}, args: {{x: {argument}}}}}\n" for n in range(1, length + 1)
        )
        return playbook(
            f"      - {{kind: workbook, task: t{length}, args: {{x: 1}}}}\n", f"    t0: {{kind: noop}}\n{calls}"
        )

    assert "nest deeper than 64" in refused(chain(400, "2"))[0]
    assert "nests too deep" in refused(chain(60, '[[["{{ args.x }}"]]]'))[0]
    assert labels(chain(60, "2")) == ["task_1"]


LABELS = """    pair:
      - one: {kind: noop, text: a}
      - two: {kind: noop, text: "{{ one.x }} {{ args.n }}"}
"""


def test_tasks_of_a_list_read_each_other_by_their_own_labels() -> None:
    found = tasks(playbook("      - save: {kind: workbook, task: pair, args: {n: 1}}\n", LABELS))
    assert found["save.two"]["text"] == "{{ save.one.x }} {{ 1 }}"


@pytest.mark.parametrize(
    ("read", "canonical"),
    [
        ("{{ save }}", "{{ save.two }}"),
        ("{{ save.rows[0] }}", "{{ save.two.rows[0] }}"),
        ("{{ save.one.x }}", "{{ save.one.x }}"),
        ("{{ save | default(1) }}", "{{ save.two | default(1) }}"),
    ],
)
def test_the_label_of_a_call_reads_its_last_task_and_with_a_label_that_task(read: str, canonical: str) -> None:
    call = (
        f'      - save: {{kind: workbook, task: pair, args: {{n: 1}}}}\n      - use: {{kind: noop, text: "{read}"}}\n'
    )
    assert tasks(playbook(call, LABELS))["use"]["text"] == canonical


def test_a_nested_call_is_read_through_to_its_last_task() -> None:
    call = "      - save: {kind: workbook, task: outer}\n      - use: {kind: noop, text: '{{ save }}'}\n"
    outer = "    outer: [{kind: noop}, {inner: {kind: workbook, task: pair, args: {n: 2}}}]\n"
    assert tasks(playbook(call, LABELS + outer))["use"]["text"] == "{{ save.inner.two }}"


def test_an_argument_reads_the_callers_label_though_the_list_has_one_of_that_name() -> None:
    call = "      - one: {kind: noop, text: mine}\n      - save: {kind: workbook, task: pair, args: {n: '{{ one }}'}}\n"
    assert tasks(playbook(call, LABELS))["save.two"]["text"] == "{{ save.one.x }} {{ one }}"


@pytest.mark.parametrize(
    ("loop", "task"),
    [
        ("", f"{{kind: noop, {PASS % '{do: continue, set_ctx: {one: 1}}'}}}"),
        ("    loop: {in: [1], iterator: one}\n", "{kind: noop}"),
    ],
    ids=["ctx", "iter"],
)
def test_a_name_that_comes_before_labels_hides_them(loop: str, task: str) -> None:
    call = f"      - first: {task}\n      - save: {{kind: workbook, task: pair, args: {{n: 1}}}}\n"
    assert tasks(playbook(call, LABELS, loop))["save.two"]["text"] == "{{ one.x }} {{ 1 }}"


def test_an_argument_that_reads_its_own_call_is_refused_where_it_may_have_changed() -> None:
    call = (
        "      - save: {kind: workbook, task: pair, args: {n: '{{ save | default(0) }}'}}\n"
        f"      - again: {{kind: noop, {PASS % '{do: jump, to: save}'}}}\n"
    )
    assert "`save.two`" in refused(playbook(call, LABELS))[0]


def test_a_label_that_no_template_can_name_is_refused_where_it_is_read() -> None:
    assert (
        "`save-it.one`" in refused(playbook("      - save-it: {kind: workbook, task: pair, args: {n: 1}}\n", LABELS))[0]
    )
