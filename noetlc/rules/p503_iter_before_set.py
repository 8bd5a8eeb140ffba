from itertools import chain

from noetlc.analysis.flow import Flow
from noetlc.analysis.model import Owner, Site, patches, thens
from noetlc.analysis.names import Access, Reading
from noetlc.rules.rule import Findings, Model, Rule, Severity
from noetlc.syntax import ast
from noetlvm.language.scopes import TemplatePosition, given_fields
from noetlvm.record import Record


class _Writes(Record):
    """What is known under `iter` in one pipeline, by point and key."""

    bits: dict[str, int]
    """A bit for each key that some task writes."""
    surely: list[int]
    maybe: list[int]
    numbers: dict[int, int]
    """A point's number, by identity of its task, or of the guard of its block."""
    given: frozenset[str]


class IterBeforeSet(Rule):
    severity = Severity.WARNING
    summary = "A template reads `iter.<name>` where the pipeline may not have set it yet."
    why = (
        "A value that is not set is undefined: an error in an input, false in a `when`. A common case is a page "
        "number that is set only after the first page."
    )
    example = """
      - step: pages
        loop: {in: [hotels, rooms], iterator: table}
        tool:
    +     - begin:
    +         kind: noop
    +         spec:
    +           policy:
    +             rules:
    +               - else:
    +                   then: {do: continue, set_iter: {page: 1}}
          - fetch:
              kind: http
              url: https://example.org/items
              params: {page: "{{ iter.page }}"}
          - more:
              kind: noop
              spec:
                policy:
                  rules:
                    - when: "{{ _prev.data.more }}"
    -                 then: {do: jump, to: fetch, set_iter: {page: 2}}
    +                 then: {do: jump, to: fetch, set_iter: {page: "{{ iter.page + 1 }}"}}
                    - else:
                        then: {do: break}
    """
    covers = ("S10", "formal §7.1", "step spec §6.3")

    def check(self, model: Model) -> Findings:
        known: dict[Owner, _Writes | None] = {}
        handled = _handled(model)
        for reading in model.readings:
            owner = reading.site.owner
            if (
                owner is None
                or not owner.loops
                or reading.site.position in (TemplatePosition.LOOP_IN, TemplatePosition.LOOP_SPEC)
            ):
                continue
            for use in reading.names.uses:
                if use.name != "iter" or not use.fields or use.is_optional:
                    continue
                if owner not in known:
                    known[owner] = _writes(model, owner)
                writes = known[owner]
                if writes and (owner, use.fields[0].name) not in handled:
                    yield from self._check_use(model, reading, use.fields[0], writes)

    def _check_use(self, model: Model, reading: Reading, field: Access, writes: _Writes) -> Findings:
        site, name = reading.site, field.name
        number = writes.numbers.get(id(site.task.task) if site.task else id(site.scalar))
        if name in writes.given or number is None:
            return
        place = model.place(site, field.span)
        bit = writes.bits.get(name, 0)
        if not bit:
            meant = model.suggestions.did_you_mean(name, chain(writes.bits, writes.given))
            help = meant or f"set it first: `set_iter: {{ {name}: … }}`"
            yield self.finding(place, f"no task of the step sets `iter.{name}`", help)
        elif not writes.maybe[number] & bit:
            help = f"set it in an earlier task: `set_iter: {{ {name}: … }}`, or write `iter.{name} | default(…)`"
            yield self.finding(place, f"`iter.{name}` is read before any task has set it", help)
        elif not writes.surely[number] & bit and not site.is_guard:
            help = f"set it before the first round, or write `iter.{name} | default(…)`"
            yield self.finding(place, f"`iter.{name}` is not set yet on some path to this task", help)


def _writes(model: Model, owner: Owner) -> _Writes | None:
    """Work out what is set where; None where the flow is not known well enough."""
    flow = model.flows[owner]
    if not flow.is_certain or any(view.kind == "workbook" for view in model.tasks_by_owner[owner]):
        return None
    bits: dict[str, int] = {}
    given_by_point = [_set_by(point.entry, bits) for point in flow.points]
    if not flow.can_follow(len(bits)):
        return None
    surely, maybe = flow.before(given_by_point)
    iterator = owner.loops[-1].iterator
    return _Writes(bits, surely, maybe, _numbers(flow), given_fields("iter") | ({iterator.text} if iterator else set()))


def _set_by(entry: ast.PipelineEntry, bits: dict[str, int]) -> int:
    """Return the bits of what a task may set: that its rules go together with what is read later is taken on trust."""
    found = 0
    for _, then in thens(entry) if isinstance(entry, ast.Task) else ():
        for patch, written in patches(then):
            if patch == "set_iter":
                found |= bits.setdefault(written.key.text, 1 << len(bits))
    return found


def _numbers(flow: Flow) -> dict[int, int]:
    numbers: dict[int, int] = {}
    for number, point in enumerate(flow.points):
        if isinstance(point.entry, ast.Choose):
            numbers.update((id(branch.when), number) for branch in point.entry.choose if branch.when)
        elif isinstance(point.entry, ast.Repeat):
            numbers[id(point.entry.when)] = number
        else:
            numbers[id(point.entry)] = number
    return numbers


def _handled(model: Model) -> set[tuple[Owner, str]]:
    """Return the names that a guard of the pipeline tests for presence: the author knows that they may be absent."""
    return {
        (reading.site.owner, use.fields[0].name)
        for reading in model.readings
        if reading.site.owner and _is_condition(reading.site)
        for use in reading.names.uses
        if use.name == "iter" and use.fields and use.is_optional
    }


def _is_condition(site: Site) -> bool:
    return site.is_guard and site.position in (TemplatePosition.TASK_POLICY, TemplatePosition.SUGAR_WHEN)
