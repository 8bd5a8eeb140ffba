"""Writes realistic playbooks of any length, the same ones each time, for the benchmarks to lint.

A playbook is a chain of steps, each cut from one of a few shapes (paged fetch, transformation, storage, gate,
fan-out). Inputs have names of their own in each playbook, so most templates are new to a linter that remembers those
of other files; guards such as `outcome.status == 'error'` recur, as they do in real ones. They lint clean of errors:
a linter that stops early on a broken file would look fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from textwrap import indent

_SUBJECTS = ("orders", "hotels", "invoices", "patients", "tickets", "parcels", "meters", "flights", "leads", "claims")
_FIELDS = ("id", "name", "status", "amount", "city", "email", "updated_at", "currency", "score", "region")

_HEAD = """\
# {subject}: generated playbook {number}
apiVersion: noetl.io/v2
kind: Playbook

metadata:
  name: {subject}_{number}
  path: bench/{subject}/{number}

keychain:
  - name: api_token
    kind: bearer
  - name: pg_main
    kind: postgres_credential

workload:
  {site}_url: "https://api.example.com/{subject}/v{version}"
  {site}_size: {size}
  {site}_batch: {batch}
  {site}_endpoints:
    - {{ name: {subject}, path: /{subject} }}
    - {{ name: {field}, path: /{subject}/{field} }}

workflow:
  - step: start
    desc: "Choose where to begin"
    next:
      arcs:
        - step: {first}
"""

_LAST = """\
- step: {name}
  desc: "Record how the run ended"
  tool:
    - record:
        kind: postgres
        auth: pg_main
        command: "INSERT INTO runs (execution, subject) VALUES (%(run)s, %(subject)s)"
        params: {{ run: "{{{{ execution_id }}}}", subject: "{{{{ workload.{site}_url }}}}" }}
"""

_PAGED_FETCH = """\
- step: {name}
  desc: "Fetch all {subject}, page by page"
  loop:
    in: "{{{{ workload.{site}_endpoints }}}}"
    iterator: endpoint
    spec:
      mode: parallel
      max_in_flight: {batch}
  tool:
    - init:
        kind: noop
        spec:
          policy:
            rules:
              - else:
                  then: {{ do: continue, set_iter: {{ page: 1, has_more: true }} }}
    - fetch_page:
        kind: http
        method: GET
        url: "{{{{ workload.{site}_url }}}}{{{{ iter.endpoint.path }}}}"
        auth: api_token
        params:
          page: "{{{{ iter.page }}}}"
          size: "{{{{ [workload.{site}_size, {size}] | min }}}}"
        spec:
          timeout: {{ connect: 5, read: {delay} }}
          policy:
            rules:
              # the service is busy: wait and try again
              - when: "{{{{ outcome.status == 'error' and outcome.http.status in [429, 500, 503] }}}}"
                then: {{ do: retry, attempts: {attempts}, backoff: exponential, delay: 1.5 }}
              - when: "{{{{ outcome.status == 'error' }}}}"
                then: {{ do: fail }}
              - else:
                  then:
                    do: continue
                    set_iter:
                      has_more: "{{{{ outcome.result.data.paging.more | default(false) }}}}"
                      {field}: "{{{{ outcome.result.data.{subject} | default([]) }}}}"
    - store:
        kind: postgres
        auth: pg_main
        command: |
          INSERT INTO {subject}_{field} (endpoint, payload)
          VALUES (%(endpoint)s, %(payload)s)
        params:
          endpoint: "{{{{ iter.endpoint.name }}}}"
          payload: "{{{{ iter.{field} | tojson }}}}"
    - paginate:
        kind: noop
        spec:
          policy:
            rules:
              - when: "{{{{ iter.has_more and iter.page < {limit} }}}}"
                then: {{ do: jump, to: fetch_page, set_iter: {{ page: "{{{{ iter.page + 1 }}}}" }} }}
              - else:
                  then: {{ do: break }}
  next:
    spec: {{ mode: exclusive }}
    arcs:
      - step: {next}
        when: "{{{{ event.name == 'loop.done' }}}}"
      - step: {last}
        when: "{{{{ event.name == 'step.failed' }}}}"
"""

_TRANSFORM = """\
- step: {name}
  desc: "Add up the {field} of {subject}"
  tool:
    - load:
        kind: postgres
        auth: pg_main
        command: "SELECT {field}, amount FROM {subject} WHERE amount > %(least)s LIMIT {limit}"
        params: {{ least: {size} }}
        spec:
          policy:
            rules:
              - when: "{{{{ outcome.status == 'error' and outcome.pg.code == '40001' }}}}"
                then: {{ do: retry, attempts: {attempts}, backoff: linear, delay: 2 }}
              - when: "{{{{ outcome.status == 'error' }}}}"
                then: {{ do: fail }}
              - else:
                  then: {{ do: continue }}
    - total:
        kind: python
        args: {{ rows: "{{{{ _prev.rows }}}}", factor: {factor} }}
        code: |
          def main(rows, factor):
              totals = {{}}
              for row in rows:
                  key = row["{field}"]
                  totals[key] = totals.get(key, 0) + row["amount"] * factor
              return totals
        spec:
          policy:
            rules:
              - when: "{{{{ outcome.status == 'error' }}}}"
                then: {{ do: fail }}
              - else:
                  then:
                    do: continue
                    set_ctx: {{ {name}_count: "{{{{ outcome.result | length }}}}" }}
  next:
    arcs:
      - step: {next}
        when: "{{{{ event.name == 'step.done' and ctx.{name}_count > {attempts} }}}}"
        args: {{ count: "{{{{ ctx.{name}_count }}}}", source: {subject} }}
      - step: {last}
        when: "{{{{ event.name in ['step.done', 'step.failed'] }}}}"
"""

_GATE = """\
- step: {name}
  desc: "Tell the {subject} service, in working hours only"
  spec:
    policy:
      admit:
        rules:
          - when: "{{{{ workload.{site}_batch > {attempts} or args.source == '{subject}' }}}}"
            then: {{ allow: true }}
          - else:
              then: {{ allow: false }}
      lifecycle: {{ timeout_s: {limit} }}
  tool:
    - notify:
        kind: http
        method: POST
        url: "https://hooks.example.com/{subject}/{field}"
        auth: api_token
        json:
          text: "{{{{ execution_id }}}} reached {name} for {{{{ workload.{site}_url | upper }}}}"
          size: "{{{{ workload.{site}_size * {factor} if workload.{site}_batch > {batch} else {size} }}}}"
        spec:
          policy:
            rules:
              - when: "{{{{ outcome.status == 'error' and outcome.error.retryable }}}}"
                then: {{ do: retry, attempts: {attempts}, backoff: exponential, delay: 0.5 }}
              - when: "{{{{ outcome.status == 'error' }}}}"
                then: {{ do: fail }}
              - else:
                  then: {{ do: continue }}
  next:
    arcs:
      - step: {next}
        when: "{{{{ event.name == 'step.done' }}}}"
      - step: {last}
        when: "{{{{ event.name == 'step.failed' }}}}"
"""

_FAN_OUT = """\
- step: {name}
  next:
    spec: {{ mode: inclusive }}
    arcs:
      - step: {next}
      - step: {name}_audit
        when: "{{{{ workload.{site}_batch >= {factor} }}}}"
        args: {{ at: {limit} }}
- step: {name}_audit
  tool:
    kind: postgres
    auth: pg_main
    command: "INSERT INTO audit (subject, at) VALUES (%s, %s)"
    params: ["{subject}.{field}", "{{{{ args.at }}}}"]
"""

_SHAPES = (("fetch", _PAGED_FETCH), ("total", _TRANSFORM), ("notify", _GATE), ("split", _FAN_OUT))
"""Each shape of a step, and the verb that its name begins with."""
_END = "finish"


def playbook(number: int, lines: int) -> str:
    """Return the playbook of that number, of at most about `lines` lines."""
    random = Random(number)
    subject = random.choice(_SUBJECTS)
    site = f"{subject}_{number}"
    steps = list(_chain(random, lines - _length(_HEAD) - _length(_LAST)))
    names = [*(f"{verb}_{index}" for index, (verb, _) in enumerate(steps, 1)), _END]
    head = _filled(_HEAD, random, site=site, subject=subject, number=number, first=names[0])
    body = [
        _filled(shape, random, site=site, name=names[index], next=names[index + 1], last=_END)
        for index, (_, shape) in enumerate(steps)
    ]
    return head + indent("".join([*body, _filled(_LAST, random, site=site, name=_END)]), "  ")


def write_playbooks(folder: Path, count: int, lines: int) -> list[Path]:
    """Write the first `count` playbooks into `folder`, some in folders of their own, and return their paths."""
    return write_files(folder, count, lambda number: playbook(number, lines))


def write_files(folder: Path, count: int, text_of: Callable[[int], str]) -> list[Path]:
    """Write `count` numbered YAML files, fifty to a folder."""
    files = [folder / f"part_{number // 50:02}" / f"file_{number:04}.yaml" for number in range(count)]
    for number, file in enumerate(files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text_of(number), encoding="utf-8")
    return files


def _chain(random: Random, lines: int) -> Iterator[tuple[str, str]]:
    """Draw shapes until no further one fits."""
    while fitting := [(verb, shape) for verb, shape in _SHAPES if _length(shape) <= lines]:
        verb, shape = random.choice(fitting)
        lines -= _length(shape)
        yield verb, shape


def _filled(shape: str, random: Random, **names: object) -> str:
    values: dict[str, object] = {
        "subject": random.choice(_SUBJECTS),
        "field": random.choice(_FIELDS),
        "version": random.randint(1, 9),
        "size": random.randint(10, 5_000),
        "batch": random.randint(2, 64),
        "delay": random.randint(5, 60),
        "attempts": random.randint(2, 9),
        "limit": random.randint(100, 100_000),
        "factor": random.randint(2, 999),
    }
    return shape.format_map(values | names)


def _length(shape: str) -> int:
    return shape.count("\n")
