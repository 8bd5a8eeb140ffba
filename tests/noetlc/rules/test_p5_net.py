"""Rules about what steps read and write on their ways."""

from __future__ import annotations

from tests.noetlc.rules.lint_text import lint

SETS = "kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {total: 1}}}}]}}"


def messages(text: str, code: str) -> list[str]:
    return [finding.message for finding in lint(text, code)]


def diamond(reader: str) -> str:
    return f"""
    - step: start
      next:
        arcs:
          - {{step: count, when: "{{{{ workload.rows | default([]) }}}}"}}
          - {{step: report}}
    - step: count
      tool: {{{SETS}}}
      next: {{arcs: [{{step: report}}]}}
    - step: report
      tool: {reader}
    """


def test_the_way_without_a_write_is_shown() -> None:
    text = diamond('{kind: http, url: "https://example.org/{{ ctx.total }}"}')
    assert messages(text, "P510") == ["`ctx.total` is not written on the path start → report"]


def test_a_default_stands_in_for_what_is_not_written() -> None:
    assert messages(diamond('{kind: http, url: "https://example.org/{{ ctx.total | default(0) }}"}'), "P510") == []


def test_what_the_reader_writes_itself_is_taken_on_trust() -> None:
    reader = f'[{{{SETS}}}, {{kind: http, url: "https://example.org/{{{{ ctx.total }}}}"}}]'
    assert messages(diamond(reader), "P510") == []


def test_a_write_in_the_workbook_counts_for_the_step_that_uses_it() -> None:
    text = f"""
    apiVersion: noetl.io/v2
    kind: Playbook
    metadata: {{name: demo, path: demo/demo}}
    workflow:
      - step: start
        tool: {{kind: workbook, task: count}}
        next: {{arcs: [{{step: report}}]}}
      - step: report
        tool: {{kind: http, url: "https://example.org/{{{{ ctx.total }}}}"}}
    workbook:
      tasks:
        count: {{{SETS}}}
    """
    assert messages(text, "P510") == []


def test_an_argument_is_passed_from_step_to_step() -> None:
    text = """
    - step: start
      next: {arcs: [{step: middle, args: {table: hotels}}]}
    - step: middle
      next: {arcs: [{step: load}]}
    - step: load
      tool: {kind: http, url: "https://example.org/{{ args.table }}"}
    """
    assert messages(text, "P511") == []


def test_an_argument_that_no_arc_provides_gets_a_suggestion() -> None:
    text = """
    - step: start
      next: {arcs: [{step: load, args: {table: hotels}}]}
    - step: load
      tool: {kind: http, url: "https://example.org/{{ args.tabel }}"}
    """
    (finding,) = lint(text, "P511")
    assert finding.message == "no arc provides `args.tabel`"
    assert "table" in finding.help


def test_the_way_without_the_argument_is_shown() -> None:
    text = """
    - step: start
      next:
        arcs:
          - {step: load, when: "{{ workload.all | default(false) }}", args: {table: hotels}}
          - {step: middle}
    - step: middle
      next: {arcs: [{step: load}]}
    - step: load
      tool: {kind: http, url: "https://example.org/{{ args.table }}"}
    """
    assert messages(text, "P511") == ["no arc provides `args.table` on the path start → middle → load"]


def test_a_reader_beside_a_writer_is_a_race() -> None:
    text = f"""
    - step: start
      next: {{spec: {{mode: inclusive}}, arcs: [{{step: one}}, {{step: two}}]}}
    - step: one
      tool: {{{SETS}}}
    - step: two
      tool: {{kind: http, url: "https://example.org/{{{{ ctx.total | default(0) }}}}"}}
    """
    assert messages(text, "P512") == ["`one` writes `ctx.total`, and can run at the same time as `two`"]


def test_a_second_run_of_one_step_races_with_the_first() -> None:
    text = f"""
    - step: start
      next: {{spec: {{mode: inclusive}}, arcs: [{{step: one}}, {{step: one}}]}}
    - step: one
      tool: {{{SETS}}}
    """
    assert messages(text, "P512") == ["`one` writes `ctx.total`, and can run at the same time as a second run of it"]


def test_an_empty_guard_of_one_playbook_hides_no_race_of_the_next() -> None:
    """What is known of routers is shared by all playbooks of a process: an empty guard is another than none."""
    text = f"""
    - step: start
      next: {{spec: {{mode: inclusive}}, arcs: [{{step: one%s}}, {{step: one%s}}]}}
    - step: one
      tool: {{{SETS}}}
    """
    guarded, unguarded = text % ((", when: ''",) * 2), text % ("", "")
    assert [len(messages(one, "P512")) for one in (guarded, unguarded, guarded)] == [0, 1, 0]


def test_steps_one_after_the_other_do_not_race() -> None:
    text = f"""
    - step: start
      next: {{spec: {{mode: inclusive}}, arcs: [{{step: one}}]}}
    - step: one
      tool: {{{SETS}}}
      next: {{arcs: [{{step: two}}]}}
    - step: two
      tool: {{{SETS}}}
    """
    assert messages(text, "P512") == []


def test_handing_on_all_of_ctx_reads_every_key() -> None:
    text = f"""
    - step: start
      tool: {{{SETS}}}
      next: {{arcs: [{{step: report, args: {{all: "{{{{ ctx }}}}"}}}}]}}
    - step: report
    """
    assert messages(text, "P513") == []
