"""What `migrate` cannot keep is reported with code and place, and left as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetlc.migrate.constructs import CONSTRUCTS, Effect
from noetlc.migrate.migration import migrate_text
from noetlc.syntax.span import Source

HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: x, path: x }
workload: { items: [1, 2] }
workflow:
"""

CASES = {
    "R901": """\
  - step: start
    tool: { kind: python, code: result = 1 }
    case:
      - when: "{{ event.name == 'call.done' }}"
        then: [{ result: { from: data } }, { next: finish }]
  - step: finish
""",
    "R902": """\
  - step: start
    tool: [{ one: { kind: noop } }]
    finally: [{ two: { kind: noop } }]
""",
    "R903": """\
  - step: start
    loop: { in: "{{ workload.items }}", iterator: item, cursor: { kind: postgres } }
    tool: { kind: noop }
""",
    "R904": """\
  - step: start
    tool: { kind: noop }
    on_no_match: fail
""",
    "R905": """\
  - step: start
    tool: { kind: python, args: { home: "{{ env.HOME }}" }, code: result = home }
""",
    "R907": """\
  - step: start
    tool: [{ one: { kind: noop, eval: [{ else: { do: break, set_prev: 1 } }] } }]
""",
    "R908": """\
  - step: start
    tool: { kind: postgres, auth: "{{ args.pg }}", command: SELECT 1 }
""",
    "R909": """\
  - step: start
    loop: { in: "{{ workload.items }}", iterator: item }
    tool: { kind: noop }
    vars: { count: 1 }
vars: { count: 0 }
""",
    "R910": """\
  - step: start
    tool: { kind: python, args: { x: "{{ result.x }}" }, code: result = x }
""",
    "R911": """\
  - step: start
    tool: { kind: noop }
    sink: { table: items }
""",
    "R912": """\
  - step: start
    loop: { in: "{{ workload.items }}", iterator: item }
    tool: { kind: python, code: result = 1 }
    case:
      - when: "{{ event.name == 'call.error' }}"
        then: { report: { tool: { kind: noop } } }
""",
    "R913": """\
  - step: start
    tool: { kind: snowflake, query: SELECT 1 }
""",
    "R917": """\
  - step: start
    tool: { kind: python, code: result = 1, retry: { max_attempts: 2, stop_when: "{{ outcome.result }}" } }
""",
    "R914": """\
  - step: start
    input: { n: 1 }
    tool:
      - one: { kind: python, code: result = n }
      - two: { kind: python, code: result = n + 1 }
""",
    "R915": """\
  - step: start
    tool:
      - count:
          kind: python
          args: { n: "{{ vars.n | default(0) }}" }
          code: result = n + 1
          eval: [{ else: { do: continue, set_vars: { n: "{{ outcome.result }}" } } }]
    next:
      - { step: start, when: "{{ ctx.more | default(false) }}" }
""",
}


def test_every_construct_that_needs_a_hand_is_tested() -> None:
    assert {code for code, row in CONSTRUCTS.items() if row.effect is Effect.HAND} == CASES.keys()


@pytest.mark.parametrize("code", CASES)
def test_it_is_reported_at_its_place_with_what_to_do(code: str) -> None:
    text = HEAD + CASES[code]
    found = [change for change in migrate_text(text).open_changes if change.code == code]
    assert len(found) == 1
    assert Source("x.yaml", text).position(found[0].span.start).line > HEAD.count("\n")
    assert found[0].message
    assert found[0].construct.meaning


@pytest.mark.parametrize("code", CASES)
def test_a_second_migration_changes_nothing(code: str) -> None:
    after = migrate_text(HEAD + CASES[code]).after
    assert migrate_text(after).after == after


@pytest.mark.parametrize(
    "text", ["", "[1, 2]", "a: [", "just text", "kind: Subscription\nspec: { x: 1 }\n", "a: &a [*a]"]
)
def test_what_is_no_playbook_stays_as_it_is(text: str) -> None:
    assert migrate_text(text).after == text


def test_every_row_of_the_page_names_a_case_that_exists() -> None:
    root = Path(__file__).parents[3]
    named = {"test_by_hand.py[" + code + "]" for code in CASES}
    named |= {file.stem for file in (root / "conformance" / "migrate").glob("*.yaml")}
    rows = [line for line in (root / "docs" / "migrate.md").read_text("utf-8").splitlines() if line.startswith("| R")]
    assert [row.split()[1] for row in rows if row.split("`")[-2] not in named] == []
    assert {row.split()[1] for row in rows} == CONSTRUCTS.keys()
