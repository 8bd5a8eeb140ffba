from noetlc.migrate.dialect import TITLES, recognise
from noetlc.rules.rule import Findings, Model, Rule, Severity, migration_fix
from noetlc.syntax.nodes import Mapping
from noetlc.syntax.span import Span


class OtherDialect(Rule):
    severity = Severity.ERROR
    summary = "The playbook is written in another dialect of the language."
    why = (
        "The machine runs canonical v10. Checked as v10, such a file would have dozens of misleading findings, so "
        "this is the only finding. `noetlc migrate` rewrites the file without changing its meaning, and `noetlc lint "
        "--dialect` checks the file in its own dialect."
    )
    example = """
      - step: fetch
        tool:
          - page:
              kind: http
              url: https://api.example.com/items
    -         eval:
    -           - expr: "{{ outcome.status == 'error' }}"
    -             do: fail
    +         spec:
    +           policy:
    +             rules:
    +               - when: "{{ outcome.status == 'error' }}"
    +                 then: {do: fail}
        next:
    -     - step: store
    +     arcs:
    +       - step: store
    +         when: "{{ event.name == 'step.done' }}"
      - step: store
        tool: {kind: noop}
        next:
    -     - step: finish
    +     arcs:
    +       - step: finish
    +         when: "{{ event.name == 'step.done' }}"
      - step: finish
        tool: {kind: noop}
    """
    covers = ("step spec §13",)
    on_damaged = True

    def check(self, model: Model) -> Findings:
        recognised = recognise(model.document.root)
        if not recognised.is_foreign:
            return
        root = model.document.root
        key = root.key("workflow") if isinstance(root, Mapping) else None
        yield self.finding(
            key.span if key else Span(0, 0),
            f"this playbook is written in {TITLES[recognised.dialect]}: {recognised.described()}",
            "run `noetlc migrate FILE --diff` to see it as canonical v10, and add `--write` to rewrite it; "
            f"`noetlc lint --dialect {recognised.dialect}` checks it in its own dialect",
            fix=migration_fix(model),
        )
