"""Flow: tasks, rules, arcs and blocks that can never do what they are for."""

from __future__ import annotations

import pytest

from tests.noetlc.rules.lint_text import lint
from tests.noetlc.rules.marked_text import found_at_marks, policy, task

NOOP_BREAKS = "{kind: noop, spec: {policy: {rules: [{else: {then: {do: break}}}]}}}"
JUMP = "{kind: noop, spec: {policy: {rules: [{else: {then: {do: jump, to: TO}}}]}}}"


def pipeline(*entries: str) -> str:
    return "- step: a\n  tool:\n" + "".join(f"    - {entry}\n" for entry in entries)


def jump(to: str) -> str:
    return JUMP.replace("TO", to)


@pytest.mark.parametrize(
    "text",
    [
        "- step: start\n  tool: {kind: noop}\n- step: «finish\n",
        "- step: «finish\n  tool: []\n",
        "- step: «finish\n  desc: The end\n",
    ],
)
def test_empty_step_is_found(text: str) -> None:
    (finding,) = found_at_marks(text, "P401")
    assert "`finish`" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        "- step: a\n  next: {arcs: [{step: a}]}\n",
        "- step: a\n  tool: 3\n",
        "- step: a\n  next: [{step: a}]\n",
        "- step: a\n  pipe: [{kind: noop}]\n",
    ],
)
def test_step_that_routes_or_could_not_be_read_is_not_empty(text: str) -> None:
    assert lint(text, "P401") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            pipeline(f"one: {NOOP_BREAKS}", "«two: {kind: noop}", "three: {kind: noop}"),
            "`two`, `three` are never reached",
        ),
        (pipeline(f"one: {jump('three')}", "«two: {kind: noop}", "three: {kind: noop}"), "`two` is never reached"),
        (pipeline(f"one: {NOOP_BREAKS}", "«choose: [{when: true, then: [{kind: noop}]}]"), "the `choose` is never"),
        (pipeline("while: {when: true, do: [{kind: noop}]}", "«two: {kind: noop}"), "`two` is never reached"),
        (pipeline(f"until: {{when: '{{{{ ctx.a }}}}', do: [{{one: {NOOP_BREAKS}}}]}}", "«two: {kind: noop}"), "`two`"),
        (
            pipeline(
                f"choose: [{{when: '{{{{ ctx.a }}}}', then: [{{one: {NOOP_BREAKS}}}, {{«two: {{kind: noop}}}}]}}]"
            ),
            "`two` is never reached",
        ),
    ],
)
def test_task_that_nothing_leads_to_is_found(text: str, message: str) -> None:
    (finding,) = found_at_marks(text, "P402")
    assert message in finding.message
    assert len(finding.related) == 1


@pytest.mark.parametrize(
    "text",
    [
        pipeline("one: {kind: http, url: 'https://example.org'}", "two: {kind: noop}"),
        pipeline(f"one: {jump('tow')}", "two: {kind: noop}"),
        pipeline(f"one: {jump('three')}", f"two: {NOOP_BREAKS}", f"three: {jump('two')}"),
        pipeline("while: {when: false, do: [{kind: noop}]}", "two: {kind: noop}"),
        pipeline("choose: [{when: true, then: []}, {else: {then: [{kind: noop}]}}]", "two: {kind: noop}"),
    ],
)
def test_task_that_is_reached_or_reported_elsewhere_is_not_reported_again(text: str) -> None:
    assert lint(text, "P402") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (pipeline("one: {kind: noop}", f"two: {jump('one')}".replace("jump,", "«jump,")), "`two` jumps back to `one`"),
        (pipeline(f"one: {jump('one')}".replace("jump,", "«jump,")), "`one` jumps back to `one`"),
        (pipeline("while: {when: «true, do: [{kind: noop}]}"), "this `while` never ends"),
        (
            pipeline(
                "one: {kind: http, url: 'https://example.org', spec: {policy: {rules: "
                "[{when: \"{{ outcome.status == 'error' }}\", then: {do: retry, attempts: 2}}, "
                "{else: {then: {do: «jump, to: one}}}]}}}"
            ),
            "no task on the way can end the pipeline",
        ),
    ],
)
def test_circle_without_a_way_out_is_found(text: str, message: str) -> None:
    (finding,) = found_at_marks(text, "P403")
    assert message in finding.message


@pytest.mark.parametrize(
    "text",
    [
        pipeline("one: {kind: http, url: 'https://example.org'}", f"two: {jump('one')}"),
        pipeline(f"while: {{when: true, do: [{NOOP_BREAKS}]}}"),
        pipeline("until: {when: false, do: [{kind: noop}]}"),
        pipeline("one: {kind: workbook, task: w}", f"two: {jump('one')}"),
        pipeline("while: {when: '{{ ctx.more }}', do: [{kind: noop}]}"),
    ],
)
def test_circle_with_a_way_out_is_not_reported(text: str) -> None:
    assert lint(text, "P403") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (task("{do: retry, attempts: «1}"), "the first run counts"),
        (task("{do: «retry, attempts: 3}", "noop"), "is a `noop`"),
        (task("{do: «retry, attempts: 3}"), "does not test the outcome"),
        (
            policy("- when: \"{{ outcome.status == 'ok' }}\"\n  then: {do: «retry, attempts: 3}"),
            "when it has succeeded",
        ),
        (policy("- when: '{{ ctx.again }}'\n  then: {do: «retry, attempts: 3}"), "does not test the outcome"),
    ],
)
def test_retry_that_changes_nothing_is_found(text: str, message: str) -> None:
    (finding,) = found_at_marks(text, "P404")
    assert message in finding.message


@pytest.mark.parametrize(
    "rules",
    [
        "- when: \"{{ outcome.status == 'ok' }}\"\n  then: {do: continue}\n- else: {then: {do: retry, attempts: 3}}",
        "- when: \"{{ outcome.status == 'ok' and outcome.result.busy }}\"\n  then: {do: retry, attempts: 3}",
        "- when: '{{ _attempt < 3 }}'\n  then: {do: retry, attempts: 3}",
        "- when: '{{ ctx.n < 3 }}'\n  then: {do: retry, attempts: 3, set_ctx: {n: '{{ ctx.n + 1 }}'}}",
    ],
)
def test_retry_that_may_end_differently_is_not_reported(rules: str) -> None:
    assert lint(policy(rules), "P404") == []


@pytest.mark.parametrize(
    "rules",
    [
        "- when: '{{ ctx.a }}'\n  then: {do: fail}\n- when: «'{{  ctx.a  }}'\n  then: {do: break}",
        "- when: '{{ ctx.a }}'\n  then: {do: fail}\n- when: «'{{ ctx.b and ctx.a }}'\n  then: {do: break}",
        "- when: '{{ ctx.a == 1 or ctx.b }}'\n  then: {do: fail}\n- when: «'{{ ctx.b }}'\n  then: {do: break}",
        "- when: true\n  then: {do: fail}\n- «else: {then: {do: break}}",
        "- when: '{{ ctx.a }}'\n  then: {do: fail}\n- when: '{{ ctx.b }}'\n  then: {do: fail}\n"
        "- when: «'{{ ctx.a or ctx.b }}'\n  then: {do: break}",
    ],
)
def test_rule_that_an_earlier_one_covers_is_found(rules: str) -> None:
    (finding,) = found_at_marks(policy(rules), "P405")
    assert finding.related[0].span.start < finding.span.start


@pytest.mark.parametrize(
    "rules",
    [
        "- when: '{{ ctx.a and ctx.b }}'\n  then: {do: fail}\n- when: '{{ ctx.a }}'\n  then: {do: break}",
        "- when: \"{{ ctx.a == 'x y' }}\"\n  then: {do: fail}\n- when: \"{{ ctx.a == 'x  y' }}\"\n  then: {do: break}",
        "- when: '{{ ctx.a }}'\n  then: {do: fail}\n- when: '{{ ctx.a or ctx.b }}'\n  then: {do: break}",
        "- when: false\n  then: {do: fail}\n- else: {then: {do: break}}",
        "- else: {then: {do: fail}}\n- when: '{{ ctx.a }}'\n  then: {do: break}",
    ],
)
def test_rule_that_may_still_match_is_not_reported(rules: str) -> None:
    assert lint(policy(rules), "P405") == []


def test_admission_rule_that_an_earlier_one_covers_is_found() -> None:
    text = """\
- step: a
  spec:
    policy:
      admit:
        rules:
          - when: "{{ ctx.a }}"
            then: {allow: true}
          - when: «"{{ args.b and ctx.a }}"
            then: {allow: false}
          - else:
              then: {allow: false}
  tool: {kind: noop}
"""
    (finding,) = found_at_marks(text, "P405")
    assert "admission rule" in finding.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (pipeline("while: {when: «false, do: [{kind: noop}]}"), "never runs"),
        (pipeline("until: {when: «true, do: [{kind: noop}]}"), "runs once"),
        (pipeline("until: {when: «'{{ 1 > 2 }}', do: [{kind: noop}]}"), "never ends by itself"),
        (pipeline("«choose: []"), "has no branches"),
        (pipeline("choose: [{when: true, then: []}, {«else: {then: []}}]"), "an earlier one always matches"),
    ],
)
def test_sugar_that_decides_nothing_is_found(text: str, message: str) -> None:
    (finding,) = found_at_marks(text, "P406")
    assert message in finding.message


def test_sugar_that_decides_is_not_reported() -> None:
    text = pipeline(
        "choose: [{when: '{{ ctx.a }}', then: []}, {else: {then: []}}]",
        "while: {when: '{{ ctx.a }}', do: [{kind: noop}]}",
        "until: {when: '{{ ctx.a }}', do: [{kind: noop}]}",
    )
    assert lint(text, "P406") == []


ROUTED = """\
- step: a
  loop: LOOP
  tool: TOOL
  next:
    spec: {mode: MODE}
    arcs:
      - step: «b
ARCS
- step: b
  tool: {kind: noop}
"""
HTTP = "{kind: http, url: 'https://example.org'}"
FAILED = "      - {step: b, when: \"{{ event.name == 'step.failed' }}\"}\n"


def routed(arcs: str = "", tool: str = HTTP, mode: str = "exclusive", loop: str | None = None) -> str:
    text = ROUTED.replace("TOOL", tool).replace("MODE", mode).replace("ARCS\n", arcs)
    return text.replace("  loop: LOOP\n", f"  loop: {loop}\n" if loop else "")


def test_arc_that_is_taken_after_a_failure_too_is_noted() -> None:
    (finding,) = found_at_marks(routed(), "P407")
    assert "`a` can fail, and this arc leads to `b`" in finding.message
    assert "'step.done'" in finding.help


def test_the_help_for_an_arc_of_a_loop_names_the_event_of_loops() -> None:
    (finding,) = found_at_marks(routed(loop="{in: [1], iterator: item}"), "P407")
    assert "'loop.done'" in finding.help


def test_arc_after_one_that_takes_failures_is_silent_if_exclusive() -> None:
    text = "- step: a\n  tool: " + HTTP + "\n  next:\n    spec: {mode: MODE}\n    arcs:\n" + FAILED
    text += "      - {step: «b, when: '{{ ctx.x | default(1) }}'}\n- step: b\n  tool: {kind: noop}\n"
    assert lint(text.replace("MODE", "exclusive").replace("«", ""), "P407") == []
    (finding,) = found_at_marks(text.replace("MODE", "inclusive"), "P407")
    assert "`b`" in finding.message


@pytest.mark.parametrize(
    "tool",
    [
        "{kind: noop}",
        "{kind: http, url: 'https://example.org', spec: {policy: {rules: [{else: {then: {do: continue}}}]}}}",
    ],
)
def test_step_that_cannot_fail_may_have_unguarded_arcs(tool: str) -> None:
    assert lint(routed(tool=tool).replace("«", ""), "P407") == []


def test_step_with_a_time_limit_can_fail_whatever_its_tool() -> None:
    text = routed(tool="{kind: noop}").replace("tool:", "spec: {policy: {lifecycle: {timeout_s: 5}}}\n  tool:", 1)
    (finding,) = found_at_marks(text, "P407")
    assert "`a` can fail" in finding.message


@pytest.mark.parametrize(
    "when",
    ["\"{{ event.name == 'step.done' }}\"", "\"{{ event.status == 'success' and ctx.x | default(1) }}\"", "false"],
)
def test_arc_that_looks_at_the_event_is_silent(when: str) -> None:
    text = f"- step: a\n  tool: {HTTP}\n  next: {{arcs: [{{step: a, when: {when}}}]}}\n"
    assert lint(text, "P407") == []


def test_arc_behind_one_that_always_holds_is_found() -> None:
    text = "- step: a\n  next:\n    arcs:\n      - {step: a}\n      - {step: «a, when: '{{ ctx.x }}'}\n"
    (finding,) = found_at_marks(text, "P408")
    assert "always taken" in finding.message
    assert len(finding.related) == 1


def test_arc_with_the_guard_of_an_earlier_one_is_found() -> None:
    arcs = "      - {step: a, when: '{{ ctx.x }}'}\n      - {step: «a, when: '{{ ctx.x }}'}\n"
    (finding,) = found_at_marks(f"- step: a\n  next:\n    arcs:\n{arcs}", "P408")
    assert "taken whenever this one could be" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        "- step: a\n  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: a}]}\n",
        "- step: a\n  next: {arcs: [{step: a, when: [1]}, {step: a}]}\n",
        "- step: a\n  next: {arcs: [{step: a, condition: '{{ ctx.x }}'}, {step: a}]}\n",
        "- step: a\n  next: {arcs: [{step: a, when: '{{ ctx.x }}'}, {step: a}]}\n",
    ],
)
def test_arc_that_may_still_fire_is_not_reported(text: str) -> None:
    assert lint(text, "P408") == []
