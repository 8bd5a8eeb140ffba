"""500 playbooks of the older dialect, migrated, beside linting the result with nothing cached."""

from __future__ import annotations

from bench.generate_playbooks import write_files
from bench.measurement import Contestant, Goal, Row, best_of
from bench.workplace import Workplace, noetlc

_STEPS = 4
"""Steps of a file: about a hundred lines."""
_COUNT, _QUICK_COUNT = 500, 60
_HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: load_{number}
  path: bench/load_{number}
executor:
  kind: distributed
workload:
  api_url: https://api.example.com
  items: [1, 2, 3]
workflow:
"""
_STEP = """\
  - step: {name}
    desc: Load page by page
    spec: {{ next_mode: exclusive }}
    loop:
      in: "{{{{ workload.items }}}}"
      iterator: item
    tool:
      - fetch:
          kind: http
          url: "{{{{ workload.api_url }}}}/{name}/{{{{ iter.item }}}}"
          eval:
            # a busy server
            - expr: "{{{{ outcome.status == 'error' and outcome.http.status in [429, 503] }}}}"
              do: retry
              attempts: 5
              backoff: fixed
              delay: 1
            - else:
                do: continue
                set_iter: {{ rows: "{{{{ outcome.result.data.rows | default([]) }}}}" }}
      - count:
          kind: python
          args: {{ rows: "{{{{ iter.rows }}}}" }}
          code: result = len(rows)
          eval:
            - expr: "{{{{ outcome.status == 'success' and outcome.result == 0 }}}}"
              do: break
    next:
      - step: {following}
        when: "{{{{ event.name == 'loop.done' }}}}"
"""


def measure(workplace: Workplace) -> list[Row]:
    """Time `migrate` over the older files, and `lint` over what became of them."""
    count = _QUICK_COUNT if workplace.quick else _COUNT
    older, migrated = workplace.folder / "older", workplace.folder / "migrated"
    write_files(older, count, _older_playbook)
    write_files(migrated, count, _older_playbook)
    workplace.run(noetlc("migrate", migrated, "--write"))
    migrate = Contestant("migrate", lambda: workplace.run(noetlc("migrate", older, "--check"), codes=(1,)))
    lint = Contestant("lint", lambda: workplace.run(noetlc("lint", migrated)), workplace.forget_results)
    times = best_of([migrate, lint], workplace.rounds)
    note = f"{count / times['migrate']:,.0f} files/s against {count / times['lint']:,.0f}"
    goal = Goal("within three times", 3)
    return [Row(f"migrate {count} files", times["migrate"], "linting them", times["lint"], goal, note)]


def _older_playbook(number: int) -> str:
    names = ["start", *(f"load_{step}" for step in range(2, _STEPS + 1)), "finish"]
    steps = [_STEP.format(name=name, following=names[at + 1]) for at, name in enumerate(names[:-1])]
    return _HEAD.format(number=number) + "".join(steps) + "  - step: finish\n    tool: { kind: noop }\n"
