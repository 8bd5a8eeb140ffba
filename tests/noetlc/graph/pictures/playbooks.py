"""Playbooks to draw: made, not written, always the same for the same numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator

from noetlc.analysis.formulas import STEP_DONE
from noetlc.compile import compile_playbooks
from noetlc.graph.analyse import analyse
from noetlc.graph.report import GraphReport
from noetlc.net.net import Boundary, Gate, Net, NetArc, NetStep, StepKind, Where
from noetlc.net.program import nets_of
from noetlvm.record import changed

_VERBS = ("fetch", "load", "check", "merge", "clean", "notify", "store", "split", "rank", "score")
_NOUNS = ("orders", "users", "items", "prices", "events", "pages", "reports")
_HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: {name}, path: pictures/{name} }}
workload: {{ url: "https://api.example.com", pages: [1, 2, 3] }}
workflow:
"""
_TASKS = """\
    tool:
      - get: { kind: http, url: "{{ workload.url }}" }
      - keep:
          kind: noop
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
                - else: { then: { do: continue } }
"""
_SUGAR = """\
    tool:
      - choose:
          - when: "{{ workload.url }}"
            then:
              - one: { kind: noop }
          - else:
              then:
                - other: { kind: noop }
      - until:
          when: "{{ _prev.done }}"
          max: 20
          do:
            - poll: { kind: http, url: "{{ workload.url }}" }
"""
_LOOP = """\
    loop: {{ in: "{{{{ workload.pages }}}}", iterator: page, spec: {{ mode: parallel, max_in_flight: {width} }} }}
"""


def playbook(steps: int, seed: int = 3, name: str = "picture") -> str:
    """Return a playbook with branches, joins, loops, cycles, failure handlers and a step that nothing leads to."""
    chance = random.Random(seed)
    names = _names(steps, chance)
    return _HEAD.format(name=name) + "".join(line for number in range(steps) for line in _step(number, names, chance))


def _names(count: int, chance: random.Random) -> list[str]:
    names = ["start"]
    while len(names) < count:
        name = f"{chance.choice(_VERBS)}_{chance.choice(_NOUNS)}"
        names.append(name if name not in names[-60:] and count < 60 else f"{name}_{len(names)}")
    return names


def _step(number: int, names: list[str], chance: random.Random) -> Iterator[str]:
    yield f"  - step: {names[number]}\n"
    kind = chance.choice((_TASKS, _TASKS, _SUGAR, ""))
    looped = bool(kind) and chance.random() < 0.2
    if looped:
        yield _LOOP.format(width=chance.randint(1, 8))
    yield kind
    last = len(names) - 2
    if number >= last:
        return
    arcs = list(_arcs(number, names, chance, looped, fails=bool(kind)))
    mode = "inclusive" if len(arcs) > 1 and chance.random() < 0.25 else "exclusive"
    yield f"    next:\n      spec: {{ mode: {mode} }}\n      arcs:\n"
    for target, guard in arcs:
        yield (
            f'        - {{ step: {target}, when: "{{{{ {guard} }}}}" }}\n'
            if guard
            else f"        - {{ step: {target} }}\n"
        )


def _arcs(
    number: int, names: list[str], chance: random.Random, looped: bool, *, fails: bool
) -> Iterator[tuple[str, str]]:
    last = len(names) - 2
    if fails and chance.random() < 0.3:
        yield names[last], "event.name == 'step.failed'"
    if number > 6 and chance.random() < 0.08:
        yield names[number - chance.randint(1, 5)], "workload.again"
    if chance.random() < 0.04:
        yield names[number], "workload.once_more"
    for _ in range(chance.choice((0, 0, 0, 1, 2))):
        ahead = min(last, number + chance.randint(2, 6))
        yield names[ahead], f"workload.{chance.choice(_NOUNS)} == '{chance.choice(_VERBS)}'"
    yield names[min(last, number + 1)], f"event.name == '{'loop' if looped else 'step'}.done'" if looped else ""


def report_of(source: str, path: str = "playbook.yaml") -> GraphReport:
    """Compile a playbook and analyse its net."""
    compiled = compile_playbooks([(path, source.encode())])
    assert compiled.program is not None, [one.message for file in compiled.files for one in file.findings]
    return analyse(nets_of(compiled.program)[0], path)


HOSTILE = '</script><img src=x onerror="window.broken=1">\'"`\\ ]]> <!-- \x01\ud800 {{ }} | @@script@@ 名'


def hostile_report() -> GraphReport:
    """Return a report in which every text tries to break out."""
    plain = report_of(playbook(8))
    names = {step.name: f"{step.name} {HOSTILE}" for step in plain.net.steps}
    steps = tuple(
        changed(
            step, name=names[step.name], arcs=tuple(changed(arc, label=f"{arc.label}{HOSTILE}") for arc in step.arcs)
        )
        for step in plain.net.steps
    )
    return analyse(changed(plain.net, name=HOSTILE, steps=steps), HOSTILE)


def chain_report(steps: int) -> GraphReport:
    """Return the report of many steps in a row, with a way back here and there; nothing is compiled for it."""
    made = []
    for number in range(steps):
        targets = [target for target in (number + 1, number - 7 if number % 50 == 49 else -1) if 0 <= target < steps]
        arcs = tuple(
            NetArc(number, index, target, f"workload.way == {index}", False, Where("chain.yaml", number + 1, 1))
            for index, target in enumerate(targets)
        )
        done = Boundary(STEP_DONE, (tuple((arc.index,) for arc in arcs),) if arcs else ())
        where = Where("chain.yaml", number + 1, 1)
        made.append(
            NetStep(number, f"step_{number}", StepKind.ROUTING, False, Gate.OPEN, False, (done,), arcs, (), where)
        )
    return analyse(Net("chain", "tests/chain", tuple(made), 0), "chain.yaml")
