from noetlc.rules.rule import RefusalRule, Severity


class WorkbookPolicy(RefusalRule):
    severity = Severity.ERROR
    summary = "A workbook call has a policy that cannot be applied to a single task."
    why = (
        "A policy handles one outcome. A call that expands to several tasks has no outcome of its own, and a task "
        "cannot have two policies."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: load, path: demo/load}
      workflow:
        - step: start
          tool:
            - save:
                kind: workbook
                task: save
                spec: {policy: {rules: [{else: {then: {do: continue}}}]}}
      workbook:
        tasks:
    -     save:
    -       - check: {kind: noop}
    -       - insert: {kind: noop}
    +     save: {kind: noop}
    """
    covers = ("S42",)
