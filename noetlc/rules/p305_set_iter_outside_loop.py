from collections.abc import Iterable

from noetlc.analysis.model import Owner, TaskView, thens
from noetlc.rules.rule import Edit, Findings, Fix, Model, Rule, Severity
from noetlc.syntax import ast


class SetIterOutsideLoop(Rule):
    severity = Severity.ERROR
    summary = "A rule writes `set_iter`, and its step has no loop."
    why = "`iter` is the state of one iteration. Without a loop the value is not written."
    example = """
      - step: begin
        tool:
          - init:
              kind: noop
              spec:
                policy:
                  rules:
                    - else:
    -                   then: {do: continue, set_iter: {page: 1}}
    +                   then: {do: continue, set_ctx: {page: 1}}
    """
    covers = ("S18", "formal §3.2", "step spec §6.3")

    def check(self, model: Model) -> Findings:
        for owner in model.owners:
            step = owner.step
            writers = writers_without_loop(model, owner)
            if step is None or not writers or model.is_reported(step.span, ("step", "loop")):
                continue
            (view, then), *others = writers
            also = (
                f", and so {'does 1 more rule' if len(others) == 1 else f'do {len(others)} more rules'}"
                if others
                else ""
            )
            yield self.finding(
                then.key_span("set_iter"),
                f"`{view.label}` writes `set_iter`, but step `{owner.name}` has no loop{also}",
                "write `set_ctx` and read `ctx`, or give the step a `loop`",
                fix=_as_ctx(model, owner, [then for _, then in writers]),
            )


def writers_without_loop(model: Model, owner: Owner) -> list[tuple[TaskView, ast.Then]]:
    """Return the rules of a step without a loop that write `set_iter`."""
    if owner.step is None or owner.step.loop:
        return []
    views = model.tasks_by_owner.get(owner, ())
    return [(view, then) for view in views for _, then in thens(view.task) if then.set_iter is not None]


def _as_ctx(model: Model, owner: Owner, writers: list[ast.Then]) -> Fix | None:
    """Return the fix that moves the step's `iter` to `ctx`; None where `ctx` has one of its names already."""
    names = written_names(writers)
    if any(then.set_ctx for then in writers) or not names.isdisjoint(model.ctx_keys):
        return None
    places = [(then.key_span("set_iter"), "set_iter", "set_ctx") for then in writers]
    for reading in model.readings_by_owner.get(owner, ()):
        uses = (use.node.span for use in reading.names.uses if use.name == "iter")
        places += [(model.place(reading.site, span), "iter", "ctx") for span in uses]
    if any(model.source.text[place.start : place.end] != old for place, old, _ in places):
        return None
    edits = tuple(Edit(place, new) for place, _, new in dict.fromkeys(places))
    return Fix("store the values in `ctx`", edits, safe=False)


def written_names(writers: Iterable[ast.Then]) -> set[str]:
    return {entry.key.text for then in writers for entry in (then.set_iter.entries if then.set_iter else ())}
