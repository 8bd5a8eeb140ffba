from noetlc.rules.rule import RefusalRule, Severity


class WorkbookArguments(RefusalRule):
    severity = Severity.ERROR
    summary = "The arguments of a workbook call cannot be inserted where its tasks read them."
    why = (
        "The compiler replaces `args.name` with the argument. So the names of the arguments must be known, each "
        "argument must be one expression, and the names in it must have the same meaning in the template where it is "
        "inserted."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
      workflow:
        - step: start
          tool:
    -       - save: {kind: workbook, task: save, args: "{{ ctx.row }}"}
    +       - save: {kind: workbook, task: save, args: {id: "{{ ctx.row.id }}"}}
      workbook:
        tasks:
          save: {kind: noop, row: "{{ args.id }}"}
    """
    covers = ("S42",)
