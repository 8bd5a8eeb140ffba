from noetlc.rules.rule import RefusalRule, Severity


class WorkbookTooLarge(RefusalRule):
    severity = Severity.ERROR
    summary = "Nested workbook calls expand to too many tasks, too much text, too long labels or too deep a nesting."
    why = (
        "Each call is replaced by its tasks. Nested calls multiply, so a few lines can expand to more tasks than fit "
        "into memory."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
      workflow:
        - step: start
          tool:
            - go: {kind: workbook, task: t0}
      workbook:
        tasks:
          t0: [{kind: workbook, task: t1}, {kind: workbook, task: t1}]
          t1: [{kind: workbook, task: t2}, {kind: workbook, task: t2}]
    -     t2: [{kind: workbook, task: t3}, {kind: workbook, task: t3}]
    -     t3: [{kind: workbook, task: t4}, {kind: workbook, task: t4}]
    -     t4: [{kind: workbook, task: t5}, {kind: workbook, task: t5}]
    -     t5: [{kind: workbook, task: t6}, {kind: workbook, task: t6}]
    -     t6: [{kind: workbook, task: t7}, {kind: workbook, task: t7}]
    -     t7: [{kind: workbook, task: t8}, {kind: workbook, task: t8}]
    -     t8: [{kind: workbook, task: t9}, {kind: workbook, task: t9}]
    -     t9: [{kind: workbook, task: t10}, {kind: workbook, task: t10}]
    -     t10: [{kind: workbook, task: t11}, {kind: workbook, task: t11}]
    -     t11: [{kind: workbook, task: t12}, {kind: workbook, task: t12}]
    -     t12: [{kind: workbook, task: t13}, {kind: workbook, task: t13}]
    -     t13: [{kind: workbook, task: t14}, {kind: workbook, task: t14}]
    -     t14: [{kind: workbook, task: t15}, {kind: workbook, task: t15}]
    -     t15: {kind: noop}
    +     t2: {kind: noop}
    """
    covers = ("S42",)
