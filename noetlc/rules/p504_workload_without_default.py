from noetlc.rules.rule import Findings, Model, Rule, Severity


class WorkloadWithoutDefault(Rule):
    severity = Severity.WARNING
    summary = "A template reads `workload.<name>`, and `workload` has no default for it."
    why = (
        "The playbook runs only if every request contains the value, which the playbook does not show. A misspelt "
        "name has the same effect."
    )
    example = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: fetch, path: demo/fetch}
      workload:
        api_url: https://example.org
      workflow:
        - step: start
          tool:
    -       - get: {kind: http, url: "{{ workload.api_uri }}/items"}
    +       - get: {kind: http, url: "{{ workload.api_url }}/items"}
    """
    covers = ("formal §3.2", "S37")

    def check(self, model: Model) -> Findings:
        if model.is_reported(model.playbook.span, ("playbook", "workload")):
            return
        reported: set[str] = set()
        for reading in model.readings:
            for use in reading.names.uses:
                if use.name != "workload" or not use.fields or use.is_optional:
                    continue
                field = use.fields[0]
                if field.name not in model.workload_keys and field.name not in reported:
                    reported.add(field.name)
                    meant = model.suggestions.nearest(field.name, model.workload_keys)
                    yield self.finding(
                        model.place(reading.site, field.span),
                        f"`workload` has no default for `{field.name}`",
                        f"did you mean `workload.{meant}`?" if meant else f"add `{field.name}:` under `workload:`",
                    )
