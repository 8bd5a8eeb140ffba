from noetlc.analysis.model import KeyRead, needed
from noetlc.net.source import SourceNet, Without, source_net
from noetlc.rules.rule import Finding, Findings, Model, Rule, Severity, path_text


class ArgsNotProvided(Rule):
    severity = Severity.WARNING
    summary = "A step needs `args.<name>`, and some tokens reach it without this argument."
    why = (
        "A token has only the arguments of the arcs on its path. If one arc lacks an argument, the step fails for "
        "its tokens only."
    )
    example = """
      - step: start
        tool: {kind: noop}
        next:
          arcs:
            - step: load
              when: "{{ workload.table | default('') }}"
              args: {table: "{{ workload.table | default('') }}"}
            - step: load
    +         args: {table: hotels}
      - step: load
        tool: {kind: http, url: "https://example.org/{{ args.table }}"}
    """
    covers = ("S10", "S32")

    def check(self, model: Model) -> Findings:
        reads = list(needed(model, "args"))
        found = source_net(model) if reads else None
        if found is None or model.is_reported(model.playbook.span, ("arc", "args")):
            return
        givers = _givers(found)
        without = Without(found)
        reported: set[tuple[str, str]] = set()
        numbers = {step.name: step.index for step in reversed(found.net.steps)}
        for read in reads:
            owner = read.reading.site.owner
            reader = owner.name if owner else ""
            if (reader, read.key) in reported or numbers.get(reader) == found.net.final:
                continue
            reported.add((reader, read.key))
            way = without.arcs(read.key, givers.get(read.key, set()), reader)
            if way is not None:
                yield self._missing(model, read, found, way, givers)

    def _missing(
        self, model: Model, read: KeyRead, found: SourceNet, way: list[int], givers: dict[str, set[tuple[int, int]]]
    ) -> Finding:
        place = model.place(read.reading.site, read.field.span)
        give = f"add `args: {{ {read.key}: … }}` to the arcs that lead here, or write `args.{read.key} | default(…)`"
        if read.key not in givers:
            meant = model.suggestions.did_you_mean(read.key, givers)
            return self.finding(place, f"no arc provides `args.{read.key}`", meant or give)
        names = path_text([found.name(step) for step in way])
        return self.finding(place, f"no arc provides `args.{read.key}` on the path {names}", give)


def _givers(found: SourceNet) -> dict[str, set[tuple[int, int]]]:
    """Return, for each argument, the arcs that provide it."""
    givers: dict[str, set[tuple[int, int]]] = {}
    for step in found.net.steps:
        for arc in step.arcs:
            args = found.arc(arc).args
            for entry in args.entries if args else ():
                givers.setdefault(entry.key.text, set()).add((arc.source, arc.index))
    return givers
