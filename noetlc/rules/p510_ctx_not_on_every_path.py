from noetlc.analysis.model import KeyRead, needed
from noetlc.net.source import SourceNet, Without, source_net
from noetlc.rules.p324_misplaced_patch import may_write_ctx
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity, path_text
from noetlc.syntax.nodes import Scalar


class CtxNotOnEveryPath(Rule):
    severity = Severity.WARNING
    summary = "A step needs `ctx.<name>`, and on some path to it no step writes the key."
    why = (
        "On that path the value is undefined, and a task whose input is undefined fails. Tests often miss such a path: "
        "an empty list, a skipped branch."
    )
    example = """
      - step: start
    -   tool: {kind: noop}
    +   tool:
    +     - begin:
    +         kind: noop
    +         spec:
    +           policy:
    +             rules:
    +               - else:
    +                   then: {do: continue, set_ctx: {total: 0}}
        next:
          arcs:
            - step: count
              when: "{{ workload.rows | default([]) }}"
            - step: report
      - step: count
        tool:
          - add:
              kind: noop
              spec:
                policy:
                  rules:
                    - else:
                        then: {do: continue, set_ctx: {total: 1}}
        next:
          arcs:
            - step: report
      - step: report
        tool: {kind: http, url: "https://example.org/{{ ctx.total }}"}
    """
    covers = ("S10", "formal §4.1")

    def check(self, model: Model) -> Findings:
        if may_write_ctx(model):
            return
        reads = [read for read in needed(model, "ctx") if read.key in model.definitions.ctx]
        found = source_net(model) if reads else None
        if found is None:
            return
        written = model.ctx_written
        writers = _writers(found, written)
        reported: set[tuple[str, str]] = set()
        without = Without(found)
        for read in reads:
            reader = _reader(read)
            if (reader, read.key) in reported or read.key in written[reader]:
                continue
            reported.add((reader, read.key))
            way = without.steps(read.key, writers.get(read.key, set()), reader)
            if way is not None:
                yield self._missing(model, read, found, way)

    def _missing(self, model: Model, read: KeyRead, found: SourceNet, way: list[int]) -> Finding:
        names = path_text([found.name(step) for step in way])
        return self.finding(
            model.place(read.reading.site, read.field.span),
            f"`ctx.{read.key}` is not written on the path {names}",
            f"write it before the paths diverge, or write `ctx.{read.key} | default(…)`",
        )


def _writers(found: SourceNet, written: dict[str, dict[str, Scalar]]) -> dict[str, set[int]]:
    """Return, for each key, the steps that may write it."""
    writers: dict[str, set[int]] = {}
    for index, step in enumerate(found.net.steps):
        for key in written[step.name]:
            writers.setdefault(key, set()).add(index)
    return writers


def _reader(read: KeyRead) -> str:
    owner = read.reading.site.owner
    return owner.name if owner else ""
