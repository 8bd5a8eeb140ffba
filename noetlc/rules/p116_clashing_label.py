from noetlc.rules.rule import Findings, Model, RefusalRule, Severity


class ClashingLabel(RefusalRule):
    severity = Severity.ERROR
    summary = "A task has the label that a block or a workbook call generates."
    why = (
        "Blocks and workbook calls expand to tasks with generated labels, such as `choose_1.end` or `save.insert`. "
        "Jumps and events refer to tasks by label, so no other task may have the same label."
    )
    example = """
      - step: start
        tool:
          - choose:
              - when: "{{ workload.quiet }}"
                then:
                  - note: {kind: noop}
    -     - choose_1.end: {kind: noop}
    +     - end: {kind: noop}
    """
    covers = ("S5", "S40")

    def check(self, model: Model) -> Findings:
        for views in model.tasks_by_owner.values():
            if len({view.label for view in views}) < len(views):
                return  # P103 reports labels that were written twice
        yield from super().check(model)
