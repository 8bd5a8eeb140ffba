from noetlc.rules.rule import RefusalRule, Severity


class WorkbookArguments(RefusalRule):
    severity = Severity.ERROR
    summary = "The arguments of a workbook call cannot be put where its tasks read them."
    why = (
        "The compiler writes each argument in place of `args.name`. For that it must see them by name, each must be "
        "one expression, and a name in it must mean the same in the template that it is put into."
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
