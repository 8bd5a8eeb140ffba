from noetlc.analysis.model import patches, thens
from noetlc.rules.rule import Findings, Model, Rule, Severity

_STATES = ("ctx", "vars")
"""`ctx`, and what the older dialect calls it: P911 reports that, and the value is read."""


class UnreadPatch(Rule):
    severity = Severity.NOTE
    summary = "`set_ctx` writes a key that no template reads."
    why = (
        "Writing it costs an event and space in the state. Often the name is misspelt, and the reader reads another "
        "key, which is undefined."
    )
    example = """
      - step: start
        tool:
          - add:
              kind: noop
              spec:
                policy:
                  rules:
                    - else:
    -                   then: {do: continue, set_ctx: {totl: 1}}
    +                   then: {do: continue, set_ctx: {total: 1}}
    +   next:
    +     arcs:
    +       - step: report
    +         when: "{{ ctx.total > 0 }}"
    + - step: report
    +   tool: {kind: noop}
    """
    covers = ("S18", "formal §4.1")

    def check(self, model: Model) -> Findings:
        uses = [use for reading in model.readings for use in reading.names.uses]
        states = [use for use in uses if use.name in _STATES]
        whole = [use for use in states if not use.fields]
        if whole or any(template.problems for _, template in model.template_sites):
            return  # all of it is handed on, or what could not be read may be what reads it
        read = {use.fields[0].name for use in states} | {use.name for use in uses}
        unwritten = read - model.definitions.ctx
        reported: set[str] = set()
        for view in model.tasks:
            for _, then in thens(view.task):
                for patch, entry in patches(then):
                    key = entry.key.text
                    if patch == "set_ctx" and key.isidentifier() and key not in read and key not in reported:
                        reported.add(key)
                        meant = model.suggestions.nearest(key, unwritten)
                        help = f"did you mean `{meant}`, which is read?" if meant else "read it somewhere, or remove it"
                        yield self.finding(entry.key.span, f"`ctx.{key}` is never read", help)
