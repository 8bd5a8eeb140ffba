from noetlc.rules.rule import RefusalRule, Severity


class UnsteadyArgument(RefusalRule):
    severity = Severity.ERROR
    summary = "A workbook task reads an argument after its value may have changed."
    why = (
        "An argument is evaluated where it is read. By then, `_prev` and values that the tasks of the call write may "
        "differ from those at the call, and the task would use another value without a warning."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
      workflow:
        - step: start
          tool:
    -       - save: {kind: workbook, task: save, args: {row: "{{ _prev }}"}}
    +       - save: {kind: workbook, task: save, args: {row: "{{ workload.row }}"}}
      workbook:
        tasks:
          save:
            - check: {kind: noop}
            - insert: {kind: noop, row: "{{ args.row }}"}
    """
    covers = ("S42",)
